/* A plug-in that names its phases by NVTX in every way that there is. */
#include "attn.h"
#include "kernel.h"
#include "pushes.h"

#include <nvtx3/nvToolsExt.h>

static void push_attributes(nvtxDomainHandle_t domain, int kind, nvtxMessageValue_t message)
{
    nvtxEventAttributes_t a = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE, .messageType = kind,
        .message = message};
    if (domain) nvtxDomainRangePushEx(domain, &a);
    else nvtxRangePushEx(&a);
}

static int launch(const struct call *c)
{
    struct pushes *p = c->state;
    nvtxDomainHandle_t domain = nvtxDomainCreateA("pushes");
    for (int i = 0; i < p->pop_more; i++) nvtxRangePop();
    nvtxRangePushA("scores");
    p->look(p);
    nvtxRangePushW(L"top \u2265 512");
    p->look(p);
    nvtxRangePop();
    p->look(p);
    nvtxRangePop();
    push_attributes(NULL, NVTX_MESSAGE_TYPE_ASCII, (nvtxMessageValue_t){.ascii = "combine"});
    p->look(p);
    nvtxRangePop();
    push_attributes(domain, NVTX_MESSAGE_TYPE_REGISTERED,
        (nvtxMessageValue_t){.registered = nvtxDomainRegisterStringA(domain, "registered")});
    p->look(p);
    nvtxDomainRangePop(domain);
    push_attributes(domain, NVTX_MESSAGE_UNKNOWN, (nvtxMessageValue_t){0});
    p->look(p);
    nvtxDomainRangePop(domain);
    for (int i = 0; i < p->leave_open; i++) nvtxRangePushA("left open");
    p->look(p);
    return 0;
}

KERNEL = {FOR_OP(attn), .note = "names its phases", .engine = HOST, .launch = launch};

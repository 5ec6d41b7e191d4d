#include "nvtx.h"

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define HAS_NVTX 1
#endif
#endif

#ifndef HAS_NVTX   /* a build without a toolkit */

void nvtx_push(const char *name)
{
    (void)name;
}

void nvtx_pop(void)
{
}

const char *nvtx_innermost(void)
{
    return "";
}

#else

#include <stdint.h>

/* Who listens where no tool does: the name is NVTX's, and it calls it at the first push. 1: taken. */
static int listen_in(const void *(*get)(uint32_t));
int (*InitializeInjectionNvtx2_fnptr)(const void *(*)(uint32_t)) = listen_in;

#define NVTX_STATIC_INJECTION_IMPL
#include <nvtx3/nvToolsExt.h>

#include "base.h"

enum { MOST_RANGES = 16, RANGE_BYTES = 64 };

/* NVTX hands its calls to functions without an argument of their own, hence a stack a thread. */
static _Thread_local struct {
    int  depth, ours;   /* ours: of the harness, at the bottom */
    char name[MOST_RANGES][RANGE_BYTES];
} ranges;

static int push(const char *name)
{
    if (ranges.depth < MOST_RANGES) text(ranges.name[ranges.depth], RANGE_BYTES, "%s", name ? name : "");
    return ranges.depth++;
}

static int pop(void)
{
    return ranges.depth ? --ranges.depth : -1;
}

static int push_attributes(const nvtxEventAttributes_t *a)
{
    return push(a && a->messageType == NVTX_MESSAGE_TYPE_ASCII ? a->message.ascii : "");
}

static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    (void)domain;
    return push_attributes(a);
}

static int domain_pop(nvtxDomainHandle_t domain)
{
    (void)domain;
    return pop();
}

static void put(NvtxFunctionTable table, unsigned int size, unsigned int id, NvtxFunctionPointer function)
{
    if (id < size && table[id]) *table[id] = function;
}

static int listen_in(const void *(*get)(uint32_t))
{
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned int size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size)) return 0;
    put(table, size, NVTX_CBID_CORE_RangePushA, (NvtxFunctionPointer)push);
    put(table, size, NVTX_CBID_CORE_RangePushEx, (NvtxFunctionPointer)push_attributes);
    put(table, size, NVTX_CBID_CORE_RangePop, (NvtxFunctionPointer)pop);
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 1;
    put(table, size, NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)domain_push);
    put(table, size, NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)domain_pop);
    return 1;
}

void nvtx_push(const char *name)
{
    nvtxRangePushA(name);
    ranges.ours++;
}

void nvtx_pop(void)
{
    nvtxRangePop();
    ranges.ours--;
}

const char *nvtx_innermost(void)
{
    int top = ranges.depth < MOST_RANGES ? ranges.depth : MOST_RANGES;
    return top > ranges.ours ? ranges.name[top - 1] : "";
}

#endif

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

void nvtx_listen(void)
{
}

#else

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* A kernel that pops more than it has pushed does not get at the harness's ranges. */
static int pop(void)
{
    return ranges.depth > ranges.ours ? --ranges.depth : -1;
}

/* ASCII stays, anything else becomes a question mark. */
static const char *narrow(const wchar_t *wide, char *ret)
{
    int n = 0;
    for (; wide && wide[n] && n < RANGE_BYTES - 1; n++) ret[n] = wide[n] < 128 ? (char)wide[n] : '?';
    ret[n] = 0;
    return ret;
}

static int push_wide(const wchar_t *name)
{
    char words[RANGE_BYTES];
    return push(narrow(name, words));
}

static int push_attributes(const nvtxEventAttributes_t *a)
{
    switch (a ? a->messageType : NVTX_MESSAGE_UNKNOWN) {
    case NVTX_MESSAGE_TYPE_ASCII: return push(a->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE: return push_wide(a->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED: return push((const char *)a->message.registered);
    default: return push("");
    }
}

/* A registered string is known by its handle as long as the process lives; ours is a copy of it. */
static nvtxStringHandle_t keep(nvtxDomainHandle_t domain, const char *name)
{
    char words[RANGE_BYTES];
    (void)domain;
    text(words, sizeof words, "%s", name ? name : "");
    return (nvtxStringHandle_t)memcpy(must_alloc(strlen(words) + 1, 1), words, strlen(words) + 1);
}

static nvtxStringHandle_t keep_wide(nvtxDomainHandle_t domain, const wchar_t *name)
{
    char words[RANGE_BYTES];
    return keep(domain, narrow(name, words));
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
    put(table, size, NVTX_CBID_CORE_RangePushW, (NvtxFunctionPointer)push_wide);
    put(table, size, NVTX_CBID_CORE_RangePop, (NvtxFunctionPointer)pop);
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 1;
    put(table, size, NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)domain_push);
    put(table, size, NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)domain_pop);
    put(table, size, NVTX_CBID_CORE2_DomainRegisterStringA, (NvtxFunctionPointer)keep);
    put(table, size, NVTX_CBID_CORE2_DomainRegisterStringW, (NvtxFunctionPointer)keep_wide);
    return 1;
}

/* Is it the program or a plug-in that asks? Libraries have NVTX compiled in, too: their ranges are no phases of a kernel. */
static bool is_kernels(const void *address)
{
    Dl_info self, asks, plugin;
    if (!dladdr(address, &asks) || !dladdr((const void *)(uintptr_t)listen_in, &self)) return false;
    if (asks.dli_fbase == self.dli_fbase) return true;
    void *object = dlopen(asks.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    if (!object) return false;
    const void *kernel = dlsym(object, "kbench_plugin");
    bool is = kernel && dladdr(kernel, &plugin) && plugin.dli_fbase == asks.dli_fbase;
    dlclose(object);
    return is;
}

/* What NVTX looks for in the library that the environment names, and calls from each object that has NVTX compiled in. */
int InitializeInjectionNvtx2(const void *(*get)(uint32_t));
int InitializeInjectionNvtx2(const void *(*get)(uint32_t))
{
    return is_kernels((const void *)(uintptr_t)get) && listen_in(get);
}

/* An object's own pointer to a listener is not to be had from outside, but all of them open the library that the environment names.
 * The empty name is the program, as for dlopen. */
void nvtx_listen(void)
{
    void *program = dlopen("", RTLD_LAZY), *found = program ? dlsym(program, "InitializeInjectionNvtx2") : NULL;
    if (found == (void *)(uintptr_t)InitializeInjectionNvtx2) setenv("NVTX_INJECTION64_PATH", "", 0);
    if (program) dlclose(program);
}

void nvtx_push(const char *name)
{
    nvtxRangePushA(name);
    ranges.ours++;
}

/* What a launch has left open goes with it. */
void nvtx_pop(void)
{
    ranges.ours--;
    nvtxRangePop();
    if (ranges.depth > ranges.ours) ranges.depth = ranges.ours;
}

const char *nvtx_innermost(void)
{
    int top = ranges.depth < MOST_RANGES ? ranges.depth : MOST_RANGES;
    return top > ranges.ours ? ranges.name[top - 1] : "";
}

#endif

/* The tracer and the counters on a CUPTI of our own: buffers from another thread, refusals at each step, all off at the end. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <nvtx3/nvToolsExt.h>

#include "base.h"
#include "devices/cupti.h"
#include "devices/cupti_api.h"
#include "nvtx.h"

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif

enum { MOST = 8, HANDLE = 0x1000 };

/* What the fake library was told, and what it shall answer. */
static struct {
    CUptiResult                       subscribe, enable, flush, configure;
    CUpti_ActivityKind                refused;
    int                               subscribed, on, callbacks, domains, initialised, profiling, hosts;
    CUpti_CallbackFunc                callback;
    void                             *callback_arg;
    CUpti_BuffersCallbackRequestFunc  request;
    CUpti_BuffersCallbackCompleteFunc complete;
    kernel_record                     record[MOST];
    int                               n, passes, passes_left, ranges_open, metrics;
    bool                              no_dshared;
    size_t                            dropped;
} fake;

static CUptiResult result_string(CUptiResult result, const char **ret)
{
    *ret = result == CUPTI_ERROR_UNKNOWN ? "CUPTI_ERROR_UNKNOWN" : "CUPTI_ERROR_OTHER";
    return CUPTI_SUCCESS;
}

static CUptiResult subscribe(CUpti_SubscriberHandle *ret, CUpti_CallbackFunc callback, void *arg)
{
    if (fake.subscribe) return fake.subscribe;
    *ret = (CUpti_SubscriberHandle)(uintptr_t)HANDLE;
    fake.callback = callback, fake.callback_arg = arg;
    fake.subscribed++;
    return CUPTI_SUCCESS;
}

static CUptiResult unsubscribe(CUpti_SubscriberHandle handle)
{
    assert_int_equal((uintptr_t)handle, HANDLE);
    fake.subscribed--;
    return CUPTI_SUCCESS;
}

static CUptiResult enable_callback(uint32_t on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    (void)handle, (void)id;
    assert_int_equal(domain, CUPTI_CB_DOMAIN_RESOURCE);
    fake.callbacks = on ? fake.callbacks + 1 : 0;
    return CUPTI_SUCCESS;
}

static CUptiResult enable_domain(uint32_t on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
    assert_int_equal((uintptr_t)handle, HANDLE);
    fake.domains = on ? fake.domains | 1 << domain : fake.domains & ~(1 << domain);
    return CUPTI_SUCCESS;
}

static CUptiResult node_id(CUgraphNode node, uint64_t *ret)
{
    *ret = (uint64_t)(uintptr_t)node - HANDLE;
    return CUPTI_SUCCESS;
}

static CUptiResult register_callbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete)
{
    fake.request = request, fake.complete = complete;
    return CUPTI_SUCCESS;
}

static CUptiResult activity_enable(CUpti_ActivityKind kind)
{
    if (fake.enable && kind == fake.refused) return fake.enable;
    fake.on |= 1 << kind;
    return CUPTI_SUCCESS;
}

static CUptiResult activity_disable(CUpti_ActivityKind kind)
{
    fake.on &= ~(1 << kind);
    return CUPTI_SUCCESS;
}

/* CUPTI's own thread hands a buffer over, two records in each. */
static void *hand_back(void *arg)
{
    (void)arg;
    for (int i = 0; i < fake.n; i += 2) {
        uint8_t *buffer;
        size_t size, records, n = fake.n - i < 2 ? 1 : 2;
        fake.request(&buffer, &size, &records);
        memcpy(buffer, &fake.record[i], n * sizeof(kernel_record));
        fake.complete(NULL, 0, buffer, size, n * sizeof(kernel_record));
    }
    return NULL;
}

static CUptiResult flush_all(uint32_t flag)
{
    pthread_t thread;
    assert_int_equal(flag, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    assert_int_equal(pthread_create(&thread, NULL, hand_back, NULL), 0);
    pthread_join(thread, NULL);
    return fake.flush;
}

static CUptiResult next_record(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + sizeof(kernel_record) : buffer;
    if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)next;
    return CUPTI_SUCCESS;
}

static CUptiResult dropped_records(CUcontext context, uint32_t stream, size_t *ret)
{
    (void)context, (void)stream;
    *ret = fake.dropped;
    fake.dropped = 0;
    return CUPTI_SUCCESS;
}

static struct cupti_api trace_api(void)
{
    memset(&fake, 0, sizeof fake);
    return (struct cupti_api){.cuptiGetResultString = result_string, .cuptiSubscribe = subscribe,
        .cuptiUnsubscribe = unsubscribe, .cuptiEnableCallback = enable_callback, .cuptiEnableDomain = enable_domain,
        .cuptiGetGraphNodeId = node_id,
        .cuptiActivityRegisterCallbacks = register_callbacks, .cuptiActivityEnable = activity_enable,
        .cuptiActivityDisable = activity_disable, .cuptiActivityFlushAll = flush_all,
        .cuptiActivityGetNextRecord = next_record, .cuptiActivityGetNumDroppedRecords = dropped_records};
}

static void node_event(CUpti_CallbackId event, uint64_t id, uint64_t original, CUgraphNodeType type)
{
    CUpti_GraphData graph = {.node = (CUgraphNode)(uintptr_t)(HANDLE + id), .originalNode = (CUgraphNode)(uintptr_t)(HANDLE +
        original), .nodeType = type};
    CUpti_ResourceData data = {.resourceDescriptor = &graph};
    fake.callback(fake.callback_arg, CUPTI_CB_DOMAIN_RESOURCE, event, &data);
}

static void launch(uint64_t node, uint32_t correlation, uint64_t start, uint64_t end, const char *name)
{
    fake.record[fake.n++] = (kernel_record){.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .start = start, .end = end,
        .correlationId = correlation, .graphNodeId = node, .name = name};
}

static void all_off(void)
{
    assert_int_equal(fake.subscribed, 0);
    assert_int_equal(fake.on, 0);
    assert_int_equal(fake.callbacks, 0);
    assert_int_equal(fake.domains, 0);
}

static void api_call(CUpti_CallbackDomain domain, uint32_t correlation)
{
    CUpti_CallbackData call = {.callbackSite = CUPTI_API_ENTER, .correlationId = correlation};
    fake.callback(fake.callback_arg, domain, 1, &call);
    call.callbackSite = CUPTI_API_EXIT;
    fake.callback(fake.callback_arg, domain, 1, &call);
}

/* Outside of a graph, a record is of the runtime's or the driver's call that launched it, and of the range that stood open then. */
static void ranges_of_launches(void **state)
{
    (void)state;
    char why[256] = "";
    struct cupti_api api = trace_api();
    struct cupti *c = cupti_on(&api);
    struct recording r = {0};
    assert_int_equal(cupti_trace_begin(c, true, why, sizeof why), 0);
    assert_int_equal(fake.domains, 1 << CUPTI_CB_DOMAIN_RUNTIME_API | 1 << CUPTI_CB_DOMAIN_DRIVER_API);
    nvtx_push("attn/x batch=1");
    api_call(CUPTI_CB_DOMAIN_RUNTIME_API, 3);
    nvtxRangePushA("product");
    api_call(CUPTI_CB_DOMAIN_RUNTIME_API, 4);
    nvtxRangePushA("inner");
    api_call(CUPTI_CB_DOMAIN_DRIVER_API, 5);
    nvtxRangePop();
    nvtxRangePop();
    nvtx_pop();
    for (int i = 0; i < 4; i++) launch(i == 3 ? 11 : 0, i == 3 ? 4 : 3 + (uint32_t)i, 1000 + (uint64_t)i, 1009 + (uint64_t)i, "k");
    kernel_record *shaped = &fake.record[1];
    shaped->gridX = 66, shaped->gridY = 2, shaped->gridZ = 1, shaped->blockX = 128, shaped->blockY = shaped->blockZ = 1;
    shaped->clusterX = 2, shaped->clusterY = shaped->clusterZ = 1;
    shaped->staticSharedMemory = 1024, shaped->dynamicSharedMemory = 4096;
    assert_int_equal(cupti_trace_end(c, &r, why, sizeof why), 0);
    all_off();
    assert_int_equal(r.n, 4);
    assert_null(r.activity[0].range);      /* the harness's own */
    assert_string_equal(r.activity[1].range, "product");
    assert_string_equal(r.activity[2].range, "inner");
    assert_null(r.activity[3].range);      /* of a graph: its node has one */
    const struct launch_shape *shape = &r.activity[1].shape;
    assert_true(shape->grid[0] == 66 && shape->grid[1] == 2 && shape->block[0] == 128 && shape->cluster[0] == 2);
    assert_int_equal(shape->shared_B, 5120);
    assert_true(r.activity[2].shape.grid[0] == 0 && r.activity[2].shape.cluster[0] == 0);
    recording_free(&r);
    fake.n = 0;                            /* not for replays, and nothing of the first is in the second */
    assert_int_equal(cupti_trace_begin(c, false, why, sizeof why), 0);
    assert_int_equal(fake.domains, 0);
    launch(0, 4, 10, 20, "k");
    assert_int_equal(cupti_trace_end(c, &r, why, sizeof why), 0);
    assert_null(r.activity[0].range);
    all_off();
    recording_free(&r);
    cupti_close(c);
}

static void traces(void **state)
{
    (void)state;
    char why[256] = "";
    struct cupti_api api = trace_api();
    struct cupti *c = cupti_on(&api), *other = cupti_on(&api);
    struct recording r = {0};
    assert_int_equal(cupti_trace_begin(c, false, why, sizeof why), 0);
    assert_int_not_equal(cupti_trace_begin(other, false, why, sizeof why), 0);
    assert_non_null(strstr(why, "under way"));
    assert_int_equal(fake.subscribed, 1);
    node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 1, 0, CU_GRAPH_NODE_TYPE_KERNEL);
    nvtx_push("attn/x batch=1");
    node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 2, 0, CU_GRAPH_NODE_TYPE_KERNEL);
    nvtxRangePushA("combine");   /* of a kernel's launch */
    node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 4, 0, CU_GRAPH_NODE_TYPE_MEMSET);
    nvtxRangePop();
    nvtx_pop();
    node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 3, 0, CU_GRAPH_NODE_TYPE_EMPTY);
    for (int twice = 0; twice < 2; twice++) {
        node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, 11, 1, CU_GRAPH_NODE_TYPE_KERNEL);
        node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, 12, 2, CU_GRAPH_NODE_TYPE_KERNEL);
        node_event(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, 14, 4, CU_GRAPH_NODE_TYPE_MEMSET);
    }
    launch(11, 5, 1000, 2000, "_ZN4attn12split_kernelILi64EEEvPfi");
    launch(12, 5, 2100, 2500, "plain");
    launch(11, 6, 4000, 5000, "_ZN4attn12split_kernelILi64EEEvPfi");
    launch(12, 6, 5100, 5500, "plain");
    launch(0, 7, 6000, 6100, NULL);
    fake.dropped = 3;
    assert_int_equal(cupti_trace_end(c, &r, why, sizeof why), 0);
    all_off();
    assert_int_equal(r.n, 5);
    assert_int_equal(r.dropped, 3);
    assert_int_equal(r.n_nodes, 3);
    assert_int_equal(r.node[0].id, 11);
    assert_string_equal(r.node[2].range, "combine");
    assert_string_equal(r.node[1].range, "");   /* the harness's own range is no kernel's */
    assert_string_equal(r.activity[0].name, "split_kernel<64>");
    assert_string_equal(r.activity[3].name, "plain");
    assert_string_equal(r.activity[4].name, "?");
    assert_int_equal(r.activity[2].correlation, 6);
    assert_int_equal(r.activity[3].end_ns, 5500);
    recording_free(&r);

    fake.n = 0;   /* nothing of the first is in the second */
    launch(0, 9, 10, 20, "once");
    assert_int_equal(cupti_trace_begin(c, false, why, sizeof why), 0);
    assert_int_equal(cupti_trace_end(c, &r, why, sizeof why), 0);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.n_nodes, 0);
    assert_int_equal(r.dropped, 0);
    assert_string_equal(r.activity[0].name, "once");
    all_off();
    recording_free(&r);
    cupti_close(c), cupti_close(other);
}

static void held_by_another_tool(void **state)
{
    (void)state;
    char why[256] = "";
    struct cupti_api api = trace_api();
    struct cupti *c = cupti_on(&api);
    fake.subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    assert_int_not_equal(cupti_trace_begin(c, false, why, sizeof why), 0);
    assert_non_null(strstr(why, "another tool holds CUPTI"));
    all_off();
    fake.subscribe = CUPTI_SUCCESS;   /* it has gone: nothing of ours stands in the way */
    assert_int_equal(cupti_trace_begin(c, false, why, sizeof why), 0);
    struct recording r = {0};
    fake.flush = CUPTI_ERROR_UNKNOWN;
    assert_int_not_equal(cupti_trace_end(c, &r, why, sizeof why), 0);
    assert_non_null(strstr(why, "cuptiActivityFlushAll: CUPTI_ERROR_UNKNOWN"));
    all_off();
    recording_free(&r);
    cupti_close(c);
}

static void refused_half_way(void **state)
{
    (void)state;
    char why[256] = "";
    struct cupti_api api = trace_api();
    struct cupti *c = cupti_on(&api);
    fake.enable = CUPTI_ERROR_UNKNOWN, fake.refused = CUPTI_ACTIVITY_KIND_MEMSET;
    assert_int_not_equal(cupti_trace_begin(c, false, why, sizeof why), 0);
    assert_non_null(strstr(why, "cuptiActivityEnable"));
    all_off();
    cupti_close(c);
}

#ifdef CUPTI_HAS_RANGES

static CUptiResult initialise(CUpti_Profiler_Initialize_Params *p) { (void)p; fake.initialised++; return CUPTI_SUCCESS; }
static CUptiResult deinitialise(CUpti_Profiler_DeInitialize_Params *p) { (void)p; fake.initialised--; return CUPTI_SUCCESS; }
static CUptiResult available(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    p->counterAvailabilityImageSize = 16;
    return fake.configure;
}
static CUptiResult chip(CUpti_Device_GetChipName_Params *p) { p->pChipName = "GH100"; return CUPTI_SUCCESS; }
static CUptiResult host_begin(struct host_initialize *p)
{
    assert_string_equal(p->chip, "GH100");
    p->object = (struct host_object *)(uintptr_t)HANDLE;
    fake.hosts++;
    return CUPTI_SUCCESS;
}
static CUptiResult host_over(struct host_end *p) { (void)p; fake.hosts--; return CUPTI_SUCCESS; }
static CUptiResult add_metric(struct host_add *p)
{
    if (strstr(p->metric[0], "tensor")) return CUPTI_ERROR_INVALID_METRIC_NAME;
    if (fake.no_dshared && strstr(p->metric[0], "dshared")) return CUPTI_ERROR_INVALID_METRIC_NAME;
    fake.metrics++;
    return CUPTI_SUCCESS;
}
static CUptiResult config_size(struct host_config_size *p) { p->bytes = 64; return CUPTI_SUCCESS; }
static CUptiResult config(struct host_config *p) { memset(p->image, 1, p->bytes); return CUPTI_SUCCESS; }
static CUptiResult profiler_on(CUpti_RangeProfiler_Enable_Params *p)
{
    p->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)(uintptr_t)HANDLE;
    fake.profiling++;
    return CUPTI_SUCCESS;
}
static CUptiResult profiler_off(CUpti_RangeProfiler_Disable_Params *p) { (void)p; fake.profiling--; return CUPTI_SUCCESS; }
static CUptiResult data_size(CUpti_RangeProfiler_GetCounterDataSize_Params *p) { p->counterDataSize = 128; return CUPTI_SUCCESS; }
static CUptiResult data_begin(CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
    memset(p->pCounterData, 0, p->counterDataSize);
    return CUPTI_SUCCESS;
}
static CUptiResult set_config(CUpti_RangeProfiler_SetConfig_Params *p)
{
    assert_int_equal(p->range, CUPTI_UserRange);
    assert_int_equal(p->replayMode, CUPTI_UserReplay);
    fake.passes_left = fake.passes;
    return CUPTI_SUCCESS;
}
static CUptiResult start(CUpti_RangeProfiler_Start_Params *p) { (void)p; return CUPTI_SUCCESS; }
static CUptiResult stop(CUpti_RangeProfiler_Stop_Params *p)
{
    assert_int_equal(fake.ranges_open, 0);
    p->isAllPassSubmitted = --fake.passes_left == 0;
    return CUPTI_SUCCESS;
}
static CUptiResult push_range(CUpti_RangeProfiler_PushRange_Params *p) { (void)p; fake.ranges_open++; return CUPTI_SUCCESS; }
static CUptiResult pop_range(CUpti_RangeProfiler_PopRange_Params *p) { (void)p; fake.ranges_open--; return CUPTI_SUCCESS; }
static CUptiResult decode(CUpti_RangeProfiler_DecodeData_Params *p) { p->numOfRangeDropped = fake.dropped; return CUPTI_SUCCESS; }
static CUptiResult data_info(CUpti_RangeProfiler_GetCounterDataInfo_Params *p) { p->numTotalRanges = 1; return CUPTI_SUCCESS; }

static CUptiResult evaluate(struct host_evaluate *p)
{
    static const struct {
        const char *part;
        double      value;
    } known[] = {   /* the first part that a name has */
        {"dram__bytes_read", 4096}, {"lookup_hit", 30}, {"op_read", 50}, {"sectors", 120}, {"read_bytes_mem_dshared", 3072},
        {"write_bytes_mem_dshared", 512}, {"xbar2l1tex_read", 8192}, {"l1tex2xbar_write", 2048}, {"", 7},
    };
    assert_int_equal(p->n, fake.metrics);
    for (size_t i = 0; i < p->n; i++) {
        int k = 0;
        while (!strstr(p->metric[i], known[k].part)) k++;
        p->value[i] = known[k].value;
    }
    return CUPTI_SUCCESS;
}

static struct cupti_api counter_api(void)
{
    struct cupti_api api = trace_api();
    fake.passes = 3;
    api.cuptiProfilerInitialize = initialise, api.cuptiProfilerDeInitialize = deinitialise;
    api.cuptiProfilerGetCounterAvailability = available, api.cuptiDeviceGetChipName = chip;
    api.cuptiProfilerHostInitialize = host_begin, api.cuptiProfilerHostDeinitialize = host_over;
    api.cuptiProfilerHostConfigAddMetrics = add_metric, api.cuptiProfilerHostGetConfigImageSize = config_size;
    api.cuptiProfilerHostGetConfigImage = config, api.cuptiProfilerHostEvaluateToGpuValues = evaluate;
    api.cuptiRangeProfilerEnable = profiler_on, api.cuptiRangeProfilerDisable = profiler_off;
    api.cuptiRangeProfilerGetCounterDataSize = data_size, api.cuptiRangeProfilerCounterDataImageInitialize = data_begin;
    api.cuptiRangeProfilerSetConfig = set_config, api.cuptiRangeProfilerStart = start, api.cuptiRangeProfilerStop = stop;
    api.cuptiRangeProfilerPushRange = push_range, api.cuptiRangeProfilerPopRange = pop_range;
    api.cuptiRangeProfilerDecodeData = decode, api.cuptiRangeProfilerGetCounterDataInfo = data_info;
    return api;
}

/* The work: counts its runs, and fails where it's told to. */
struct work {
    int runs, fails_at;
};

static int run_work(void *arg)
{
    struct work *work = arg;
    assert_int_equal(fake.ranges_open, 1);
    return ++work->runs == work->fails_at ? 700 : 0;
}

static void counters_off(const struct counters *c)
{
    assert_int_equal(fake.profiling, 0);
    assert_int_equal(fake.hosts, 0);
    assert_int_equal(fake.initialised, 0);
    if (!*c->why) return;
    for (int i = 0; i < n_counters; i++)
        assert_true(isnan(*(const double *)((const char *)c + counter_columns[i].offset)));
}

static void counts(void **state)
{
    (void)state;
    struct cupti_api api = counter_api();
    struct cupti *c = cupti_on(&api);
    struct work work = {0};
    struct counters ret;
    assert_int_equal(cupti_count(c, 0, run_work, &work, &ret), 0);
    counters_off(&ret);
    assert_int_equal(work.runs, 3);
    assert_int_equal(ret.passes, 3);
    assert_true(ret.dram_read_B == 4096);
    assert_true(ret.l2_read_B == 8192 - 3072);    /* without what other SMs of the cluster sent */
    assert_true(ret.l2_write_B == 2048 - 512);
    assert_true(ret.l2_asked_B == 50 * 32);
    assert_true(ret.l2_hit_pct == 25);
    assert_true(isnan(ret.tensor_pct));   /* this chip has no such counter */
    counters_per_call(&ret, 4);
    assert_true(ret.dram_read_B == 1024);
    assert_true(ret.l2_hit_pct == 25);
    fake.passes = 1, fake.metrics = 0, fake.no_dshared = true;   /* a chip that has no clusters sends nothing between SMs */
    assert_int_equal(cupti_count(c, 0, run_work, &work, &ret), 0);
    assert_true(ret.l2_read_B == 8192 && ret.l2_write_B == 2048);
    cupti_close(c);
}

static void counters_refused(void **state)
{
    (void)state;
    struct cupti_api api = counter_api();
    struct cupti *c = cupti_on(&api);
    struct work work = {0};
    struct counters ret;
    fake.configure = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_int_not_equal(cupti_count(c, 0, run_work, &work, &ret), 0);
    counters_off(&ret);
    assert_non_null(strstr(ret.why, "RestrictProfilingToAdminUsers=0"));
    assert_int_equal(work.runs, 0);

    fake.configure = CUPTI_SUCCESS, fake.metrics = 0;
    work.fails_at = 2;
    assert_int_not_equal(cupti_count(c, 0, run_work, &work, &ret), 0);
    counters_off(&ret);
    assert_non_null(strstr(ret.why, "error 700"));

    work = (struct work){0}, fake.ranges_open = 0, fake.metrics = 0, fake.dropped = 1;
    assert_int_not_equal(cupti_count(c, 0, run_work, &work, &ret), 0);
    counters_off(&ret);
    assert_non_null(strstr(ret.why, "dropped 1"));

    work = (struct work){0}, fake.metrics = 0, fake.dropped = 0, fake.passes = 1000;   /* for ever is too long */
    assert_int_not_equal(cupti_count(c, 0, run_work, &work, &ret), 0);
    counters_off(&ret);
    assert_non_null(strstr(ret.why, "passes"));

    api.cuptiRangeProfilerEnable = NULL;   /* an older library */
    assert_int_not_equal(cupti_count(c, 0, run_work, &work, &ret), 0);
    assert_non_null(strstr(ret.why, "12.6"));
    cupti_close(c);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces), cmocka_unit_test(ranges_of_launches),
        cmocka_unit_test(held_by_another_tool), cmocka_unit_test(refused_half_way),
#ifdef CUPTI_HAS_RANGES
        cmocka_unit_test(counts), cmocka_unit_test(counters_refused),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

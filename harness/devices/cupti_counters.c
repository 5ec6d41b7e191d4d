/* Hardware counters by CUPTI's range profiler: the same work once a pass, one user range around it. */
#include "cupti.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "cupti_api.h"

#ifndef CUPTI_HAS_RANGES

int cupti_count(struct cupti *c, int ordinal, int (*enqueue)(void *arg), void *arg, struct counters *ret)
{
    (void)c, (void)ordinal, (void)enqueue, (void)arg;
    counters_clear(ret);
    text(ret->why, sizeof ret->why, "this build's CUPTI has no range profiler: build with CUDA 12.6 or newer");
    return -1;
}

#else

enum { MOST_METRICS = 16, MOST_PASSES = 64, SECTOR_BYTES = 32 };

/* What is read, and what becomes of it. A device that lacks one leaves its columns empty. */
enum metric { DRAM_READ, DRAM_WRITE, L2_READ, L2_READ_SHARED, L2_WRITE, L2_WRITE_SHARED, SECTORS_READ, SECTORS, SECTORS_HIT, TENSOR,
    FMA, ISSUE, OCCUPANCY, SM_BUSY, METRICS };

static const char *const metric_name[METRICS] = {
    [DRAM_READ] = "dram__bytes_read.sum",
    [DRAM_WRITE] = "dram__bytes_write.sum",
    [L2_READ] = "l1tex__m_xbar2l1tex_read_bytes.sum",
    [L2_READ_SHARED] = "l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum",     /* of another SM's shared memory */
    [L2_WRITE] = "l1tex__m_l1tex2xbar_write_bytes.sum",
    [L2_WRITE_SHARED] = "l1tex__m_l1tex2xbar_write_bytes_mem_dshared.sum",
    [SECTORS_READ] = "lts__t_sectors_srcunit_tex_op_read.sum",
    [SECTORS] = "lts__t_sectors_srcunit_tex.sum",
    [SECTORS_HIT] = "lts__t_sectors_srcunit_tex_lookup_hit.sum",
    [TENSOR] = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    [FMA] = "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    [ISSUE] = "smsp__issue_active.avg.pct_of_peak_sustained_active",
    [OCCUPANCY] = "sm__warps_active.avg.pct_of_peak_sustained_active",
    [SM_BUSY] = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
};

struct session {
    const struct cupti_api    *api;
    struct host_object        *host;
    CUpti_RangeProfiler_Object *target;
    uint8_t                   *availability, *config, *data;
    size_t                     config_bytes, data_bytes;
    const char                *metric[MOST_METRICS];
    enum metric                which[MOST_METRICS];
    int                        n;
    char                      *why;      /* words of the first failure */
    size_t                     why_size;
};

static int failed(struct session *s, const char *what, CUptiResult error)
{
    cupti_error_text(s->api, what, error, s->why, s->why_size);
    return (int)error;
}

/* Calls a function of the library; its words come from its name. */
#define CALL(name, params)                                 \
    do {                                                   \
        CUptiResult error_ = s->api->name(params);         \
        if (error_) return failed(s, #name, error_);       \
    } while (0)

/* The counters that this driver lets us see on this device. */
static int query_availability(struct session *s)
{
    CUpti_Profiler_GetCounterAvailability_Params p = {.structSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE};
    CALL(cuptiProfilerGetCounterAvailability, &p);
    s->availability = must_alloc(p.counterAvailabilityImageSize + 1, 1);
    p.pCounterAvailabilityImage = s->availability;
    CALL(cuptiProfilerGetCounterAvailability, &p);
    return 0;
}

static int make_config(struct session *s, int ordinal)
{
    CUpti_Device_GetChipName_Params chip = {.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE,
        .deviceIndex = (size_t)ordinal};
    CALL(cuptiDeviceGetChipName, &chip);
    struct host_initialize host = {.size = sizeof host, .type = HOST_RANGE_PROFILER, .chip = chip.pChipName,
        .availability = s->availability};
    CALL(cuptiProfilerHostInitialize, &host);
    s->host = host.object;
    for (int m = 0; m < METRICS; m++) {
        const char *name = metric_name[m];
        struct host_add add = {.size = sizeof add, .object = s->host, .metric = &name, .n = 1};
        if (s->api->cuptiProfilerHostConfigAddMetrics(&add)) continue;
        s->which[s->n] = (enum metric)m;
        s->metric[s->n++] = name;
    }
    if (!s->n) return text(s->why, s->why_size, "%s: CUPTI knows none of the counters of this chip", chip.pChipName), -1;
    struct host_config_size size = {.size = sizeof size, .object = s->host};
    CALL(cuptiProfilerHostGetConfigImageSize, &size);
    s->config_bytes = size.bytes;
    s->config = must_alloc(size.bytes + 1, 1);
    struct host_config config = {.size = sizeof config, .object = s->host, .bytes = size.bytes, .image = s->config};
    CALL(cuptiProfilerHostGetConfigImage, &config);
    return 0;
}

/* Asks the driver itself, which the runtime has loaded. */
static CUcontext current_context(void)
{
    CUcontext ret = NULL;
    CUresult (*get)(CUcontext *) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *symbol = driver ? dlsym(driver, "cuCtxGetCurrent") : NULL;
    memcpy(&get, &symbol, sizeof symbol);
    if (!get || get(&ret)) ret = NULL;
    if (driver) dlclose(driver);
    return ret;
}

static int enable(struct session *s)
{
    CUpti_RangeProfiler_Enable_Params on = {.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE,
        .ctx = current_context()};
    CALL(cuptiRangeProfilerEnable, &on);
    s->target = on.pRangeProfilerObject;
    CUpti_RangeProfiler_GetCounterDataSize_Params size = {.structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE,
        .pRangeProfilerObject = s->target, .pMetricNames = s->metric, .numMetrics = (size_t)s->n, .maxNumOfRanges = 1,
        .maxNumRangeTreeNodes = 1};
    CALL(cuptiRangeProfilerGetCounterDataSize, &size);
    s->data_bytes = size.counterDataSize;
    s->data = must_alloc(size.counterDataSize + 1, 1);
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params image = {
        .structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE, .pRangeProfilerObject = s->target,
        .counterDataSize = s->data_bytes, .pCounterData = s->data};
    CALL(cuptiRangeProfilerCounterDataImageInitialize, &image);
    CUpti_RangeProfiler_SetConfig_Params set = {.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE,
        .pRangeProfilerObject = s->target, .configSize = s->config_bytes, .pConfig = s->config,
        .counterDataImageSize = s->data_bytes, .pCounterDataImage = s->data, .range = CUPTI_UserRange,
        .replayMode = CUPTI_UserReplay, .maxRangesPerPass = 1, .numNestingLevels = 1, .minNestingLevel = 1,
        .targetNestingLevel = 1};
    CALL(cuptiRangeProfilerSetConfig, &set);
    return 0;
}

/* One pass over the work. *ret_more: it takes another one. */
static int run_pass(struct session *s, int (*enqueue)(void *arg), void *arg, bool *ret_more)
{
    CUpti_RangeProfiler_Start_Params start = {.structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE,
        .pRangeProfilerObject = s->target};
    CUpti_RangeProfiler_PushRange_Params push = {.structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE,
        .pRangeProfilerObject = s->target, .pRangeName = "calls"};
    CUpti_RangeProfiler_PopRange_Params pop = {.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE,
        .pRangeProfilerObject = s->target};
    CUpti_RangeProfiler_Stop_Params stop = {.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE,
        .pRangeProfilerObject = s->target};
    CALL(cuptiRangeProfilerStart, &start);
    CALL(cuptiRangeProfilerPushRange, &push);
    int error = enqueue(arg);
    if (error) return text(s->why, s->why_size, "the launches failed under the profiler (error %d)", error), error;
    CALL(cuptiRangeProfilerPopRange, &pop);
    CALL(cuptiRangeProfilerStop, &stop);
    *ret_more = !stop.isAllPassSubmitted;
    return 0;
}

static int read_values(struct session *s, double *ret)
{
    CUpti_RangeProfiler_DecodeData_Params decode = {.structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE,
        .pRangeProfilerObject = s->target};
    CALL(cuptiRangeProfilerDecodeData, &decode);
    CUpti_RangeProfiler_GetCounterDataInfo_Params info = {.structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE,
        .pCounterDataImage = s->data, .counterDataImageSize = s->data_bytes};
    CALL(cuptiRangeProfilerGetCounterDataInfo, &info);
    if (info.numTotalRanges != 1 || decode.numOfRangeDropped)
        return text(s->why, s->why_size, "the profiler gave %zu ranges of 1 and dropped %zu", info.numTotalRanges,
            decode.numOfRangeDropped), -1;
    struct host_evaluate evaluate = {.size = sizeof evaluate, .object = s->host, .data = s->data, .data_bytes = s->data_bytes,
        .metric = s->metric, .n = (size_t)s->n, .value = ret};
    CALL(cuptiProfilerHostEvaluateToGpuValues, &evaluate);
    return 0;
}

static void keep_values(const struct session *s, const double *value, struct counters *ret)
{
    double m[METRICS];
    for (int i = 0; i < METRICS; i++) m[i] = NAN;
    for (int i = 0; i < s->n; i++) m[s->which[i]] = value[i];
    double shared_read = isnan(m[L2_READ_SHARED]) ? 0 : m[L2_READ_SHARED];
    double shared_write = isnan(m[L2_WRITE_SHARED]) ? 0 : m[L2_WRITE_SHARED];
    ret->dram_read_B = m[DRAM_READ];
    ret->dram_write_B = m[DRAM_WRITE];
    ret->l2_read_B = m[L2_READ] - shared_read;
    ret->l2_write_B = m[L2_WRITE] - shared_write;
    ret->l2_asked_B = SECTOR_BYTES * m[SECTORS_READ];
    ret->l2_hit_pct = m[SECTORS] > 0 ? 100 * m[SECTORS_HIT] / m[SECTORS] : NAN;
    ret->tensor_pct = m[TENSOR];
    ret->fma_pct = m[FMA];
    ret->issue_pct = m[ISSUE];
    ret->occupancy_pct = m[OCCUPANCY];
    ret->sm_busy_pct = m[SM_BUSY];
}

static int count(struct session *s, int ordinal, int (*enqueue)(void *arg), void *arg, struct counters *ret)
{
    double value[MOST_METRICS] = {0};
    bool more = true;
    TRY(query_availability(s));
    TRY(make_config(s, ordinal));
    TRY(enable(s));
    for (int pass = 0; more; pass++) {
        if (pass == MOST_PASSES) return text(s->why, s->why_size, "the profiler asks for more than %d passes", MOST_PASSES), -1;
        TRY(run_pass(s, enqueue, arg, &more));
        ret->passes++;
    }
    TRY(read_values(s, value));
    keep_values(s, value, ret);
    return 0;
}

static void end(struct session *s)
{
    CUpti_RangeProfiler_Disable_Params off = {.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE,
        .pRangeProfilerObject = s->target};
    struct host_end host = {.size = sizeof host, .object = s->host};
    if (s->target) s->api->cuptiRangeProfilerDisable(&off);
    if (s->host) s->api->cuptiProfilerHostDeinitialize(&host);
    free(s->availability), free(s->config), free(s->data);
}

int cupti_count(struct cupti *c, int ordinal, int (*enqueue)(void *arg), void *arg, struct counters *ret)
{
    counters_clear(ret);
    struct session s = {.api = cupti_api_of(c), .why = ret->why, .why_size = sizeof ret->why};
    if (!s.api->cuptiProfilerInitialize || !s.api->cuptiRangeProfilerEnable || !s.api->cuptiProfilerHostInitialize ||
        !s.api->cuptiDeviceGetChipName)
        return text(ret->why, sizeof ret->why, "the libcupti.so found has no range profiler: CUDA 12.6 or newer has"), -1;
    CUpti_Profiler_Initialize_Params begin = {.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    CUpti_Profiler_DeInitialize_Params over = {.structSize = CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE};
    CUptiResult error = s.api->cuptiProfilerInitialize(&begin);
    if (error) return failed(&s, "cuptiProfilerInitialize", error);
    int ret_error = count(&s, ordinal, enqueue, arg, ret);
    end(&s);
    s.api->cuptiProfilerDeInitialize(&over);
    if (ret_error) {
        char why[sizeof ret->why];
        memcpy(why, ret->why, sizeof why);
        counters_clear(ret);
        memcpy(ret->why, why, sizeof why);
    }
    return ret_error;
}

#endif

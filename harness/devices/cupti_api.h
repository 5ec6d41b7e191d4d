/* The functions of CUPTI that the harness calls, as pointers: dlopen fills them, tests put their own. The same names as the
 * library's, so that a reader finds them. */
#ifndef KBENCH_CUPTI_API_H
#define KBENCH_CUPTI_API_H

#include <cupti.h>

/* The range profiler came with CUDA 12.6. Its host half has a header for C++ alone: these are its parameters as C has them, in the
 * order of the library's. */
#if defined(__has_include) && __has_include(<cupti_range_profiler.h>)
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#define CUPTI_HAS_RANGES 1

struct host_object;

enum { HOST_RANGE_PROFILER = 0 };

struct host_initialize {
    size_t              size;
    void               *reserved;
    int                 type;                /* HOST_RANGE_PROFILER */
    const char         *chip;
    const uint8_t      *availability;
    struct host_object *object;              /* out */
};
struct host_end {
    size_t              size;
    void               *reserved;
    struct host_object *object;
};
struct host_add {
    size_t              size;
    void               *reserved;
    struct host_object *object;
    const char        **metric;
    size_t              n;
};
struct host_config_size {
    size_t              size;
    void               *reserved;
    struct host_object *object;
    size_t              bytes;               /* out */
};
struct host_config {
    size_t              size;
    void               *reserved;
    struct host_object *object;
    size_t              bytes;
    uint8_t            *image;
};
struct host_passes {
    size_t              size;
    void               *reserved;
    size_t              bytes;
    uint8_t            *image;
    size_t              passes;              /* out */
};
struct host_evaluate {
    size_t              size;
    void               *reserved;
    struct host_object *object;
    const uint8_t      *data;
    size_t              data_bytes, range;
    const char        **metric;
    size_t              n;
    double             *value;               /* out */
};
#endif

struct cupti_api {
    void         *library;   /* from dlopen; NULL for functions of another origin */
    CUptiResult (*cuptiGetResultString)(CUptiResult, const char **);
    CUptiResult (*cuptiGetVersion)(uint32_t *);
    CUptiResult (*cuptiSubscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
    CUptiResult (*cuptiUnsubscribe)(CUpti_SubscriberHandle);
    CUptiResult (*cuptiEnableCallback)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId);
    CUptiResult (*cuptiEnableDomain)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain);
    CUptiResult (*cuptiGetGraphNodeId)(CUgraphNode, uint64_t *);
    CUptiResult (*cuptiActivityRegisterCallbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
    CUptiResult (*cuptiActivityEnable)(CUpti_ActivityKind);
    CUptiResult (*cuptiActivityDisable)(CUpti_ActivityKind);
    CUptiResult (*cuptiActivityFlushAll)(uint32_t);
    CUptiResult (*cuptiActivityGetNextRecord)(uint8_t *, size_t, CUpti_Activity **);
    CUptiResult (*cuptiActivityGetNumDroppedRecords)(CUcontext, uint32_t, size_t *);
#ifdef CUPTI_HAS_RANGES
    /* Counters; NULL where an older library lacks them. */
    CUptiResult (*cuptiProfilerInitialize)(CUpti_Profiler_Initialize_Params *);
    CUptiResult (*cuptiProfilerDeInitialize)(CUpti_Profiler_DeInitialize_Params *);
    CUptiResult (*cuptiProfilerGetCounterAvailability)(CUpti_Profiler_GetCounterAvailability_Params *);
    CUptiResult (*cuptiDeviceGetChipName)(CUpti_Device_GetChipName_Params *);
    CUptiResult (*cuptiProfilerHostInitialize)(struct host_initialize *);
    CUptiResult (*cuptiProfilerHostDeinitialize)(struct host_end *);
    CUptiResult (*cuptiProfilerHostConfigAddMetrics)(struct host_add *);
    CUptiResult (*cuptiProfilerHostGetConfigImageSize)(struct host_config_size *);
    CUptiResult (*cuptiProfilerHostGetConfigImage)(struct host_config *);
    CUptiResult (*cuptiProfilerHostGetNumOfPasses)(struct host_passes *);
    CUptiResult (*cuptiProfilerHostEvaluateToGpuValues)(struct host_evaluate *);
    CUptiResult (*cuptiRangeProfilerEnable)(CUpti_RangeProfiler_Enable_Params *);
    CUptiResult (*cuptiRangeProfilerDisable)(CUpti_RangeProfiler_Disable_Params *);
    CUptiResult (*cuptiRangeProfilerGetCounterDataSize)(CUpti_RangeProfiler_GetCounterDataSize_Params *);
    CUptiResult (*cuptiRangeProfilerCounterDataImageInitialize)(CUpti_RangeProfiler_CounterDataImage_Initialize_Params *);
    CUptiResult (*cuptiRangeProfilerSetConfig)(CUpti_RangeProfiler_SetConfig_Params *);
    CUptiResult (*cuptiRangeProfilerStart)(CUpti_RangeProfiler_Start_Params *);
    CUptiResult (*cuptiRangeProfilerStop)(CUpti_RangeProfiler_Stop_Params *);
    CUptiResult (*cuptiRangeProfilerPushRange)(CUpti_RangeProfiler_PushRange_Params *);
    CUptiResult (*cuptiRangeProfilerPopRange)(CUpti_RangeProfiler_PopRange_Params *);
    CUptiResult (*cuptiRangeProfilerDecodeData)(CUpti_RangeProfiler_DecodeData_Params *);
    CUptiResult (*cuptiRangeProfilerGetCounterDataInfo)(CUpti_RangeProfiler_GetCounterDataInfo_Params *);
#endif
};

/* "cuptiSubscribe: CUPTI_ERROR_...", and for errors that a user can do something about, what. */
char *cupti_error_text(const struct cupti_api *, const char *what, CUptiResult, char *ret, size_t size);

/* Fills the struct from the library that is found. 0, or non-zero and why in ret_why. */
int   cupti_load(struct cupti_api *ret, char *ret_why, size_t size);
/* The library goes, too, unless someone else has it open. Only where it was never on: it leaves hooks in the driver. */
void  cupti_api_close(struct cupti_api *);
/* 0 where no CUPTI is in the process, or non-zero and words in ret_why. */
int   cupti_absent(char *ret_why, size_t size);

/* Which functions a handle works on. */
struct cupti;
const struct cupti_api *cupti_api_of(const struct cupti *);

#endif

/* CUPTI's library: where it may lie, its functions, and what its errors mean to a user. */
#include "cupti_api.h"

#include <dlfcn.h>

#include "base.h"
#include "library.h"

char *cupti_error_text(const struct cupti_api *api, const char *what, CUptiResult error, char *ret, size_t size)
{
    const char *name = NULL;
    if (api->cuptiGetResultString(error, &name) || !name) name = "an unknown error";
    switch ((int)error) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
        return text(ret, size, "another tool holds CUPTI (nsys, ncu, a debugger?); events alone are used beside it");
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return text(ret, size, "the driver refuses counters to this user: run as root or with CAP_SYS_ADMIN, or load the module "
            "with NVreg_RestrictProfilingToAdminUsers=0");
    case CUPTI_ERROR_HARDWARE_BUSY:
        return text(ret, size, "another tool holds the counters (%s: %s)", what, name);
    default:
        return text(ret, size, "%s: %s", what, name);
    }
}

static const char *const names[] = {CUPTI_LIBRARIES};

static bool find_all(void *library, struct cupti_api *api)
{
#define FIND(name) library_find(library, #name, &api->name)
    bool all = FIND(cuptiGetResultString) && FIND(cuptiGetVersion) && FIND(cuptiSubscribe) && FIND(cuptiUnsubscribe) &&
        FIND(cuptiEnableCallback) && FIND(cuptiEnableDomain) && FIND(cuptiGetGraphNodeId) && FIND(cuptiActivityRegisterCallbacks) &&
        FIND(cuptiActivityEnable) && FIND(cuptiActivityDisable) && FIND(cuptiActivityFlushAll) &&
        FIND(cuptiActivityGetNextRecord) && FIND(cuptiActivityGetNumDroppedRecords);
#ifdef CUPTI_HAS_RANGES
    FIND(cuptiProfilerInitialize), FIND(cuptiProfilerDeInitialize), FIND(cuptiProfilerGetCounterAvailability);
    FIND(cuptiDeviceGetChipName), FIND(cuptiProfilerHostInitialize), FIND(cuptiProfilerHostDeinitialize);
    FIND(cuptiProfilerHostConfigAddMetrics), FIND(cuptiProfilerHostGetConfigImageSize), FIND(cuptiProfilerHostGetConfigImage);
    FIND(cuptiProfilerHostGetNumOfPasses), FIND(cuptiProfilerHostEvaluateToGpuValues), FIND(cuptiRangeProfilerEnable);
    FIND(cuptiRangeProfilerDisable), FIND(cuptiRangeProfilerGetCounterDataSize);
    FIND(cuptiRangeProfilerCounterDataImageInitialize), FIND(cuptiRangeProfilerSetConfig), FIND(cuptiRangeProfilerStart);
    FIND(cuptiRangeProfilerStop), FIND(cuptiRangeProfilerPushRange), FIND(cuptiRangeProfilerPopRange);
    FIND(cuptiRangeProfilerDecodeData), FIND(cuptiRangeProfilerGetCounterDataInfo);
#endif
#undef FIND
    return all;
}

/* 13 of 130001, 12 of the numbers that CUDA 12 counted in. */
static int major_of(uint32_t version)
{
    return version >= 100000 ? (int)(version / 10000) : 12;
}

int cupti_load(struct cupti_api *ret, char *ret_why, size_t size)
{
    uint32_t version = 0;
    ret->library = library_open(COUNT(names), names);
    if (!ret->library) {
        text(ret_why, size, "no CUPTI (libcupti.so): install the toolkit's cuda-cupti package, or set LD_LIBRARY_PATH to it");
        return -1;
    }
    bool all = find_all(ret->library, ret);
    if (all && !ret->cuptiGetVersion(&version) && major_of(version) == major_of(CUPTI_API_VERSION)) return 0;
    text(ret_why, size, "the libcupti.so found is of another major version (%u) than the toolkit of this build (%u)", version,
        (unsigned)CUPTI_API_VERSION);
    return -1;
}

void cupti_api_close(struct cupti_api *api)
{
    if (api->library) dlclose(api->library);
    *api = (struct cupti_api){.library = NULL};
}

int cupti_absent(char *ret_why, size_t size)
{
    void *there = NULL;
    for (int i = 0; i < COUNT(names) && !there; i++) there = dlopen(names[i], RTLD_NOLOAD | RTLD_LAZY);
    if (!there) return 0;
    dlclose(there);
    text(ret_why, size, "CUPTI stays in the process (another tool's, preloaded?): there is no time without it");
    return -1;
}

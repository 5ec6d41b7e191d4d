#include "nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };   /* NVML's numbers */

struct nvml {
    void *library, *device;
    int (*shutdown)(void);
    int (*driver)(char *, unsigned);
    int (*clock)(void *, int, unsigned *);
    int (*power)(void *, unsigned *);
    int (*temperature)(void *, int, unsigned *);
};

/* dlsym gives void *, ISO C wants it copied into a function pointer. False where the library lacks it. */
static bool find(void *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library, name);
    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol;
}

struct nvml *nvml_open(const char *uuid)
{
    int (*init)(void), (*by_uuid)(const char *, void **);
    struct nvml nvml = {.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!nvml.library) return NULL;
    bool all = find(nvml.library, "nvmlInit_v2", &init) && find(nvml.library, "nvmlDeviceGetHandleByUUID", &by_uuid) &&
               find(nvml.library, "nvmlShutdown", &nvml.shutdown) && find(nvml.library, "nvmlSystemGetDriverVersion",
                   &nvml.driver) &&
               find(nvml.library, "nvmlDeviceGetClockInfo", &nvml.clock) &&
               find(nvml.library, "nvmlDeviceGetPowerUsage", &nvml.power) &&
               find(nvml.library, "nvmlDeviceGetTemperature", &nvml.temperature);
    if (!all || init() || by_uuid(uuid, &nvml.device)) {
        dlclose(nvml.library);
        return NULL;
    }
    struct nvml *ret = must_alloc(1, sizeof *ret);
    *ret = nvml;
    return ret;
}

static int32_t clock_of(struct nvml *nvml, int which)
{
    unsigned value;
    return nvml && !nvml->clock(nvml->device, which, &value) ? (int32_t)value : -1;
}

void nvml_describe(struct nvml *nvml, struct machine *ret)
{
    unsigned value;
    ret->sm_clock_MHz = clock_of(nvml, CLOCK_SM);
    ret->memory_clock_MHz = clock_of(nvml, CLOCK_MEMORY);
    ret->power_W = nvml && !nvml->power(nvml->device, &value) ? (int32_t)(value / 1000) : -1;
    ret->temperature_C = nvml && !nvml->temperature(nvml->device, SENSOR_GPU, &value) ? (int32_t)value : -1;
    if (!nvml || nvml->driver(ret->driver, sizeof ret->driver)) ret->driver[0] = 0;
}

double nvml_sm_clock_MHz(struct nvml *nvml)
{
    int32_t MHz = clock_of(nvml, CLOCK_SM);
    return MHz < 0 ? NAN : MHz;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml) return;
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

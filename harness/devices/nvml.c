#include "nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "library.h"

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0, MORE_THAN_ROOM = 7 };   /* NVML's numbers */
enum { MOST_PROCESSES = 64 };

struct process {               /* NVML's layout of version 2 and later */
    unsigned           pid;
    unsigned long long memory_bytes;
    unsigned           gpu_instance, compute_instance;
};

struct nvml {
    void *library, *device;    /* of a MIG instance: the whole device, since an instance has no sensors */
    int (*shutdown)(void);
    int (*driver)(char *, unsigned);
    int (*clock)(void *, int, unsigned *);
    int (*power)(void *, unsigned *);
    int (*temperature)(void *, int, unsigned *);
    int (*held)(void *, unsigned long long *);             /* NULL where the library is older or newer than the name */
    int (*processes)(void *, unsigned *, struct process *);
};

/* CUDA names a MIG instance by the same bytes, NVML by another word before them. */
static bool find_device(void *library, int (*by_uuid)(const char *, void **), const char *uuid, void **ret)
{
    char mig[96];
    void *instance;
    int (*whole)(void *, void **);
    if (!by_uuid(uuid, ret)) return true;
    text(mig, sizeof mig, "MIG-%s", strncmp(uuid, "GPU-", 4) ? uuid : uuid + 4);
    if (by_uuid(mig, &instance) || !library_find(library, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", &whole)) return false;
    return !whole(instance, ret);
}

struct nvml *nvml_open(const char *uuid)
{
    int (*init)(void), (*by_uuid)(const char *, void **);
    struct nvml nvml = {.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!nvml.library) return NULL;
    const struct { const char *name; void *function; } needed[] = {
        {"nvmlInit_v2", &init}, {"nvmlDeviceGetHandleByUUID", &by_uuid}, {"nvmlShutdown", &nvml.shutdown},
        {"nvmlSystemGetDriverVersion", &nvml.driver}, {"nvmlDeviceGetClockInfo", &nvml.clock},
        {"nvmlDeviceGetPowerUsage", &nvml.power}, {"nvmlDeviceGetTemperature", &nvml.temperature}};
    bool all = true;
    for (int i = 0; i < COUNT(needed); i++) all &= library_find(nvml.library, needed[i].name, needed[i].function);
    if (!all || init() || !find_device(nvml.library, by_uuid, uuid, &nvml.device)) {
        dlclose(nvml.library);
        return NULL;
    }
    if (!library_find(nvml.library, "nvmlDeviceGetCurrentClocksEventReasons", &nvml.held))
        library_find(nvml.library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.held);
    if (!library_find(nvml.library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes))
        library_find(nvml.library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml.processes);
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

static int32_t held_of(struct nvml *nvml)
{
    static const struct { unsigned long long reason; int32_t held; } map[] = {
        {0x4, HELD_POWER_CAP}, {0x8, HELD_HARDWARE}, {0x20, HELD_THERMAL}, {0x40, HELD_THERMAL}, {0x80, HELD_BRAKE}};
    unsigned long long reasons;
    int32_t ret = 0;
    if (!nvml || !nvml->held || nvml->held(nvml->device, &reasons)) return -1;
    for (int i = 0; i < COUNT(map); i++)
        if (reasons & map[i].reason) ret |= map[i].held;
    return ret;
}

/* Ours is among them, but under a number that a container doesn't know. */
static int32_t others_of(struct nvml *nvml)
{
    struct process process[MOST_PROCESSES];
    unsigned n = COUNT(process);
    if (!nvml || !nvml->processes) return -1;
    int error = nvml->processes(nvml->device, &n, process);
    if (error && !(error == MORE_THAN_ROOM && n > COUNT(process))) return -1;
    return n ? (int32_t)n - 1 : -1;   /* not even ours: the list is hidden */
}

/* By our number; where there is one process alone, it is us, whatever its number. */
int64_t nvml_own_bytes(struct nvml *nvml)
{
    struct process process[MOST_PROCESSES];
    unsigned n = COUNT(process);
    if (!nvml || !nvml->processes || nvml->processes(nvml->device, &n, process)) return -1;
    for (unsigned i = 0; i < n; i++)
        if (n == 1 || process[i].pid == (unsigned)getpid())
            return process[i].memory_bytes <= INT64_MAX ? (int64_t)process[i].memory_bytes : -1;   /* all ones: not told */
    return -1;
}

void nvml_look(struct nvml *nvml, struct weather *ret)
{
    unsigned value;
    int32_t MHz = clock_of(nvml, CLOCK_MEMORY);
    *ret = (struct weather){MHz < 0 ? NAN : MHz, NAN, NAN, held_of(nvml), others_of(nvml), NAN, NAN, NAN};
    if (nvml && !nvml->power(nvml->device, &value)) ret->power_W = value * 1e-3;
    if (nvml && !nvml->temperature(nvml->device, SENSOR_GPU, &value)) ret->temperature_C = value;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml) return;
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

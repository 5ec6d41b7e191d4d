/* A library by the name of NVML's, loaded before anybody asks for the real one. */
#include "fake_nvml.h"

#include <string.h>
#include <unistd.h>

enum { NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

struct fake_nvml fake_nvml;

struct process {
    unsigned           pid;
    unsigned long long memory_bytes;
    unsigned           gpu_instance, compute_instance;
};

int nvmlInit_v2(void) { return fake_nvml.open++, 0; }
int nvmlShutdown(void) { return fake_nvml.open--, 0; }

int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret)
{
    if (!fake_nvml.uuid || strcmp(uuid, fake_nvml.uuid)) return NOT_FOUND;
    *ret = &fake_nvml;
    return 0;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *instance, void **ret)
{
    *ret = instance;
    return 0;
}

int nvmlSystemGetDriverVersion(char *ret, unsigned size) { return strncpy(ret, "580.1", size), 0; }

static int answer(unsigned value, unsigned *ret)
{
    if (!fake_nvml.lost) *ret = value;
    return fake_nvml.lost;
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *ret)
{
    (void)device;
    return answer(which == 1 ? fake_nvml.sm_MHz : fake_nvml.memory_MHz, ret);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *ret) { return (void)device, answer(fake_nvml.power_mW, ret); }

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret)
{
    (void)device;
    return sensor ? NOT_FOUND : answer(fake_nvml.temperature_C, ret);
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *ret)
{
    (void)device;
    if (!fake_nvml.lost) *ret = fake_nvml.reasons;
    return fake_nvml.lost;
}

/* As the real one: what has no room is counted, and nothing is written. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, struct process *ret)
{
    unsigned room = *n;
    (void)device;
    if (fake_nvml.lost) return fake_nvml.lost;
    *n = fake_nvml.processes;
    if (*n > room) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *n; i++)
        ret[i] = (struct process){.pid = i + 1 == fake_nvml.ours ? (unsigned)getpid() : 1u << 30 | i,
            .memory_bytes = fake_nvml.memory_B + i};
    return 0;
}

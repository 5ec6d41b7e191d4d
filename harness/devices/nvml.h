/* The few words of NVML that the harness asks, by dlopen: no driver, no NVML, no difference. Reads only, changes nothing. */
#ifndef KBENCH_NVML_H
#define KBENCH_NVML_H

#include "machine.h"
#include "weather.h"

struct nvml;

struct nvml *nvml_open(const char *uuid);                         /* NULL: not to be had; every function takes that */
void         nvml_describe(struct nvml *, struct machine *ret);   /* driver, clocks, power, temperature; -1 unknown */
double       nvml_sm_clock_MHz(struct nvml *);                    /* NaN unknown */
/* Clocks, power, heat, what holds the clocks down, processes beside one. All unknown without NVML. */
void         nvml_look(struct nvml *, struct weather *ret);
int64_t      nvml_own_bytes(struct nvml *);                       /* device memory that this process holds; -1 unknown */
void         nvml_close(struct nvml *);

#endif

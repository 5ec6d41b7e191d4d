/* What the CPU is and what it can do: names from /proc and cpuid, ceilings measured. */
#ifndef KBENCH_HOST_CEILINGS_H
#define KBENCH_HOST_CEILINGS_H

#include "device.h"

void host_describe(struct machine *ret);
int  host_ceilings(struct dev *dev, struct ceilings *ret);

#endif

/* What a row group will cost, before anything runs. Crude on purpose: to tell a minute from an hour and 1 GB from 100. */
#ifndef KBENCH_PLAN_ESTIMATE_H
#define KBENCH_PLAN_ESTIMATE_H

#include "cli.h"
#include "machine.h"

struct plan_estimate {
    double bytes;      /* inputs and outputs of the ring, on the device */
    double seconds;    /* fill, reference, check and timing of all kernels */
    int    sets;       /* in the ring */
};

/*
 * Memory: a cold ring has as many input sets as touch max(256 MB, 2 x last-level cache) together; sets that may share one copy of a
 * sparse tensor do, and outputs take turns in as many copies as fill the same bytes. Hot: one set. Workspace is not counted.
 * Time: what is written at 1 GB/s, plus for each kernel a check of ten calls and the timing: its cap, or 30 calls of the ring at a
 * tenth of the read ceiling where that is shorter.
 */
struct plan_estimate plan_estimate(const struct group *, const struct machine *, const struct cli *);

#endif

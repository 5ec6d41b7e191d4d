/* Was the machine quiet? Decided from samples alone, so that other work shows where process lists are hidden: all kernels of a
 * group and the canary, a tiny fixed piece of work before each sample, are witnesses of the same time. What strikes one kernel
 * alone is its own; what strikes the canary too, or two kernels at once and hard, came from outside. Pure: knows no device. */
#ifndef KBENCH_QUIET_H
#define KBENCH_QUIET_H

#include <stdbool.h>
#include "runfolder.h"

/* The samples of one kernel in measured order, and what is found about them. */
struct witness {
    int                  n;
    const struct sample *sample;
    bool                 contended, throttled;
    char                 why[160];         /* what was seen; empty where nothing was */
};

/* Judges all kernels that were timed in the same rounds. */
void quiet_judge(struct witness *, int n);

/* Samples of several placements: what differs between placements is no drift. */
bool quiet_drifts(const struct sample *, int n);

/* How far a row is from quiet by its marks: 0 is quiet, or noisy alone, which measuring again does not mend. */
int  quiet_badness(const char *marks);
/* How often at most a row with these marks is worth another try. */
int  quiet_tries(const char *marks);

#endif

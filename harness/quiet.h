/* Was the machine quiet? Decided from samples alone, so that other work shows where process lists are hidden: all kernels of a
 * group and the canary, a tiny fixed piece of work before each sample, are witnesses of the same time. What strikes one kernel
 * alone is its own; what strikes the canary too, or two kernels at once and hard, came from outside. Pure: knows no device. */
#ifndef KBENCH_QUIET_H
#define KBENCH_QUIET_H

#include <stdbool.h>
#include "runfolder.h"

/* Quiet H200s keep within 2 % as a rule and within 12 % where a kernel has two times of its own; a time slice of another process
 * takes a millisecond or more out of a sample of two. */
#define QUIET_LONGER 1.15
#define QUIET_LOST_NS 1e5
#define QUIET_PLACED 1.1   /* how many times as long at most, by where data lies */

/* The samples of one kernel in measured order, and what is found about them. */
struct witness {
    int                  n;
    const struct sample *sample;
    bool                 contended, throttled;
    char                 why[160];         /* what was seen; empty where nothing was */
};

/* Judges all kernels that were timed in the same rounds. */
void quiet_judge(struct witness *, int n);

/* How many of n pieces of the same work took longer by other work, by at least least_ns; a quarter of them tells how long they
 * take else, fewer than three tell nothing. *ret_beyond_ns grows by what they took beyond that. */
int  quiet_longer(const double *ns, int n, double least_ns, double *ret_beyond_ns);

/* Samples of several placements: what differs between placements is no drift. */
bool quiet_drifts(const struct sample *, int n);

/* How far a row is from quiet by its marks: 0 is quiet, or noisy alone, which measuring again does not mend. */
int  quiet_badness(const char *marks);
/* How often at most a row with these marks is worth another try. */
int  quiet_tries(const char *marks);

#endif

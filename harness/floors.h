/* The noise floor of a row: the same kernel twice in one group (A/A). What differs is noise, so that no smaller difference between
 * two kernels or two runs means anything. Beside it what a tracer costs that is off, by loaded.h in workers that had none. */
#ifndef KBENCH_FLOORS_H
#define KBENCH_FLOORS_H

#include <signal.h>
#include "supervisor.h"

/* For each row of the plan. Prints them, writes results/runs/doctor-<uuid>.json for the gate: per row op, kernel, dims, tune,
 * cache and floor_pct, the largest difference of the medians over the repeats, and in how many of those other work was seen;
 * and of data at one place, by how much a call takes longer: again_pct, in the second of two runs without a tracer than in the
 * first; loaded_pct, in rounds with its library in the process, but off, than in rounds of the same run without; gone_pct, in
 * these than in that second run; traced_pct, once a tracer has been on, than in that (null, and loaded_why, where there is
 * none); and the command that measured them. Rows that the file has of this device and that are not measured now stay as they
 * are; a file that can't be joined is renamed, and said so. With env, the object of env.json (else NULL), stdout gets that
 * with the floors measured now in it, and words go to stderr. Interrupted, it keeps the rows whose repeats are all there. The
 * exit code. */
int floors_run(struct supervisor *, struct cli *, const struct registry *, const struct plan *, const char *env,
    const volatile sig_atomic_t *interrupted);

#endif

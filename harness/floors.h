/* The noise floor of a row: the same kernel twice in one group (A/A). What differs is noise, so that no smaller difference between
 * two kernels or two runs means anything. Beside it what a tracer costs that is loaded but off, by loaded.h in workers that had
 * none. */
#ifndef KBENCH_FLOORS_H
#define KBENCH_FLOORS_H

#include <signal.h>
#include "supervisor.h"

/* For each row of the selection (none: sweeps/default.ini). Prints them, writes results/runs/doctor-<uuid>.json for the gate:
 * per row op, kernel, dims, tune, cache and floor_pct, the largest difference of the medians over the repeats, and in how
 * many of those other work was seen; loaded_pct, how much longer a call takes after the tracer than before it, with data at one
 * place (null, and loaded_why, where there is none), and again_pct, the same of two blocks before it. The exit code. */
int floors_run(struct supervisor *, struct cli *, const struct registry *, const volatile sig_atomic_t *interrupted);

#endif

/* From verdicts and samples to a row's numbers: the limit, shares of it, implausible times, marks. */
#ifndef KBENCH_MEASURES_H
#define KBENCH_MEASURES_H

#include "timer.h"

/* Median of the probe's lane, NaN where the group has none. */
double measures_probe_ns(const struct timer *);
/* Everything of a row but who it is (op, kernel, dims, seed: the parent knows). lane: NULL where it was not timed. */
void measures_row(struct row *ret, const struct job *, int variant, const struct lane *, const struct workload *, double probe_ns);

/* The fewest bytes that a call of this kernel must read and write, mean over the ring. */
void measures_traffic(const struct kernel *, const struct workload *, double *ret_read, double *ret_written);

/* The longest of bytes at the read ceiling, flop at the matrix ceiling and one block's latency, ns; *ret_by says which. */
double measures_limit_ns(const struct ceilings *, double bytes, double flop, const char **ret_by);

#endif

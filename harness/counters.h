/* Hardware counters of some calls: what a device counted, or why it did not. */
#ifndef KBENCH_COUNTERS_H
#define KBENCH_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

struct counters {
#define COUNTER(name, unit, help) double name;
#include "counters.def"
#undef COUNTER
    int32_t passes;     /* runs of the same work that it took */
    char    why[240];   /* nothing was counted, and why; or empty */
};

struct counter {
    const char *name, *unit, *help;
    size_t      offset;
};

extern const struct counter counter_columns[];
extern const int            n_counters;

void counters_clear(struct counters *);                  /* all NaN */
/* Amounts (not shares) of `calls` calls to those of one. */
void counters_per_call(struct counters *, double calls);

/* perf_event counters of this process and its threads around enqueue(arg). 0, or non-zero and why. */
int  host_count(int (*enqueue)(void *arg), void *arg, struct counters *ret);

#endif

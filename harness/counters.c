#include "counters.h"

#include <math.h>
#include <string.h>

const struct counter counter_columns[] = {
#define COUNTER(name, unit, help) {#name, unit, help, offsetof(struct counters, name)},
#include "counters.def"
#undef COUNTER
};

const int n_counters = sizeof counter_columns / sizeof counter_columns[0];

static double *at(struct counters *c, int i)
{
    return (double *)((char *)c + counter_columns[i].offset);
}

void counters_clear(struct counters *c)
{
    *c = (struct counters){0};
    for (int i = 0; i < n_counters; i++) *at(c, i) = NAN;
}

void counters_per_call(struct counters *c, double calls)
{
    for (int i = 0; i < n_counters; i++)
        if (strcmp(counter_columns[i].unit, "%")) *at(c, i) /= calls;
}

/* A profiled row for people: where a call's time goes, what the counters saw, and whether the trace can be believed. */
#ifndef KBENCH_REPORT_PROFILE_H
#define KBENCH_REPORT_PROFILE_H

#include "profile.h"
#include "report.h"

void report_profile(FILE *, const struct row *, const struct profile *, const struct machine *, const struct report_options *);
/* The same of the rows of a run folder: trees from o->breakdown, all else, or why there is none, from o->counters. */
void report_trees(FILE *, const struct row *rows, int n, const struct report_options *o);

#endif

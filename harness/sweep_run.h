/* A run under way: what `check`, `sweep` and `profile` keep from group to group, and how a group of the plan becomes rows. */
#ifndef KBENCH_SWEEP_RUN_H
#define KBENCH_SWEEP_RUN_H

#include <signal.h>
#include "commands.h"
#include "profile_files.h"
#include "progress.h"
#include "report.h"
#include "run_files.h"
#include "supervisor.h"
#include "sweep.h"

struct sweep_run {
    struct cli           *cli;
    volatile sig_atomic_t *interrupted;   /* number of the signal; -1: a file can't be written */
    struct registry       registry;
    struct supervisor     supervisor;
    struct plan           plan;
    struct run_files      files;      /* of a sweep; a check keeps none */
    struct report_options report;
    struct progress       progress;
    struct table          rows;       /* of this invocation, in order */
    struct scalings       scalings;   /* of all rows in the folder; they point into `all` */
    struct table          all;
    bool                  check_only, stdout_gone;
    struct profile_log   *profile;    /* of `profile`, else NULL */
    bool                  failed_before, marked_before;   /* what stood already in a run that is resumed */
    int                   file_error;
    double                budget_per_row_s, began_s;
    int                   busy;       /* groups in a row that stayed marked, however often they were measured */
};

/* What the group at hand shows behind its table. */
struct profile_log {
    struct profile_files files;
    int                  n, failed;
    int64_t              at;          /* where its lines of counters.csv begin */
    struct profiled      of[MAX_VARIANTS];
};

struct job sweep_job(const struct sweep_run *, const struct group *);
/* Runs the job and keeps its rows. again: NULL, or why rows that stand already are measured once more. beside: NULL, or which
 * variants only keep them company. */
void sweep_run_job(struct sweep_run *, struct job *, const char *again, const bool *beside);
/* Rows[first..] are the group's as they stay: what follows from a row's time and its counters follows from that time. */
void sweep_settle_profiles(struct sweep_run *, int first);

#endif

/* From words to a plan: job files (INI) and command-line selections -> problems x kernels x tunables -> row groups. */
#ifndef KBENCH_SWEEP_H
#define KBENCH_SWEEP_H

#include <stdio.h>
#include "cli.h"
#include "nearest.h"
#include "registry.h"

/* One axis: the values of a dimension or tunable, in the order given. */
struct axis {
    char     name[32];
    int      n;
    int64_t *value;
};

/* "batch=1,16,64", "ctx=8K:128K:*2", "topk=64:512:+64", mixes "1,2,8:64:*2". K and M are powers of 1024.
 * "tail=page0,unique" where the values of a dimension have words. 0, or non-zero with
 * "what: why" in ret_error. At most 4096 values. */
int  axis_parse(const char *text, struct axis *ret, char *ret_error, size_t size);
void axis_free(struct axis *);

/* A whole number with an optional sign and K or M at *at, which moves behind it. 0, or non-zero with the reason. */
int  axis_number(const char **at, int64_t *ret, const char **ret_why);
/* The same for a value of the named dimension or tunable: a word where its values have some, or a number. */
int  axis_value(const char *name, const char **at, int64_t *ret, char *ret_why, size_t size);

/* Everything wrong with files, options and names ends in die(EXIT_USAGE, "file:line: what, why, did you mean"); nothing has run
 * then. machine: which engine's kernels are planned, and its memory for the estimate. Run-wide settings of a job file's [global]
 * (budget, noise, max-time, rounds, timeout) land in cli unless it has them already; --show-config prints them and exits. */
struct plan sweep_plan(struct cli *, const struct registry *, const struct machine *);
void        plan_free(struct plan *);

/* The same from job files that were read already (none: the command line alone), for callers that want words instead of an end. */
struct jobfile;
int sweep_build(struct cli *, const struct registry *, const struct machine *, const struct jobfile *, struct plan *ret,
                char *ret_error, size_t size);

/* --dry-run: the groups with an estimate of time and memory each, and the sum. */
void plan_print(FILE *, const struct plan *, const struct registry *, const struct machine *, const struct cli *);
/* plan.ini: a job file that plans the same groups again. malloc'ed text. */
char *plan_ini(const struct plan *, const struct registry *, const struct cli *);

#endif

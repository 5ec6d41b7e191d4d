/* Where words of a selection lead: job files by name, and the words of --row. */
#ifndef KBENCH_SWEEP_FILES_H
#define KBENCH_SWEEP_FILES_H

#include "scope.h"

/* Reads the job files that the command line names, or the default one, or none where it selects by itself. */
int sweep_files(const struct cli *, struct jobfile *, char *ret_error, size_t size);

/* Names of the job files below sweeps/, without .ini, sorted. malloc'ed, as are the names; returns how many. */
int sweep_names(char ***ret);

/* NULL with `trouble` set where there is no such kernel, or it is one of the check's references. */
const struct entry *row_kernel(const struct registry *, const char *name, struct place, struct trouble *);
/* One NAME=VALUE of --row: a dimension into the group, a tunable into `fixed`. */
int row_word(const struct op *, const struct kernel *, const char *word, struct place, struct group *, struct fixed *,
             struct trouble *);

#endif

/* samples.csv: every round of every row in measured order, under the names that say which row it belongs to. */
#ifndef KBENCH_SAMPLES_H
#define KBENCH_SAMPLES_H

#include <stdio.h>
#include "file_columns.h"
#include "runfolder.h"
#include "table.h"

/* 0 or errno. All samples of a row are one write. */
int samples_write_header(FILE *, int n_dims, const char *const *dims);
int samples_write(FILE *, int n_dims, const char *const *dims, const struct row *, int n, const struct sample *);

/* Rewrites samples.csv, breakdown.csv or counters.csv with the whole lines of the rows in `done` alone. 0, or non-zero with
 * "file:line: why" in ret_error. */
int lines_keep(const char *path, enum csv_file, const struct table *done, char *ret_error, size_t size);

#endif

/* rows.csv: RFC 4180, header, C locale, empty where not applicable. Appended and flushed row by row. */
#ifndef KBENCH_TABLE_H
#define KBENCH_TABLE_H

#include <stdio.h>
#include "csv.h"
#include "row.h"

enum { MAX_DIM_COLUMNS = 64 };

struct table {
    int         n;
    struct row *row;
    int         n_dims;                        /* dimension columns of the header, also those that no row has a value for */
    char        dims[MAX_DIM_COLUMNS][24];
    int         again;                         /* rows that gave way to a quieter one of the same measurement; see again.h */
    size_t      bytes;                         /* of the file up to the end of its last whole line */
    int         torn;                          /* the number of the line behind that, which was cut short; 0: none */
    bool        has[64];                       /* by column of columns[]: the header names it */
};

/* dims: the union of the dimension names of the run's ops, in plan order; a row's dims not in the header are a bug (99). Return
 * 0, or errno of the failing write (ENOSPC, EPIPE). */
int table_write_header(FILE *, int n_dims, const char *const *dims);
int table_write_row(FILE *, int n_dims, const char *const *dims, const struct row *);

/* A dimension's cell, here and in samples.csv: its word where it has words, else a number; empty for INT64_MIN. Read: non-zero
 * where it is neither. */
void dim_cell(struct csv_out *, const char *dim, int64_t value);
int  cell_dim(const char *dim, const char *cell, int64_t *ret);

/* Reads any rows.csv by its header, in any order; unknown columns are dims when they stand where dims stand (behind `marks` or
 * before `tune`), and else kept out. Of rows that were measured
 * again the quietest is there. A last line cut short by a kill is left out. On unreadable input returns non-zero and writes
 * "file:line: what: why" to ret_error. */
int table_read(const char *path, struct table *ret, char *ret_error, size_t size);
void table_free(struct table *);

/* Whether the header names this column or dimension. */
bool table_has(const struct table *, const char *name);

#endif

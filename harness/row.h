/* A row: one kernel on one problem, with everything that rows.csv says of it. Reads and writes without knowing any op. */
#ifndef KBENCH_ROW_H
#define KBENCH_ROW_H

#include <stdbool.h>
#include "op.h"

/* Words of the status column, in the same order as status_name[]. From WRONG to IMPLAUSIBLE, except UNSUPPORTED and OOM, a row
 * has failed: exit code 1. */
enum status {
    STATUS_OK, STATUS_WRONG, STATUS_NAN, STATUS_OVERWRITE, STATUS_CAPTURE_FAIL, STATUS_UNSUPPORTED, STATUS_OOM,
    STATUS_TIMEOUT, STATUS_CRASH, STATUS_IMPLAUSIBLE, STATUS_SKIPPED, STATUS_COUNT,
};

extern const char *const status_name[STATUS_COUNT];

struct row_dim {
    char    name[24];
    int64_t value;
};

struct row {
#define TEXT(name, bytes, unit, help)  char name[bytes];
#define WHOLE(name, unit, help)        int64_t name;
#define REAL(name, unit, help)         double name;
#define DIMS                           int32_t n_dims; struct row_dim dim[MAX_DIMS];
#include "columns.def"
#undef TEXT
#undef WHOLE
#undef REAL
#undef DIMS
};

/* columns.def as data: what writer, reader and `kbench list columns` walk over. */
enum column_kind { COLUMN_TEXT, COLUMN_WHOLE, COLUMN_REAL, COLUMN_DIMS };

struct column {
    enum column_kind kind;
    const char      *name, *unit, *help;  /* NULL for COLUMN_DIMS */
    size_t           offset, size;        /* within struct row; size of a TEXT with its final zero */
};

extern const struct column columns[];
extern const int           n_columns;

/* All cells empty: "", INT64_MIN, NaN, no dims. */
void row_clear(struct row *);

/* The row's status, or STATUS_COUNT where the word is not one of status_name[]. */
enum status row_status(const struct row *);

/* Whether the row's status is one of those that make the run fail. */
int row_failed(const struct row *);

/* A probe is timed but computes nothing that could be checked: ok, with nothing checked. */
bool row_is_probe(const struct row *);

/* The value of a dimension, or INT64_MIN where the row has none of that name. */
int64_t row_dim(const struct row *, const char *name);

/* Same op, dims, cache and seed: the rows compete. The same kernel and tunables too: it is the same measurement. Dims may stand
 * in any order, and a dim without a value is like one that is not there. */
bool row_same_group(const struct row *, const struct row *);
bool row_same_key(const struct row *, const struct row *);

#endif

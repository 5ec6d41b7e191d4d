/* A row: one kernel on one problem, with everything that rows.csv says of it. Reads and writes without knowing any op. */
#ifndef KBENCH_ROW_H
#define KBENCH_ROW_H

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

/* All cells empty: "", INT64_MIN, NaN, no dims. */
void row_clear(struct row *);

/* Whether the row's status is one of those that make the run fail. */
int row_failed(const struct row *);

/* The value of a dimension, or INT64_MIN where the row has none of that name. */
int64_t row_dim(const struct row *, const char *name);

#endif

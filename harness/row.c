#include "row.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const char *const status_name[STATUS_COUNT] = {
    [STATUS_OK] = "ok",
    [STATUS_WRONG] = "wrong",
    [STATUS_NAN] = "nan",
    [STATUS_OVERWRITE] = "overwrite",
    [STATUS_CAPTURE_FAIL] = "capture_fail",
    [STATUS_UNSUPPORTED] = "unsupported",
    [STATUS_OOM] = "oom",
    [STATUS_TIMEOUT] = "timeout",
    [STATUS_CRASH] = "crash",
    [STATUS_IMPLAUSIBLE] = "implausible",
    [STATUS_SKIPPED] = "skipped",
};

const struct column columns[] = {
#define TEXT(name, bytes, unit, help)  {COLUMN_TEXT, #name, unit, help, offsetof(struct row, name), bytes},
#define WHOLE(name, unit, help)        {COLUMN_WHOLE, #name, unit, help, offsetof(struct row, name), sizeof(int64_t)},
#define REAL(name, unit, help)         {COLUMN_REAL, #name, unit, help, offsetof(struct row, name), sizeof(double)},
#define DIMS                           {COLUMN_DIMS, NULL, NULL, NULL, offsetof(struct row, dim), 0},
#include "columns.def"
#undef TEXT
#undef WHOLE
#undef REAL
#undef DIMS
};

const int n_columns = sizeof(columns) / sizeof(columns[0]);

void row_clear(struct row *row)
{
    memset(row, 0, sizeof(*row));
    for (int c = 0; c < n_columns; c++) {
        char *cell = (char *)row + columns[c].offset;
        if (columns[c].kind == COLUMN_WHOLE)
            *(int64_t *)cell = INT64_MIN;
        else if (columns[c].kind == COLUMN_REAL)
            *(double *)cell = NAN;
    }
}

enum status row_status(const struct row *row) {
    for (int s = 0; s < STATUS_COUNT; s++) {
        if (!strcmp(row->status, status_name[s]))
            return (enum status)s;
    }
    return STATUS_COUNT;
}

/* A word that this version doesn't know fails: a new kind of failure must not turn a gate green. */
int row_failed(const struct row *row)
{
    switch (row_status(row)) {
    case STATUS_OK:
    case STATUS_UNSUPPORTED:
    case STATUS_OOM:
    case STATUS_SKIPPED:
        return 0;
    default:
        return 1;
    }
}

bool row_is_probe(const struct row *row)
{
    return row_status(row) == STATUS_OK && !(row->checked_pct > 0);
}

int64_t row_dim(const struct row *row, const char *name)
{
    for (int i = 0; i < row->n_dims; i++) {
        if (!strcmp(row->dim[i].name, name))
            return row->dim[i].value;
    }
    return INT64_MIN;
}

static bool dims_within(const struct row *a, const struct row *b)
{
    for (int i = 0; i < a->n_dims; i++) {
        if (row_dim(b, a->dim[i].name) != a->dim[i].value)
            return false;
    }
    return true;
}

bool row_same_group(const struct row *a, const struct row *b)
{
    return !strcmp(a->op, b->op) && !strcmp(a->cache, b->cache) && a->seed == b->seed && dims_within(a, b) && dims_within(b, a);
}

bool row_same_key(const struct row *a, const struct row *b)
{
    return !strcmp(a->kernel, b->kernel) && !strcmp(a->tune, b->tune) && row_same_group(a, b);
}

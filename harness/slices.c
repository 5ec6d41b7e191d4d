#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "figure.h"
#include "registry.h"

static bool drawable(const struct row *row)
{
    return row_status(row) == STATUS_OK && row->t_med_ns > 0;
}

/* Equal but for dim. Rows of one op have their dims in one order. */
static bool beside(const struct row *a, const struct row *b, const char *dim)
{
    if (a->n_dims != b->n_dims || a->seed != b->seed || strcmp(a->op, b->op) || strcmp(a->engine, b->engine) ||
        strcmp(a->cache, b->cache))
        return false;
    for (int i = 0; i < a->n_dims; i++) {
        if (strcmp(a->dim[i].name, b->dim[i].name)) return false;
        if (a->dim[i].value != b->dim[i].value && strcmp(a->dim[i].name, dim)) return false;
    }
    return true;
}

bool slice_has(const struct slice *slice, const struct row *row)
{
    return beside(slice->like, row, slice->dim);
}

bool dim_varies(const struct table *table, const char *op, const char *dim)
{
    int64_t first = INT64_MIN;
    for (int i = 0; i < table->n; i++) {
        int64_t value = strcmp(table->row[i].op, op) ? INT64_MIN : row_dim(&table->row[i], dim);
        if (value == INT64_MIN) continue;
        if (first == INT64_MIN) first = value;
        if (first != value) return true;
    }
    return false;
}

/* What the op says of a dim; NULL where this build doesn't know the op any more. */
static const struct dim *op_says(const char *op, const char *dim)
{
    const struct op *known = op_find(op);
    int d = known ? op_dim(known, dim) : -1;
    return d < 0 ? NULL : &known->dim[d];
}

static int count_defaults(const struct row *row)
{
    int n = 0;
    for (int i = 0; i < row->n_dims; i++) {
        const struct dim *said = op_says(row->op, row->dim[i].name);
        n += said && said->dflt == row->dim[i].value;
    }
    return n;
}

/* Counts x and points of a slice; a probe alone makes no figure. */
static void measure(const struct table *table, struct slice *slice)
{
    int64_t *seen = must_alloc((size_t)table->n, sizeof(seen[0]));
    for (int i = 0; i < table->n; i++) {
        const struct row *row = &table->row[i];
        if (!drawable(row) || row_is_probe(row) || !slice_has(slice, row)) continue;
        int64_t x = row_dim(row, slice->dim);
        int k = 0;
        while (k < slice->values && seen[k] != x) k++;
        if (k == slice->values) seen[slice->values++] = x;
        slice->points++;
    }
    free(seen);
}

struct slices {
    int           n, room;
    struct slice *slice;
};

static void add_slice(struct slices *to, const struct table *table, const struct row *like, const char *dim, int dim_index)
{
    for (int s = to->n - 1; s >= 0; s--) {
        if (to->slice[s].dim_index == dim_index && slice_has(&to->slice[s], like)) return;
    }
    const struct dim *said = op_says(like->op, dim);
    struct slice slice = {.like = like, .dim_index = dim_index, .at_default = count_defaults(like)};
    text(slice.dim, sizeof(slice.dim), "%s", dim);
    text(slice.unit, sizeof(slice.unit), "%s", said && said->unit ? said->unit : "");
    if (said && said->dflt == row_dim(like, dim)) slice.at_default--;   /* the axis itself doesn't count */
    measure(table, &slice);
    if (to->n == to->room) {
        to->room = 2 * to->room + 16;
        to->slice = must_grow(to->slice, (size_t)to->room, sizeof(slice));
    }
    to->slice[to->n++] = slice;
}

/* Within an axis: more x, more points, more dims at their defaults, then the larger problem. */
static int better_first(const void *p, const void *q)
{
    const struct slice *a = p, *b = q;
    if (a->dim_index != b->dim_index) return a->dim_index < b->dim_index ? -1 : 1;
    if (a->values != b->values) return a->values > b->values ? -1 : 1;
    if (a->points != b->points) return a->points > b->points ? -1 : 1;
    if (a->at_default != b->at_default) return a->at_default > b->at_default ? -1 : 1;
    for (int i = 0; i < a->like->n_dims && i < b->like->n_dims; i++) {
        int64_t x = a->like->dim[i].value, y = b->like->dim[i].value;
        if (x != y) return x > y ? -1 : 1;
    }
    return 0;
}

/* The first of each axis, then the second of each. */
static struct slice *take_turns(struct slices from)
{
    struct slice *ret = must_alloc((size_t)from.n, sizeof(ret[0]));
    if (from.n) qsort(from.slice, (size_t)from.n, sizeof(from.slice[0]), better_first);
    int n = 0;
    for (int turn = 0; n < from.n; turn++) {
        for (int s = 0, place = 0; s < from.n; s++) {
            place = s && from.slice[s].dim_index == from.slice[s - 1].dim_index ? place + 1 : 0;
            if (place == turn) ret[n++] = from.slice[s];
        }
    }
    free(from.slice);
    return ret;
}

struct slice *slices_find(const struct table *table, int *ret_n)
{
    struct { char op[32], dim[24]; } axis[256];
    int n_axes = 0;
    struct slices found = {0};
    for (int i = 0; i < table->n; i++) {
        const struct row *row = &table->row[i];
        for (int d = 0; d < row->n_dims && drawable(row); d++) {
            const char *dim = row->dim[d].name;
            int a = 0;
            while (a < n_axes && (strcmp(axis[a].op, row->op) || strcmp(axis[a].dim, dim))) a++;
            if (a == COUNT(axis)) continue;
            if (a == n_axes) {
                strcpy(axis[a].op, row->op);
                strcpy(axis[a].dim, dim);
                n_axes++;
            }
            const struct dim *said = op_says(row->op, dim);
            if ((said && said->label) || !dim_varies(table, row->op, dim)) continue;
            add_slice(&found, table, row, dim, a);
        }
    }
    int n = 0;
    for (int s = 0; s < found.n; s++) {
        if (found.slice[s].values >= 2) found.slice[n++] = found.slice[s];
    }
    found.n = n;
    *ret_n = n;
    return take_turns(found);
}

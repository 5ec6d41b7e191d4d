#include "figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "format.h"
#include "report.h"

/* A kernel with its tunables, as one line through the rows of a slice. */
struct runner {
    const struct row *row;   /* the first of it */
    char              label[200];
    bool              probe;
    int               style;
};

struct runners {
    int           n;
    struct runner of[256];
};

static bool same_runner(const struct row *a, const struct row *b)
{
    return !strcmp(a->kernel, b->kernel) && !strcmp(a->tune, b->tune);
}

/* Numbers of the kernels of an op over the whole table, so that a colour means the same kernel in every figure. */
static int style_of(const struct table *table, const struct row *row)
{
    int style = 0;
    for (int i = 0; i < table->n; i++) {
        const struct row *other = &table->row[i];
        if (strcmp(other->op, row->op) || row_is_probe(other)) continue;
        if (same_runner(other, row)) return style;
        bool first = true;
        for (int k = 0; k < i && first; k++) first = strcmp(table->row[k].op, row->op) || !same_runner(&table->row[k], other);
        style += first;
    }
    return style;
}

static void find_runners(const struct table *table, const struct slice *slice, struct runners *ret)
{
    ret->n = 0;
    for (int i = 0; i < table->n; i++) {
        const struct row *row = &table->row[i];
        if (!slice_has(slice, row) || row_status(row) != STATUS_OK || !(row->t_med_ns > 0)) continue;
        int k = 0;
        while (k < ret->n && !same_runner(ret->of[k].row, row)) k++;
        if (k < ret->n || k == COUNT(ret->of)) continue;
        struct runner *runner = &ret->of[ret->n++];
        *runner = (struct runner){.row = row, .probe = row_is_probe(row), .style = style_of(table, row)};
        label_text(row, table->row, table->n, runner->label, sizeof(runner->label));
    }
}

static int by_x(const void *a, const void *b)
{
    int64_t x = ((const struct point *)a)->x, y = ((const struct point *)b)->x;
    return (x > y) - (x < y);
}

/* The row of a runner at x, the last one where it was measured twice; NULL: none. */
static const struct row *row_at(const struct table *table, const struct slice *slice, const struct row *runner, int64_t x)
{
    for (int i = table->n - 1; i >= 0; i--) {
        const struct row *row = &table->row[i];
        if (same_runner(row, runner) && row_dim(row, slice->dim) == x && slice_has(slice, row)) return row;
    }
    return NULL;
}

static struct point time_of(const struct row *row)
{
    struct point p = {.y = NAN, .lo = NAN, .hi = NAN};
    if (row_status(row) != STATUS_OK || !(row->t_med_ns > 0) || !isfinite(row->t_med_ns)) return p;
    p.y = row->t_med_ns;
    p.lo = row->t_lo_ns > 0 && row->t_lo_ns <= p.y ? row->t_lo_ns : p.y;
    p.hi = row->t_hi_ns >= p.y && isfinite(row->t_hi_ns) ? row->t_hi_ns : p.y;
    return p;
}

/* base's time over p's, with the widest interval that both intervals allow. */
static struct point ratio_of(struct point base, struct point p)
{
    return (struct point){.x = p.x, .y = base.y / p.y, .lo = base.lo / p.hi, .hi = base.hi / p.lo};
}

static void sort_points(struct curve *curve)
{
    qsort(curve->point, (size_t)curve->n, sizeof(curve->point[0]), by_x);
    int n = 0;
    for (int i = 0; i < curve->n; i++) {
        if (!n || curve->point[n - 1].x != curve->point[i].x) curve->point[n++] = curve->point[i];
    }
    curve->n = n;
}

/* base: NULL for times. */
static struct curve make_curve(const struct table *table, const struct slice *slice,
    const struct runner *runner, const struct row *base)
{
    struct curve curve = {.style = runner->probe ? -1 : runner->style, .point = must_alloc((size_t)table->n, sizeof(struct point))};
    text(curve.label, sizeof(curve.label), runner->probe ? "%.150s (probe)" : "%.190s", runner->label);
    for (int i = 0; i < table->n; i++) {
        if (!same_runner(&table->row[i], runner->row) || !slice_has(slice, &table->row[i])) continue;
        int64_t x = row_dim(&table->row[i], slice->dim);
        struct point p = time_of(row_at(table, slice, runner->row, x));
        p.x = x;
        if (base) {
            const struct row *its = row_at(table, slice, base, x);
            if (!its) continue;
            p = ratio_of(time_of(its), p);
            if (same_runner(base, runner->row)) p.lo = p.hi = p.y;   /* one by definition, whatever its interval */
        }
        curve.point[curve.n++] = p;
    }
    sort_points(&curve);
    return curve;
}

static struct curve make_limit(const struct table *table, const struct slice *slice, const struct row *base)
{
    struct curve curve = {.style = -2, .point = must_alloc((size_t)table->n, sizeof(struct point))};
    text(curve.label, sizeof(curve.label), "limit");
    for (int i = 0; i < table->n; i++) {
        const struct row *row = &table->row[i];
        if (!(row->limit_ns > 0) || !isfinite(row->limit_ns) || row_is_probe(row) || !slice_has(slice, row)) continue;
        struct point p = {row_dim(row, slice->dim), row->limit_ns, row->limit_ns, row->limit_ns};
        if (base) {
            const struct row *its = row_at(table, slice, base, p.x);
            if (!its) continue;
            p = ratio_of(time_of(its), p);
        }
        curve.point[curve.n++] = p;
    }
    sort_points(&curve);
    return curve;
}

static bool has_points(const struct curve *curve)
{
    for (int i = 0; i < curve->n; i++) {
        if (isfinite(curve->point[i].y)) return true;
    }
    return false;
}

static bool style_taken(const struct figure *figure, int style)
{
    for (int c = 0; c < figure->n; c++) {
        if (figure->curve[c].style == style) return true;
    }
    return false;
}

static void add_curve(struct figure *figure, struct curve curve)
{
    if (!has_points(&curve) || figure->n == MAX_LINES) {
        free(curve.point);
        return;
    }
    if (curve.style >= 0) curve.style %= STYLES;
    while (curve.style >= 0 && style_taken(figure, curve.style)) curve.style = (curve.style + 1) % STYLES;
    figure->curve[figure->n++] = curve;
}

static struct figure make_figure(const struct table *table, const struct slice *slice, const struct runners *runners,
    const struct runner *const *kernel, int n_kernels, int page, int pages, bool ratio)
{
    struct figure figure = {.like = slice->like, .page = page, .pages = pages, .ratio = ratio};
    int per_page = MAX_KERNELS - 1, probes = 0;
    const struct row *base = ratio ? kernel[0]->row : NULL;
    memcpy(figure.dim, slice->dim, sizeof(figure.dim));
    memcpy(figure.unit, slice->unit, sizeof(figure.unit));
    strcpy(figure.base, kernel[0]->label);
    add_curve(&figure, make_curve(table, slice, kernel[0], base));
    for (int k = 1 + page * per_page; k < n_kernels && k < 1 + (page + 1) * per_page; k++) {
        add_curve(&figure, make_curve(table, slice, kernel[k], base));
    }
    for (int k = 0; k < runners->n && !probes; k++) {
        if (runners->of[k].probe) add_curve(&figure, make_curve(table, slice, &runners->of[k], base)), probes++;
    }
    add_curve(&figure, make_limit(table, slice, base));
    return figure;
}

int figures_make(const struct table *table, const struct slice *slice, struct figure **ret)
{
    struct runners *runners = must_alloc(1, sizeof(*runners));
    const struct runner *kernel[COUNT(runners->of)];
    int n_kernels = 0, n = 0;
    find_runners(table, slice, runners);
    for (int k = 0; k < runners->n; k++) {
        if (!runners->of[k].probe) kernel[n_kernels++] = &runners->of[k];
    }
    int pages = n_kernels > 1 ? (n_kernels - 1 + MAX_KERNELS - 2) / (MAX_KERNELS - 1) : n_kernels;
    *ret = must_alloc(2 * (size_t)pages, sizeof(**ret));
    for (int page = 0; page < pages; page++) {
        (*ret)[n++] = make_figure(table, slice, runners, kernel, n_kernels, page, pages, false);
        if (n_kernels > 1) (*ret)[n++] = make_figure(table, slice, runners, kernel, n_kernels, page, pages, true);
    }
    free(runners);
    return n;
}

void figures_free(struct figure *figures, int n)
{
    for (int f = 0; f < n; f++) {
        for (int c = 0; c < figures[f].n; c++) free(figures[f].curve[c].point);
    }
    free(figures);
}

#include "scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "registry.h"

const char *const scaling_word[4] = {"ok", "above", "open", ""};
const double SCALING_FLAT = 1.05;
static const double SAME_WORK = 0.98;

/* Rows of one series are measured minutes apart. On a GPU with steady clocks that hardly shows; a CPU shares its caches and
 * memory with whatever else runs. */
static double apart_of(const struct row *row)
{
    return strcmp(row->engine, "host") ? 0.005 : 0.05;
}

double scaling_room(const struct row *row)
{
    return strcmp(row->engine, "host") ? 0.2 : 0.5;
}

/* What the op says of a dim; NULL where this build doesn't know it. */
static const struct dim *op_says(const char *op, const char *dim)
{
    const struct op *known = op_find(op);
    int d = known ? op_dim(known, dim) : -1;
    return d < 0 ? NULL : &known->dim[d];
}

/* Walks over "max_ctx^1;batch^1": false at the end. */
static bool next_declared(const char **at, char *ret_dim, size_t size, double *ret_exponent)
{
    size_t n = strcspn(*at, ";"), name = strcspn(*at, "^;");
    if (!n) return false;
    text(ret_dim, size, "%.*s", (int)name, *at);
    *ret_exponent = name < n ? strtod(*at + name + 1, NULL) : NAN;
    *at += n + ((*at)[n] == ';');
    return true;
}

double row_declared(const struct row *row, const char *dim)
{
    char   name[24];
    double exponent;
    for (const char *at = row->declared; next_declared(&at, name, sizeof(name), &exponent);)
        if (!strcmp(name, dim)) return exponent;
    return NAN;
}

char *row_growth_text(const struct row *row, char *ret, size_t size)
{
    char   name[24], power[24];
    double exponent;
    ret[0] = '\0';
    for (const char *at = row->declared; next_declared(&at, name, sizeof(name), &exponent);) {
        const struct dim *said = op_says(row->op, name);
        size_t n = strlen(ret);
        if (!said || !(exponent > said->ideal)) continue;
        text(power, sizeof(power), exponent == 1 ? "" : "^%g", exponent);
        text(ret + n, size - n, "%sO(%s%s)", n ? " " : "", name, power);
    }
    return ret;
}

static bool measured(const struct row *row)
{
    return row_status(row) == STATUS_OK && row->t_med_ns > 0 && isfinite(row->t_med_ns);
}

/* Order of rows in which each series along a dim is a run, ascending in that dim. */
struct order {
    const char *dim;
};

static int by_series(const struct row *a, const struct row *b, const char *dim)
{
    const char *const words[][2] = {{a->op, b->op}, {a->kernel, b->kernel}, {a->tune, b->tune}, {a->engine, b->engine},
        {a->cache, b->cache}};
    for (int i = 0; i < COUNT(words); i++) {
        int order = strcmp(words[i][0], words[i][1]);
        if (order) return order;
    }
    if (a->seed != b->seed) return a->seed < b->seed ? -1 : 1;
    if (a->n_dims != b->n_dims) return a->n_dims - b->n_dims;
    for (int i = 0; i < a->n_dims; i++) {
        int order = strcmp(a->dim[i].name, b->dim[i].name);
        if (order) return order;
        if (strcmp(a->dim[i].name, dim) && a->dim[i].value != b->dim[i].value) return a->dim[i].value < b->dim[i].value ? -1 : 1;
    }
    return 0;
}

static int by_series_and_size(const void *p, const void *q, void *arg)
{
    const struct row *a = *(const struct row *const *)p, *b = *(const struct row *const *)q;
    const struct order *order = arg;
    int ret = by_series(a, b, order->dim);
    int64_t x = row_dim(a, order->dim), y = row_dim(b, order->dim);
    return ret ? ret : x != y ? (x < y ? -1 : 1) : a < b ? -1 : a > b;
}

/* Rows [0, n) of a series as points; a size that was measured twice counts once, with all that both leave open. */
static int make_points(const struct row *const *row, int n, const char *dim, struct scaling_point *ret)
{
    int points = 0;
    for (int i = 0; i < n; i++) {
        double t = row[i]->t_med_ns, x = (double)row_dim(row[i], dim);
        struct scaling_point p = {x, t, row[i]->t_lo_ns > 0 && row[i]->t_lo_ns <= t ? row[i]->t_lo_ns : t,
            row[i]->t_hi_ns >= t && isfinite(row[i]->t_hi_ns) ? row[i]->t_hi_ns : t, row[i]->t_min_ns};
        struct scaling_point *before = points ? &ret[points - 1] : NULL;
        if (before && before->x == x)
            *before = (struct scaling_point){x, t, fmin(before->lo, p.lo), fmax(before->hi, p.hi), fmin(before->best, p.best)};
        else ret[points++] = p;
    }
    return points;
}

/* The growth at the large sizes as an exponent: between the last and what is a quarter of it. A kernel that waits for something
 * else at small sizes bends the fit, but not this. */
struct slope {
    double t, low, best;      /* of times, the least that their intervals allow, of the fastest rounds (as t where unknown) */
};

static struct slope tail_slope(const struct scaling_point *p, int n, double apart)
{
    const struct scaling_point *to = &p[n - 1], *from = to;
    while (from > p && from->x * SCALING_SPREAD > to->x) from--;
    double span = log(to->x / from->x), best = to->best > 0 && from->best > 0 ? to->best / from->best : to->t / from->t;
    double low = to->lo * (1 - apart) / (from->hi * (1 + apart));
    return (struct slope){log(to->t / from->t) / span, log(low) / span, log(best) / span};
}

static enum scaling_verdict judge(const struct scaling *s, const struct scaling_point *p, int n, double apart)
{
    if (!strcmp(s->last->cache, "hot") || row_is_probe(s->last) || isnan(s->declared)) return SCALING_UNJUDGED;
    if (!(s->declared > 0)) {
        /* The fastest rounds are a second witness: what else runs on a machine makes times longer, never shorter. */
        bool best = !(p[0].best > 0) || !(p[n - 1].best > 0) || p[n - 1].best / p[0].best > SCALING_FLAT;
        if (s->ratio_lo > SCALING_FLAT && best) return SCALING_ABOVE;
        return s->ratio > SCALING_FLAT ? SCALING_OPEN : SCALING_OK;
    }
    double bar = s->declared + scaling_room(s->last);
    struct slope tail = tail_slope(p, n, apart);
    if (s->fit.lo > bar && tail.low > bar && tail.best > bar) return SCALING_ABOVE;
    return s->fit.exponent > bar && tail.t > bar ? SCALING_OPEN : SCALING_OK;
}

static void add_words(char *ret, size_t size, const char *words)
{
    size_t n = strlen(ret);
    if (n < size) text(ret + n, size - n, "%s", words);
}

/* ./kbench sweep -k 'scan/full' -a batch=32 -a max_ctx=8K,64K,1M --seed 1 [--device host] [--plugin ./mine.so] */
static void repeat_series(const struct row *const *row, int n, struct scaling *s)
{
    char word[160], value[32], tune[sizeof(row[0]->tune)], *mark;
    text(s->repeat, sizeof(s->repeat), "./kbench sweep -k '%s'", s->last->kernel);
    for (int d = 0; d < s->last->n_dims; d++) {
        const struct row_dim *dim = &s->last->dim[d];
        const struct dim *said = op_says(s->last->op, dim->name);
        if (!strcmp(dim->name, s->dim) || (said && said->dflt == dim->value)) continue;
        add_words(s->repeat, sizeof(s->repeat),
            text(word, sizeof(word), " -a %s=%s", dim->name, dim_text(dim->name, dim->value, value, sizeof(value))));
    }
    add_words(s->repeat, sizeof(s->repeat), text(word, sizeof(word), " -a %s=", s->dim));
    for (int i = 0; i < n; i++) {
        int64_t x = row_dim(row[i], s->dim);
        if (i && x == row_dim(row[i - 1], s->dim)) continue;
        add_words(s->repeat, sizeof(s->repeat), text(word, sizeof(word), "%s%s", i ? "," : "", dim_text(s->dim, x, value,
            sizeof(value))));
    }
    text(tune, sizeof(tune), "%s", s->last->tune);
    for (char *one = strtok_r(tune, ";", &mark); one; one = strtok_r(NULL, ";", &mark))
        add_words(s->repeat, sizeof(s->repeat), text(word, sizeof(word), " -t %s", one));
    const char *rest = strstr(s->last->repeat, "' --seed ");   /* with the seed, cache, device and plug-ins of the row's own */
    if (rest) add_words(s->repeat, sizeof(s->repeat), rest + 1);
}

/* Where a size should cost nothing, sizes at which there is less to do say nothing: with ctx = 1K top-k finds 256 entries instead
 * of 512. Leaves out the first of them, as long as enough stay to judge. */
static int same_work(const struct row *const *row, int n, const char *dim)
{
    const struct row *last = row[n - 1];
    int first = n - 1;
    while (first > 0 && row[first - 1]->bytes >= SAME_WORK * last->bytes && row[first - 1]->flop >= SAME_WORK * last->flop) first--;
    int sizes = 1;
    for (int i = first + 1; i < n; i++) sizes += row_dim(row[i], dim) != row_dim(row[i - 1], dim);
    bool enough = sizes >= SCALING_POINTS && row_dim(last, dim) >= SCALING_SPREAD * row_dim(row[first], dim);
    return enough ? first : 0;
}

static void add_series(struct scalings *to, const struct row *const *row, int n, const char *dim)
{
    const struct dim *said = op_says(row[0]->op, dim);
    struct scaling s = {.first = row[0], .last = row[n - 1], .unit = said && said->unit ? said->unit : "", .declared = NAN,
        .ideal = NAN};
    struct scaling_point *p = must_alloc((size_t)n, sizeof(*p));
    double apart = apart_of(row[0]);
    text(s.dim, sizeof(s.dim), "%s", dim);
    s.ideal = said ? said->ideal : NAN;
    s.declared = row_declared(s.last, dim);
    if (isnan(s.declared)) s.declared = s.ideal;
    while (n && !(row_dim(row[0], dim) > 0)) row++, n--;        /* no power of nothing */
    int skipped = n && s.declared <= 0 ? same_work(row, n, dim) : 0;
    row += skipped, n -= skipped;
    s.points = make_points(row, n, dim, p);
    if (s.points >= SCALING_POINTS && p[s.points - 1].x >= SCALING_SPREAD * p[0].x) {
        const struct scaling_point *first = p, *last = &p[s.points - 1];
        s.first = row[0];
        s.from = (int64_t)first->x, s.to = (int64_t)last->x;
        s.fit = scaling_fit(p, s.points, apart);
        s.ratio = last->t / first->t;
        s.ratio_lo = last->lo * (1 - apart) / (first->hi * (1 + apart));
        s.ratio_hi = last->hi * (1 + apart) / (first->lo * (1 - apart));
        s.verdict = judge(&s, p, s.points, apart);
        repeat_series(row, n, &s);
        to->of = must_grow(to->of, (size_t)to->n + 1, sizeof(s));
        to->of[to->n++] = s;
    }
    free(p);
}

/* In the order in which rows, and dims within a row, stand. */
static int by_place(const void *p, const void *q)
{
    const struct scaling *a = p, *b = q;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    int x = 0, y = 0;
    while (x < a->first->n_dims && strcmp(a->first->dim[x].name, a->dim)) x++;
    while (y < b->first->n_dims && strcmp(b->first->dim[y].name, b->dim)) y++;
    return x - y;
}

struct scalings scalings_find(const struct table *table)
{
    const struct row **row = must_alloc((size_t)table->n, sizeof(*row));
    char dims[MAX_DIM_COLUMNS][24];
    int  n_rows = 0, n_dims = 0;
    struct scalings ret = {0};
    for (int i = 0; i < table->n; i++) {
        const struct row *one = &table->row[i];
        if (!measured(one)) continue;
        row[n_rows++] = one;
        for (int d = 0; d < one->n_dims; d++) {
            int k = 0;
            while (k < n_dims && strcmp(dims[k], one->dim[d].name)) k++;
            if (k == n_dims && k < MAX_DIM_COLUMNS) strcpy(dims[n_dims++], one->dim[d].name);
        }
    }
    for (int d = 0; d < n_dims; d++) {
        struct order order = {dims[d]};
        qsort_r(row, (size_t)n_rows, sizeof(*row), by_series_and_size, &order);
        for (int i = 0, end; i < n_rows; i = end) {
            for (end = i + 1; end < n_rows && !by_series(row[i], row[end], dims[d]); end++) {}
            const struct dim *said = op_says(row[i]->op, dims[d]);
            if (row_dim(row[i], dims[d]) != INT64_MIN && !(said && said->label)) add_series(&ret, row + i, end - i, dims[d]);
        }
    }
    free(row);
    if (ret.n) qsort(ret.of, (size_t)ret.n, sizeof(*ret.of), by_place);
    return ret;
}

void scalings_free(struct scalings *s)
{
    free(s->of);
    *s = (struct scalings){0};
}

static int count(const struct scalings *s, enum scaling_verdict verdict)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) n += s->of[i].verdict == verdict;
    return n;
}

int scalings_above(const struct scalings *s)
{
    return count(s, SCALING_ABOVE);
}

int scalings_open(const struct scalings *s)
{
    return count(s, SCALING_OPEN);
}

#include "expand.h"

#include <string.h>

#include "base.h"

/* The values of an op's dimensions. Dims that are walked together share a wheel: the first of them. */
struct product {
    const struct op *op;
    int              n_dims;
    const int64_t   *value[MAX_DIMS];
    int              count[MAX_DIMS], wheel[MAX_DIMS], turn[MAX_DIMS];
};

int dim_check(const struct op *op, int dim, int64_t value, struct place at, struct trouble *trouble)
{
    const struct dim *d = &op->dim[dim];
    char              lo[24], hi[24], choices[160];
    if (value >= d->min && value <= d->max) return 0;
    if (d->names)
        return fail(trouble, at, "%s=%lld: %s takes %s in op %s", d->name, (long long)value, d->name,
            dim_choices(d->name, choices, sizeof choices), op->name);
    return fail(trouble, at, "%s=%lld: %s takes %s to %s %s in op %s", d->name, (long long)value, d->name,
        value_text(d->min, lo, sizeof lo), value_text(d->max, hi, sizeof hi), d->unit ? d->unit : "", op->name);
}

static int bind_axes(const struct family *f, const struct op *op, struct product *p, struct trouble *trouble)
{
    *p = (struct product){.op = op, .n_dims = op_dims(op)};
    for (int d = 0; d < p->n_dims; d++) {
        const struct setting *s = family_axis(f, op->dim[d].name);
        p->wheel[d] = d;
        p->value[d] = s ? s->axis.value : &op->dim[d].dflt;
        p->count[d] = s ? s->axis.n : 1;
        for (int i = 0; s && i < s->axis.n; i++) TRY(dim_check(op, d, s->axis.value[i], s->at, trouble));
    }
    return 0;
}

static int bind_zip(const struct zip *zip, struct product *p, struct trouble *trouble)
{
    int lead = -1;
    for (int d = 0; d < p->n_dims; d++) {
        bool named = false;
        for (int i = 0; i < zip->n; i++) named |= !strcmp(zip->name[i], p->op->dim[d].name);
        if (!named) continue;
        if (p->wheel[d] != d) return fail(trouble, zip->at, "%s is in another zip, too", p->op->dim[d].name);
        if (lead < 0) lead = d;
        if (p->count[d] != p->count[lead])
            return fail(trouble, zip->at, "%s has %d values and %s has %d; they are walked together",
                p->op->dim[lead].name, p->count[lead], p->op->dim[d].name, p->count[d]);
        p->wheel[d] = lead;
    }
    return 0;
}

static int bind_zips(const struct family *f, struct product *p, struct trouble *trouble)
{
    const struct scope *const scopes[] = {f->cli, f->section, f->global};
    for (int i = 0; i < COUNT(scopes); i++)
        for (int k = 0; k < scopes[i]->n_zips; k++) TRY(bind_zip(&scopes[i]->zip[k], p, trouble));
    return 0;
}

static int check_size(const struct family *f, const struct product *p, struct trouble *trouble)
{
    double n = 1;
    for (int d = 0; d < p->n_dims; d++)
        if (p->wheel[d] == d) n *= p->count[d];
    if (n <= MAX_PROBLEMS) return 0;
    return fail(trouble, f->at, "%s: %.4g problems of op %s; take fewer values or larger steps (at most %d)", f->name, n,
        p->op->name, MAX_PROBLEMS);
}

/* The last dimension turns fastest. False: all are through. */
static bool turn(struct product *p)
{
    for (int d = p->n_dims - 1; d >= 0; d--) {
        if (p->wheel[d] != d) continue;
        if (++p->turn[d] < p->count[d]) return true;
        p->turn[d] = 0;
    }
    return false;
}

static void read_dims(const struct product *p, int64_t *ret_dim)
{
    for (int d = 0; d < p->n_dims; d++) ret_dim[d] = p->value[d][p->turn[p->wheel[d]]];
}

static int tunable_index(const struct kernel *k, const char *name)
{
    for (int i = 0; i < kernel_tunables(k); i++)
        if (!strcmp(k->tunable[i].name, name)) return i;
    return -1;
}

static int tune_check(const struct kernel *k, int t, int64_t value, struct place at, const char *kernel, struct trouble *trouble)
{
    const struct tunable *tunable = &k->tunable[t];
    bool bounded = tunable->min || tunable->max;
    if (bounded ? value >= tunable->min && value <= tunable->max : value == (int32_t)value) return 0;
    return fail(trouble, at, "%s=%lld: %s takes %d to %d", tunable->name, (long long)value, kernel,
        (int)(bounded ? tunable->min : INT32_MIN), (int)(bounded ? tunable->max : INT32_MAX));
}

int variant_resolve(const struct fixed *fixed, const struct kernel *k, struct variant *ret, struct trouble *trouble)
{
    *ret = (struct variant){0};
    text(ret->kernel, sizeof ret->kernel, "%s", fixed->kernel);
    for (int t = 0; t < kernel_tunables(k); t++) ret->tune[t] = k->tunable[t].value[0];
    for (int i = 0; i < fixed->n; i++) {
        int t = tunable_index(k, fixed->tune[i].name);
        if (t < 0) {
            const char *names[MAX_TUNABLES];
            char        hint[96];
            int         n = kernel_tunables(k);
            for (int j = 0; j < n; j++) names[j] = k->tunable[j].name;
            return fail(trouble, fixed->at, "%s: %s has no such tunable%s", fixed->tune[i].name, fixed->kernel,
                did_you_mean(fixed->tune[i].name, names, n, hint, sizeof hint));
        }
        TRY(tune_check(k, t, fixed->tune[i].value, fixed->at, fixed->kernel, trouble));
        ret->tune[t] = fixed->tune[i].value;
    }
    return 0;
}

static const struct setting *family_tune(const struct family *f, const char *name)
{
    const struct scope *const scopes[] = {f->cli, f->section, f->global};
    for (int i = 0; i < COUNT(scopes); i++)
        for (int k = 0; k < scopes[i]->n_tunes; k++)
            if (!strcmp(scopes[i]->tune[k].axis.name, name)) return &scopes[i]->tune[k];
    return NULL;
}

/* All settings of a kernel's tunables, the last tunable turning fastest. */
static int add_tuned(const struct family *f, const struct chosen *c, const struct group *problem, struct builder *b,
    struct trouble *trouble)
{
    const struct kernel  *k = c->entry->kernel;
    const struct setting *set[MAX_TUNABLES] = {0};
    int                   n = kernel_tunables(k), turned[MAX_TUNABLES] = {0}, t;
    for (t = 0; t < n; t++) {
        set[t] = family_tune(f, k->tunable[t].name);
        for (int i = 0; set[t] && i < set[t]->axis.n; i++)
            TRY(tune_check(k, t, set[t]->axis.value[i], set[t]->at, c->entry->name, trouble));
    }
    do {
        struct variant v = {0};
        text(v.kernel, sizeof v.kernel, "%s", c->entry->name);
        for (t = 0; t < n; t++) v.tune[t] = set[t] ? (int32_t)set[t]->axis.value[turned[t]] : k->tunable[t].value[0];
        const char *full = builder_add(b, problem, &v, is_probe(c->entry));
        if (full) return fail(trouble, f->at, "%s: %s", f->name, full);
        for (t = n - 1; t >= 0 && ++turned[t] == (set[t] ? set[t]->axis.n : 1); t--) turned[t] = 0;
    } while (t >= 0);
    return 0;
}

static int add_variants(const struct family *f, const struct selection *s, const struct group *problem, struct builder *b,
    struct trouble *trouble)
{
    for (int i = 0; i < s->n; i++) {
        const struct chosen *c = &s->kernel[i];
        if (strcmp(c->op->name, problem->op)) continue;
        if (!c->fixed) {
            TRY(add_tuned(f, c, problem, b, trouble));
            continue;
        }
        struct variant v;
        TRY(variant_resolve(c->fixed, c->entry->kernel, &v, trouble));
        const char *full = builder_add(b, problem, &v, is_probe(c->entry));
        if (full) return fail(trouble, f->at, "%s: %s", f->name, full);
    }
    return 0;
}

static bool left_out(const struct family *f, const struct op *op, const struct group *g, struct left_out *out)
{
    const struct scope *const scopes[] = {f->cli, f->section, f->global};
    for (int i = 0; i < COUNT(scopes); i++)
        for (int k = 0; k < scopes[i]->n_skips; k++)
            if (condition_holds(&scopes[i]->skip[k], op, g->dim)) return out->skipped++, true;
    struct problem p = {.op = op, .seed = g->seed};
    memcpy(p.dim, g->dim, sizeof p.dim);
    const char *why = op->invalid ? op->invalid(&p) : NULL;
    char        dims[200];
    if (why && !out->invalid)
        text(out->why, sizeof out->why, "%s (%s %s)", why, op->name, problem_text(&p, false, dims, sizeof dims));
    out->invalid += why != NULL;
    return why != NULL;
}

static int expand_op(const struct family *f, const struct selection *s, const struct op *op, struct builder *b,
    struct left_out *out, struct trouble *trouble)
{
    struct scope     *cache_from = f->cli->has_cache ? f->cli : f->section->has_cache ? f->section : f->global;
    struct scope     *seed_from = f->cli->has_seed ? f->cli : f->section->has_seed ? f->section : f->global;
    enum cache_choice cache = cache_from->has_cache ? cache_from->cache : CACHE_COLD;
    struct product    p;
    struct group      g = {.seed = seed_from->has_seed ? seed_from->seed : f->cli->seed};
    text(g.op, sizeof g.op, "%s", op->name);
    TRY(bind_axes(f, op, &p, trouble));
    TRY(bind_zips(f, &p, trouble));
    TRY(check_size(f, &p, trouble));
    do {
        read_dims(&p, g.dim);
        if (left_out(f, op, &g, out)) continue;
        for (int hot = cache == CACHE_HOT; hot <= (cache != CACHE_COLD); hot++) {
            g.cache = hot ? HOT : COLD;
            TRY(add_variants(f, s, &g, b, trouble));
        }
    } while (turn(&p));
    return 0;
}

int family_expand(
    const struct family *f, const struct selection *s, struct builder *b, struct left_out *out, struct trouble *trouble)
{
    for (int i = 0; i < s->n_ops; i++) {
        bool here = false;
        for (int k = 0; k < s->n; k++) here |= s->kernel[k].op == s->op[i];
        if (here) TRY(expand_op(f, s, s->op[i], b, out, trouble));
    }
    return 0;
}

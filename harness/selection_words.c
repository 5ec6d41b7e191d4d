/* Which words of a scope mean something to what was selected; one that means nothing to any is a mistake, and said to be. */
#include "selection.h"

#include <string.h>

#include "base.h"

static bool has_dim(const struct op *const *op, int n_ops, const char *name)
{
    for (int i = 0; i < n_ops; i++)
        if (op_dim(op[i], name) >= 0) return true;
    return false;
}

static bool zip_applies(const struct zip *zip, const struct op *op)
{
    int n = 0;
    for (int i = 0; i < zip->n; i++) n += op_dim(op, zip->name[i]) >= 0;
    return n >= 2;
}

static bool condition_applies(const struct condition *c, const struct op *op)
{
    for (int i = 0; i < c->n; i++)
        if (op_dim(op, c->comparison[i].name) < 0) return false;
    return true;
}

static bool some_kernel_has(const struct selection *s, const char *tunable)
{
    for (int i = 0; i < s->n; i++)
        for (int t = 0; t < kernel_tunables(s->kernel[i].entry->kernel); t++)
            if (!strcmp(s->kernel[i].entry->kernel->tunable[t].name, tunable)) return true;
    return false;
}

void selection_mark_used(struct scope *scope, const struct selection *s)
{
    for (int i = 0; i < scope->n_axes; i++) scope->axis[i].used |= has_dim(s->op, s->n_ops, scope->axis[i].axis.name);
    for (int i = 0; i < scope->n_tunes; i++) scope->tune[i].used |= some_kernel_has(s, scope->tune[i].axis.name);
    for (int i = 0; i < s->n_ops; i++) {
        for (int k = 0; k < scope->n_zips; k++) scope->zip[k].used |= zip_applies(&scope->zip[k], s->op[i]);
        for (int k = 0; k < scope->n_skips; k++) scope->skip[k].used |= condition_applies(&scope->skip[k], s->op[i]);
    }
}

static int unused_dim(struct place at, const char *name, const struct op *const *selected, int n_ops, struct trouble *trouble)
{
    const char *names[256];
    char        hint[128], list[128] = "";
    int         n = 0;
    for (int i = 0; i < n_ops; i++) {
        text(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", selected[i]->name);
        for (int d = 0; d < op_dims(selected[i]) && n < COUNT(names); d++) names[n++] = selected[i]->dim[d].name;
    }
    return fail(trouble, at, "%s: no selected op has this dimension (selected: %s)%s", name, *list ? list : "none",
        did_you_mean(name, names, n, hint, sizeof hint));
}

static int unused_tune(const struct setting *s, const struct op *const *selected, int n_ops, const struct registry *r,
    struct trouble *trouble)
{
    const char *names[256];
    char        hint[128];
    int         n = 0;
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < n_ops; k++)
            for (int t = 0; !strcmp(selected[k]->name, r->entry[i].kernel->op) && t < kernel_tunables(r->entry[i].kernel); t++)
                if (n < COUNT(names)) names[n++] = r->entry[i].kernel->tunable[t].name;
    return fail(trouble, s->at, "%s: no selected kernel has this tunable%s", s->axis.name,
        did_you_mean(s->axis.name, names, n, hint, sizeof hint));
}

int selection_unused(const struct scope *scope, const struct op *const *selected, int n_ops, const struct registry *r,
    struct trouble *trouble)
{
    for (int i = 0; i < scope->n_axes; i++)
        if (!scope->axis[i].used) return unused_dim(scope->axis[i].at, scope->axis[i].axis.name, selected, n_ops, trouble);
    for (int i = 0; i < scope->n_tunes; i++)
        if (!scope->tune[i].used) return unused_tune(&scope->tune[i], selected, n_ops, r, trouble);
    for (int i = 0; i < scope->n_zips; i++) {
        const struct zip *z = &scope->zip[i];
        int               k = 0;
        while (k < z->n - 1 && has_dim(selected, n_ops, z->name[k])) k++;
        if (!z->used) return unused_dim(z->at, z->name[k], selected, n_ops, trouble);
    }
    for (int i = 0; i < scope->n_skips; i++) {
        const struct condition *c = &scope->skip[i];
        int                     k = 0;
        while (k < c->n - 1 && has_dim(selected, n_ops, c->comparison[k].name)) k++;
        if (!c->used) return unused_dim(c->at, c->comparison[k].name, selected, n_ops, trouble);
    }
    return 0;
}

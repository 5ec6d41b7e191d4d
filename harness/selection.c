#include "selection.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

bool is_probe(const struct entry *e)
{
    return e->kernel->promises & PROBE;
}

static bool is_oracle(const struct entry *e)
{
    return e->kernel->promises & ORACLE;
}

static bool is_plugin(const struct entry *e)
{
    const struct entry *builtin = builtin_kernels;
    while (builtin->kernel && builtin->kernel != e->kernel) builtin++;
    return !builtin->kernel;
}

static bool matches(const struct glob *globs, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!fnmatch(globs[i].word, name, 0)) return true;
    return false;
}

/* A lone "attn" means all of its kernels; what has a slash means a kernel. */
static int no_match(const struct registry *r, const struct glob *glob, struct trouble *trouble)
{
    const char **names = must_alloc((size_t)r->n, sizeof *names), *near;
    char         hint[128] = "";
    bool         cuda = false, lone = !strchr(glob->word, '/');
    for (int i = 0; i < r->n; i++) {
        names[i] = lone ? r->entry[i].kernel->op : r->entry[i].name;
        cuda |= r->entry[i].kernel->engine == CUDA;
    }
    near = nearest(glob->word, names, r->n);
    if (near) text(hint, sizeof hint, "; did you mean '%s%s'?", near, lone ? "/*" : "");
    free(names);
    return fail(trouble, glob->at, "%s: no kernel matches%s%s", glob->word, cuda ? "" : " (this build has no cuda engine)", hint);
}

/* Each glob must name something; one that only names references for the check is told so. */
static int check_globs(const struct registry *r, struct glob *globs, int n, bool to_run, struct trouble *trouble)
{
    for (int i = 0; i < n; i++) {
        const struct entry *oracle = NULL;
        bool                found = false;
        for (int k = 0; k < r->n; k++) {
            if (fnmatch(globs[i].word, r->entry[k].name, 0)) continue;
            if (is_oracle(&r->entry[k])) oracle = &r->entry[k];
            else found = true;
        }
        if (!found && oracle && to_run)
            return fail(trouble, globs[i].at,
                "%s: is the reference of large problems, which the check runs by itself; it is no competitor",
                oracle->name);
        if (!found && !oracle) return no_match(r, &globs[i], trouble);
    }
    return 0;
}

static void choose(struct selection *s, const struct entry *e, const struct fixed *fixed)
{
    if (!fixed)
        for (int i = 0; i < s->n; i++)
            if (s->kernel[i].entry == e) return;
    const struct op *op = op_find(e->kernel->op);
    s->kernel = must_grow(s->kernel, (size_t)s->n + 1, sizeof *s->kernel);
    s->kernel[s->n++] = (struct chosen){e, op, fixed};
}

static void note_op(struct selection *s, const struct op *op)
{
    for (int i = 0; i < s->n_ops; i++)
        if (s->op[i] == op) return;
    s->op = must_grow(s->op, (size_t)s->n_ops + 1, sizeof *s->op);
    s->op[s->n_ops++] = op;
}

/* Without words for kernels, the family's own dimensions choose: every op that has them all. */
static bool has_all_axes(const struct scope *scope, const struct op *op)
{
    for (int i = 0; i < scope->n_axes; i++)
        if (op_dim(op, scope->axis[i].axis.name) < 0) return false;
    return true;
}

static void choose_by_axes(const struct family *f, const struct registry *r, struct selection *s)
{
    const struct scope *own = f->section->n_axes ? f->section : f->cli;
    bool all = own == f->cli && f->cli->n_kernels;      /* -k chooses; a dimension then counts where an op has it */
    for (int i = 0; i < r->n; i++)
        if (!is_oracle(&r->entry[i]) && (all || has_all_axes(own, op_find(r->entry[i].kernel->op)))) choose(s, &r->entry[i], NULL);
}

static void choose_by_globs(const struct glob *globs, int n, const struct registry *r, struct selection *s)
{
    for (int g = 0; g < n; g++)
        for (int i = 0; i < r->n; i++)
            if (!is_oracle(&r->entry[i]) && !fnmatch(globs[g].word, r->entry[i].name, 0)) choose(s, &r->entry[i], NULL);
}

static int choose_fixed(const struct scope *scope, const struct registry *r, struct selection *s, struct trouble *trouble)
{
    for (int i = 0; i < scope->n_fixed; i++) {
        struct glob glob = {.at = scope->fixed[i].at};
        text(glob.word, sizeof glob.word, "%s", scope->fixed[i].kernel);
        const struct entry *e = registry_find(r, glob.word);
        if (!e) return no_match(r, &glob, trouble);
        TRY(check_globs(r, &glob, 1, true, trouble));
        choose(s, e, &scope->fixed[i]);
    }
    return 0;
}

/* What the family itself says, before the command line narrows it. */
static int choose_candidates(const struct family *f, const struct registry *r, struct selection *s, struct trouble *trouble)
{
    struct scope *own = f->section->n_kernels || f->section->n_fixed ? f->section : f->global;
    if (own->n_fixed) return choose_fixed(own, r, s, trouble);
    TRY(check_globs(r, own->kernel, own->n_kernels, true, trouble));
    if (own->n_kernels) choose_by_globs(own->kernel, own->n_kernels, r, s);
    else choose_by_axes(f, r, s);
    /* A plug-in competes wherever its op is run: that's what it was given for. */
    for (int i = 0, n = s->n; i < r->n; i++)
        for (int k = 0; k < n && is_plugin(&r->entry[i]); k++)
            if (!strcmp(s->kernel[k].entry->kernel->op, r->entry[i].kernel->op)) choose(s, &r->entry[i], NULL);
    return 0;
}

/* -k keeps what it matches, in its own order. */
static void keep_matching(const struct glob *globs, int n, struct selection *s)
{
    struct chosen *kept = must_alloc((size_t)s->n, sizeof *kept);
    int            count = 0;
    for (int g = 0; g < n; g++)
        for (int i = 0; i < s->n; i++)
            if (s->kernel[i].entry && !fnmatch(globs[g].word, s->kernel[i].entry->name, 0)) {
                kept[count++] = s->kernel[i];
                s->kernel[i].entry = NULL;
            }
    free(s->kernel);
    s->kernel = kept, s->n = count;
}

static void drop_skipped(const struct scope *scope, struct selection *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (!matches(scope->skip_kernel, scope->n_skip_kernels, s->kernel[i].entry->name)) s->kernel[n++] = s->kernel[i];
    s->n = n;
}

static void drop_other_engine(struct selection *s, enum engine engine)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (s->kernel[i].entry->kernel->engine == engine) {
            s->kernel[n++] = s->kernel[i];
        } else {
            s->other = s->kernel[i].entry;
            s->other_engine++;
        }
    }
    s->n = n;
}

static void add_probes(const struct family *f, const struct registry *r, enum engine engine, struct selection *s)
{
    const struct scope *scopes[] = {f->cli, f->section, f->global};
    for (int i = 0, n = s->n; i < r->n; i++) {
        bool wanted = is_probe(&r->entry[i]) && r->entry[i].kernel->engine == engine, rival = false;
        for (int k = 0; k < COUNT(scopes); k++)
            wanted &= !matches(scopes[k]->skip_kernel, scopes[k]->n_skip_kernels, r->entry[i].name);
        for (int k = 0; k < n; k++) rival |= !strcmp(s->kernel[k].entry->kernel->op, r->entry[i].kernel->op);
        if (wanted && rival) choose(s, &r->entry[i], NULL);
    }
}

/* Stable: those that `first` names, in its order, then the others, then the probes. */
static void order(const struct glob *first, int n_first, struct selection *s)
{
    struct chosen *sorted = must_alloc((size_t)s->n, sizeof *sorted);
    int            n = 0;
    for (int pass = 0; pass < n_first + 2; pass++)
        for (int i = 0; i < s->n; i++) {
            struct chosen *k = &s->kernel[i];
            if (!k->entry || (pass <= n_first && is_probe(k->entry))) continue;
            if (pass < n_first && fnmatch(first[pass].word, k->entry->name, 0)) continue;
            sorted[n++] = *k;
            k->entry = NULL;
        }
    free(s->kernel);
    s->kernel = sorted;
}

/* A list of kernels to lead may name those of another engine, even one that this build lacks; not all of it, though. */
static int check_first(const struct registry *r, struct scope *scope, struct trouble *trouble)
{
    for (int i = 0; i < scope->n_first; i++)
        for (int k = 0; k < r->n; k++)
            if (!fnmatch(scope->first[i].word, r->entry[k].name, 0)) return 0;
    return scope->n_first ? no_match(r, &scope->first[0], trouble) : 0;
}

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

/* Words that mean something to this selection, kernels of the other engine included. */
static void mark_used(struct scope *scope, const struct selection *s)
{
    for (int i = 0; i < scope->n_axes; i++) scope->axis[i].used |= has_dim(s->op, s->n_ops, scope->axis[i].axis.name);
    for (int i = 0; i < scope->n_tunes; i++) scope->tune[i].used |= some_kernel_has(s, scope->tune[i].axis.name);
    for (int i = 0; i < s->n_ops; i++) {
        for (int k = 0; k < scope->n_zips; k++) scope->zip[k].used |= zip_applies(&scope->zip[k], s->op[i]);
        for (int k = 0; k < scope->n_skips; k++) scope->skip[k].used |= condition_applies(&scope->skip[k], s->op[i]);
    }
}

int select_kernels(
    const struct family *f, const struct registry *r, enum engine engine, struct selection *ret, struct trouble *trouble)
{
    struct scope *const scopes[] = {f->cli, f->section, f->global};
    *ret = (struct selection){0};
    for (int i = 0; i < COUNT(scopes); i++) {
        TRY(check_globs(r, scopes[i]->skip_kernel, scopes[i]->n_skip_kernels, false, trouble));
        TRY(check_first(r, scopes[i], trouble));
    }
    TRY(check_globs(r, f->cli->kernel, f->cli->n_kernels, true, trouble));
    TRY(choose_candidates(f, r, ret, trouble));
    if (f->cli->n_kernels) keep_matching(f->cli->kernel, f->cli->n_kernels, ret);
    for (int i = 0; i < COUNT(scopes); i++) drop_skipped(scopes[i], ret);
    for (int i = 0; i < ret->n; i++) note_op(ret, ret->kernel[i].op);
    for (int i = 0; i < COUNT(scopes); i++) mark_used(scopes[i], ret);
    drop_other_engine(ret, engine);
    if (ret->n && ret->kernel[0].fixed) return 0;      /* a list of variants is run as it stands */
    add_probes(f, r, engine, ret);
    const struct scope *leader = f->cli->n_first ? f->cli : f->section->n_first ? f->section : f->global;
    order(leader->first, leader->n_first, ret);
    return 0;
}

void selection_free(struct selection *s)
{
    free(s->kernel);
    free(s->op);
    *s = (struct selection){0};
}

const struct setting *family_axis(const struct family *f, const char *name)
{
    const struct scope *const scopes[] = {f->cli, f->section, f->global};
    for (int i = 0; i < COUNT(scopes); i++) {
        const struct setting *found = scope_axis(scopes[i], name);
        if (found) return found;
    }
    return NULL;
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

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
    bool         cuda = false, lone = !strchr(glob->word, '/'), absent = !strncmp(glob->word, "plugin/", 7);
    for (int i = 0; i < r->n; i++) {
        names[i] = lone ? r->entry[i].kernel->op : r->entry[i].name;
        cuda |= r->entry[i].kernel->engine == CUDA;
        absent &= !is_plugin(&r->entry[i]);
    }
    near = nearest(glob->word, names, r->n);
    if (near) text(hint, sizeof hint, "; did you mean '%s%s'?", near, lone ? "/*" : "");
    if (absent) text(hint, sizeof hint, "; name the plug-in's file with --plugin");
    free(names);
    return fail(trouble, glob->at, "%s: no kernel matches%s%s", glob->word,
        cuda || absent ? "" : " (this build has no cuda engine)", hint);
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
    for (int i = 0; i < COUNT(scopes); i++) selection_mark_used(scopes[i], ret);
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

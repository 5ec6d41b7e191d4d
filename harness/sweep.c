/* Words to a plan: which files, which families, and what to say when nothing is left to run. */
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "expand.h"
#include "sweep_files.h"

/* All of one sweep_build. */
struct sweep {
    struct cli            *cli;
    const struct registry *registry;
    const struct machine  *machine;
    const struct jobfile  *job;
    struct scope           command, global;
    struct builder         builder;
    const struct op      **op;             /* selected by any family */
    int                    n_ops;
    int                    other_engine, other_device, skipped, invalid;
    const struct entry    *other;
    char                   why[320];       /* of the first invalid problem */
    struct trouble         trouble;
};

static const char *engine_name(enum engine engine)
{
    return engine == CUDA ? "cuda" : "host";
}

static void note_ops(struct sweep *s, const struct selection *selection)
{
    for (int i = 0; i < selection->n_ops; i++) {
        int k = 0;
        while (k < s->n_ops && s->op[k] != selection->op[i]) k++;
        if (k < s->n_ops) continue;
        s->op = must_grow(s->op, (size_t)s->n_ops + 1, sizeof *s->op);
        s->op[s->n_ops++] = selection->op[i];
    }
}

static bool has_engine(const struct registry *r, enum engine engine)
{
    for (int i = 0; i < r->n; i++)
        if (r->entry[i].kernel->engine == engine) return true;
    return false;
}

static int build_family(struct sweep *s, const struct family *f)
{
    struct selection selection;
    struct left_out  out = {0};
    bool here = !f->section->has_device || f->section->device == s->machine->engine;
    int error = select_kernels(f, s->registry, s->machine->engine, &selection, &s->trouble);
    if (error && !here && !has_engine(s->registry, f->section->device)) {   /* its kernels may well be unknown here */
        selection_free(&selection);
        return s->other_device++, 0;
    }
    if (!error && f->section->n_axes + f->section->n_tunes + f->section->n_zips + f->section->n_skips && selection.n_ops)
        error = selection_unused(f->section, selection.op, selection.n_ops, s->registry, &s->trouble);
    s->other_device += !here;
    if (!error && here) error = family_expand(f, &selection, &s->builder, &out, &s->trouble);
    note_ops(s, &selection);
    s->other_engine += here ? selection.other_engine : 0;
    if (selection.other) s->other = selection.other;
    selection_free(&selection);
    s->skipped += out.skipped;
    if (out.invalid && !s->invalid) text(s->why, sizeof s->why, "%s", out.why);
    s->invalid += out.invalid;
    if (out.invalid && !error && !s->cli->quiet)
        say("%s: %d problems left out, the first because %s", f->name, out.invalid, out.why);
    return error;
}

static int build_sections(struct sweep *s)
{
    for (int i = 0; i < s->job->n; i++) {
        const struct job_section *section = &s->job->section[i];
        struct scope  scope = {0};
        char          name[64];
        struct family f = {text(name, sizeof name, "[%s]", section->name), {section->file, section->line}, &s->command,
            &scope, &s->global};
        int error = scope_of_section(section, false, &scope, &s->trouble) || build_family(s, &f);
        scope_free(&scope);
        if (error) return 1;
    }
    return 0;
}

static int build_command(struct sweep *s)
{
    struct scope  none = {0};
    struct family f = {"this selection", {"", 0}, &s->command, &none, &s->global};
    return build_family(s, &f);
}

/* --row 'attn/splitk batch=64,ctx=128K,splits=4': dims and tunables in one list, what is missing by default. */
static int build_row(struct sweep *s)
{
    char           words[512], *p = words + strcspn(text(words, sizeof words, "%s", s->cli->row), " \t"), *mark;
    struct place   at = {"--row", 0};
    struct fixed   fixed = {.at = at};
    struct group   g = {.seed = s->cli->seed, .cache = s->cli->cache == CACHE_HOT ? HOT : COLD};
    struct variant v;
    if (strlen(s->cli->row) >= sizeof words)
        return fail(&s->trouble, at, "%.40s...: longer than %d characters", s->cli->row, (int)sizeof words - 1);
    if (s->cli->cache == CACHE_BOTH)
        return fail(&s->trouble, at, "%s: one row is cold or hot, not both; give --cache cold or hot", s->cli->row);
    if (*p) *p++ = 0;
    const struct entry *e = row_kernel(s->registry, words, at, &s->trouble);
    if (!e) return 1;
    if (e->kernel->engine != s->machine->engine)
        return fail(&s->trouble, at, "%s: is a kernel of the %s engine, this is the %s engine; choose it by --device %s", e->name,
            engine_name(e->kernel->engine), engine_name(s->machine->engine), engine_name(e->kernel->engine));
    const struct op *op = op_find(e->kernel->op);
    text(g.op, sizeof g.op, "%s", op->name);
    text(fixed.kernel, sizeof fixed.kernel, "%s", e->name);
    for (int d = 0; d < op_dims(op); d++) g.dim[d] = op->dim[d].dflt;
    for (char *word = strtok_r(p, ",; \t", &mark); word; word = strtok_r(NULL, ",; \t", &mark))
        TRY(row_word(op, e->kernel, word, at, &g, &fixed, &s->trouble));
    struct problem problem = {.op = op, .seed = g.seed};
    memcpy(problem.dim, g.dim, sizeof problem.dim);
    const char *why = op->invalid ? op->invalid(&problem) : NULL;
    if (why) return fail(&s->trouble, at, "%s: %s", s->cli->row, why);
    TRY(variant_resolve(&fixed, e->kernel, &v, &s->trouble));
    builder_add(&s->builder, &g, &v, false);
    return 0;
}

static int explain_nothing(struct sweep *s)
{
    struct place here = {"", 0};
    const char  *engine = engine_name(s->machine->engine);
    if (s->invalid) return fail(&s->trouble, here, "every problem of this selection is refused: %s", s->why);
    if (s->skipped) return fail(&s->trouble, here, "every problem of this selection is left out by a 'skip' of the job file");
    if (s->other_engine)
        return fail(&s->trouble, here,
            "%d kernel%s match%s, but for the %s engine (%s), and this is the %s engine; choose it by --device %s",
            s->other_engine, s->other_engine == 1 ? "" : "s", s->other_engine == 1 ? "es" : "",
            engine_name(s->other->kernel->engine), s->other->name, engine, engine_name(s->other->kernel->engine));
    if (s->other_device)
        return fail(&s->trouble, here, "every section is for the other engine (device = ...), and this is the %s engine", engine);
    return fail(&s->trouble, here, "no kernel is left to run: -k, --skip and the job file's kernels have none in common");
}

/* [global]'s run-wide settings, and its seed and cache where sections leave them open, so that env.json names them. */
static int take_settings(struct sweep *s)
{
    static const char *const names[] = {"budget", "noise", "max-time", "rounds", "timeout", "reference-s", "seed", "cache"};
    for (int i = 0; i < COUNT(names); i++) {
        const struct job_key *key = job_find(&s->job->global, names[i]);
        char why[256];
        if (key && cli_default(s->cli, key->name, key->value, why, sizeof why))
            return fail(&s->trouble, (struct place){key->file, key->line}, "%s", why);
    }
    return 0;
}

static int build(struct sweep *s)
{
    TRY(scope_of_cli(s->cli, &s->command, &s->trouble));
    TRY(scope_of_section(&s->job->global, true, &s->global, &s->trouble));
    if (s->cli->row) return build_row(s);
    TRY(s->job->n_files ? build_sections(s) : build_command(s));
    TRY(selection_unused(&s->command, s->op, s->n_ops, s->registry, &s->trouble));
    TRY(selection_unused(&s->global, s->op, s->n_ops, s->registry, &s->trouble));
    TRY(take_settings(s));
    return s->builder.plan.n ? 0 : explain_nothing(s);
}

int sweep_build(struct cli *cli, const struct registry *registry, const struct machine *machine, const struct jobfile *job,
    struct plan *ret, char *ret_error, size_t size)
{
    struct sweep s = {.cli = cli, .registry = registry, .machine = machine, .job = job};
    int error = build(&s);
    if (error) {
        text(ret_error, size, "%s", s.trouble.text);
        plan_free(&s.builder.plan);
    } else {
        *ret = s.builder.plan;
    }
    builder_free(&s.builder);
    scope_free(&s.command), scope_free(&s.global);
    free(s.op);
    return error;
}

struct plan sweep_plan(struct cli *cli, const struct registry *registry, const struct machine *machine)
{
    struct jobfile job = {0};
    struct plan    plan;
    char           why[1024];
    if (sweep_files(cli, &job, why, sizeof why) || sweep_build(cli, registry, machine, &job, &plan, why, sizeof why))
        die(EXIT_USAGE, "%s", why);
    jobfile_free(&job);
    if (cli->show_config) {
        cli_show(stdout, cli);
        exit(EXIT_OK);
    }
    return plan;
}

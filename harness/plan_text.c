/* The plan for people (--dry-run) and for kbench itself (plan.ini). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "expand.h"
#include "plan_estimate.h"

enum { WIDTH = 80 };

static bool same_variants(const struct group *a, const struct group *b)
{
    return a->n == b->n && !strcmp(a->op, b->op) && !memcmp(a->variant, b->variant, (size_t)a->n * sizeof *a->variant);
}

static char *bytes_text(double bytes, char *ret, size_t size)
{
    return bytes >= 1e9 ? text(ret, size, "%.1f GB", bytes / 1e9) : text(ret, size, "%.0f MB", ceil(bytes / 1e6));
}

static char *time_text(double s, char *ret, size_t size)
{
    if (s < 100) return text(ret, size, "%.1f s", s);
    if (s < 6000) return text(ret, size, "%.0f min %02d s", floor(s / 60), (int)fmod(s, 60));
    return text(ret, size, "%.1f h", s / 3600);
}

/* "attn/simt attn/splitk(splits=1) ...", broken at WIDTH. */
static void print_variants(FILE *f, const struct group *g, const struct registry *r)
{
    int column = fprintf(f, "\nop %s:", g->op);
    for (int i = 0; i < g->n; i++) {
        const struct entry *e = registry_find(r, g->variant[i].kernel);
        char tune[96], growth[64], word[256];
        tune_text(e->kernel, g->variant[i].tune, tune, sizeof tune);
        kernel_growth_text(op_find(g->op), e->kernel, growth, sizeof growth);
        int n = (int)strlen(text(word, sizeof word, " %s%s%s%s%s%s", e->name, *tune ? "(" : "", tune, *tune ? ")" : "",
            *growth ? " " : "", growth));
        if (column + n > WIDTH) fputs("\n   ", f), column = 3;
        column += fprintf(f, "%s", word);
    }
    fputs("\n  group  cache   memory      time  problem\n", f);
}

/* Whether a dimension of the group's op has more than one value in the plan. */
static bool varies(const struct plan *plan, const struct group *g, int d)
{
    for (int i = 0; i < plan->n; i++)
        if (plan->group[i].dim[d] != g->dim[d] && !strcmp(plan->group[i].op, g->op)) return true;
    return false;
}

/* Dimensions that vary or differ from their defaults, broken at commas. */
static void print_problem(FILE *f, const struct plan *plan, const struct group *g)
{
    enum { MARGIN = 36 };
    const struct op *op = op_find(g->op);
    int              column = MARGIN;
    const char      *comma = "";
    for (int d = 0; d < op_dims(op); d++) {
        char value[24], word[64];
        if (g->dim[d] == op->dim[d].dflt && !varies(plan, g, d)) continue;
        const char *name = op->dim[d].name;
        int n = (int)strlen(text(word, sizeof word, "%s=%s", name, dim_text(name, g->dim[d], value, sizeof value)));
        column += fprintf(f, "%s", comma);
        if (column + n >= WIDTH) fprintf(f, "\n%*s", MARGIN, ""), column = MARGIN;
        column += fprintf(f, "%s", word);
        comma = ",";
    }
    fputs(column == MARGIN ? "all defaults\n" : "\n", f);
}

void plan_print(FILE *f, const struct plan *plan, const struct registry *r, const struct machine *m, const struct cli *cli)
{
    double total_s = 0, most_bytes = 0;
    int    rows = 0;
    char   memory[32], time[32];
    for (int i = 0; i < plan->n; i++) {
        const struct group  *g = &plan->group[i];
        struct plan_estimate e = plan_estimate(g, m, cli);
        if (!i || !same_variants(g, g - 1)) print_variants(f, g, r);
        fprintf(f, "  %5d  %-5s  %7s  %8s  ", i + 1, g->cache == HOT ? "hot" : "cold", bytes_text(e.bytes, memory, sizeof memory),
            time_text(e.seconds, time, sizeof time));
        print_problem(f, plan, g);
        total_s += e.seconds;
        if (e.bytes > most_bytes) most_bytes = e.bytes;
        rows += g->n;
    }
    if (cli->budget_s && total_s > cli->budget_s) total_s = cli->budget_s;
    char have[32];
    fprintf(f, "\n%d row group%s, %d row%s: about %s, up to %s of memory at once (%s has %s)\n", plan->n,
        plan->n == 1 ? "" : "s", rows, rows == 1 ? "" : "s", time_text(total_s, time, sizeof time),
        bytes_text(most_bytes, memory, sizeof memory), m->engine == CUDA ? "the GPU" : "this machine",
        bytes_text((double)m->facts.memory_bytes, have, sizeof have));
}

/* What is equal in all groups is said once. */
struct common {
    bool one_op, variants, cache, seed, dim[MAX_DIMS];
};

static struct common find_common(const struct plan *plan)
{
    struct common c = {true, true, true, true, {0}};
    for (int d = 0; d < MAX_DIMS; d++) c.dim[d] = true;
    for (int i = 1; i < plan->n; i++) {
        const struct group *a = &plan->group[0], *g = &plan->group[i];
        c.one_op &= !strcmp(g->op, a->op);
        c.variants &= same_variants(g, a);
        c.cache &= g->cache == a->cache;
        c.seed &= g->seed == a->seed;
        for (int d = 0; d < MAX_DIMS; d++) c.dim[d] &= g->dim[d] == a->dim[d];
    }
    for (int d = 0; d < MAX_DIMS; d++) c.dim[d] &= c.one_op && plan->n > 1;   /* a section needs a key */
    return c;
}

static void write_variants(FILE *f, const struct group *g, const struct registry *r)
{
    for (int i = 0; i < g->n; i++) {
        const struct entry *e = registry_find(r, g->variant[i].kernel);
        char tune[160];
        tune_text(e->kernel, g->variant[i].tune, tune, sizeof tune);
        for (char *c = tune; *c; c++) *c = *c == ';' ? ',' : *c;
        fprintf(f, "variant = %s%s%s\n", e->name, *tune ? " " : "", tune);
    }
}

static void write_cache(FILE *f, const struct group *g)
{
    fprintf(f, "cache = %s\n", g->cache == HOT ? "hot" : "cold");
}

static void write_seed(FILE *f, const struct group *g)
{
    fprintf(f, "seed = %llu\n", (unsigned long long)g->seed);
}

/* common: those dims that all groups share, or those that they don't. */
static void write_dims(FILE *f, const struct group *g, const struct common *c, bool common)
{
    const struct op *op = op_find(g->op);
    for (int d = 0; d < op_dims(op); d++) {
        char value[24];
        const char *name = op->dim[d].name;
        if (c->dim[d] == common) fprintf(f, "%s = %s\n", name, dim_text(name, g->dim[d], value, sizeof value));
    }
}

static void write_settings(FILE *f, const struct cli *cli)
{
    if (cli->budget_s) fprintf(f, "budget = %.17gs\n", cli->budget_s);
    if (cli->cap_s) fprintf(f, "max-time = %.17gs\n", cli->cap_s);
    if (cli->width_pct) fprintf(f, "noise = %.17g\n", cli->width_pct);
    if (cli->timeout_s) fprintf(f, "timeout = %.17gs\n", cli->timeout_s);
    if (cli->reference_s != REFERENCE_S) fprintf(f, "reference-s = %.17g\n", cli->reference_s);
    if (cli->rounds) fprintf(f, "rounds = %d\n", cli->rounds);
}

char *plan_ini(const struct plan *plan, const struct registry *r, const struct cli *cli)
{
    char         *content = NULL;
    size_t        size = 0;
    FILE         *f = open_memstream(&content, &size);
    struct common c = find_common(plan);
    if (!f) die(EXIT_ENVIRONMENT, "out of host memory for plan.ini");
    fputs("# The row groups of a run, in order. Runs again with: kbench sweep THIS_FILE\n# Made by: ", f);
    for (const char *p = cli->command_line ? cli->command_line : ""; *p; p++) fputc((unsigned char)*p < ' ' ? ' ' : *p, f);
    fputs("\n\n[global]\n", f);
    write_settings(f, cli);
    if (plan->n && c.cache) write_cache(f, plan->group);
    if (plan->n && c.seed) write_seed(f, plan->group);
    if (plan->n && c.one_op) write_dims(f, plan->group, &c, true);
    if (plan->n && c.variants) write_variants(f, plan->group, r);
    for (int i = 0; i < plan->n; i++) {
        const struct group *g = &plan->group[i];
        fprintf(f, "\n[group %d]\n", i + 1);
        if (!c.variants) write_variants(f, g, r);
        if (!c.cache) write_cache(f, g);
        if (!c.seed) write_seed(f, g);
        write_dims(f, g, &c, false);
    }
    fclose(f);
    return content;
}

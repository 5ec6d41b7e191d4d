/* The same report as tables that a code host renders. */
#include <math.h>
#include <string.h>
#include "base.h"
#include "crossover.h"
#include "registry.h"
#include "report_parts.h"

/* Text within a table cell: a bar would end it, a backtick or an angle bracket would be obeyed. */
static void put(FILE *out, const char *words)
{
    char tame[sizeof(((struct scaling *)NULL)->repeat)];
    for (const char *c = tame_text(words, tame, sizeof(tame)); *c; c++) {
        if (strchr("|`<>*\\[]", *c)) fputc('\\', out);
        fputc(*c, out);
    }
}

/* A command in a code span: the fence is longer than any run of backticks inside. Bars are escaped by the table's own rule. */
static void put_code(FILE *out, const char *command)
{
    char tame[700];
    int run = 0, longest = 0;
    for (const char *c = tame_text(command, tame, sizeof(tame)); *c; c++) {
        run = *c == '`' ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    for (int i = 0; i <= longest; i++) fputc('`', out);
    if (longest) fputc(' ', out);
    for (const char *c = tame; *c; c++) fprintf(out, "%s%c", *c == '|' ? "\\" : "", *c);
    if (longest) fputc(' ', out);
    for (int i = 0; i <= longest; i++) fputc('`', out);
}

void markdown_machine(FILE *out, const struct machine *m, const struct report_options *o)
{
    char words[1600];
    fprintf(out, "**");
    put(out, machine_text(m, words, sizeof(words)));
    fprintf(out, "**, engine %s\n", m->engine == CUDA ? "cuda" : "host");
    if (ceilings_text(m, words, sizeof(words))[0]) fprintf(out, "\nCeilings measured in this run: %s\n", words);
    if (throughout_text(o, words, sizeof(words))[0]) {
        fprintf(out, "\nThroughout: ");
        put(out, words);
        fputc('\n', out);
    }
}

static void put_measured(FILE *out, const struct row *rows, int n, const struct row *row)
{
    char word[32], marks[2 * sizeof(row->marks)];
    bool clear;
    struct share share = share_of(rows, n);
    double ratio = speedup(report_base(rows, n), row, &clear);
    fprintf(out, " | %s", ns_text(row->t_med_ns, word, sizeof(word)));
    fprintf(out, " | %s", ns_range_text(row->t_lo_ns, row->t_hi_ns, word, sizeof(word)));
    fprintf(out, clear ? " | **%s**" : " | %s", row_is_probe(row) ? "probe" : ratio_text(ratio, word, sizeof(word)));
    fprintf(out, " | %s", row_is_probe(row) ? "" : percent_text(share_get(&share, row), word, sizeof(word)));
    fprintf(out, " | %s | ", row_is_probe(row) ? "" : error_text(row->err_rel, word, sizeof(word)));
    put(out, marks_text(row, marks, sizeof(marks)));
    if (row->marks[0] && row->reason[0]) {
        fprintf(out, ": ");
        put(out, row->reason);
    }
}

static void put_unmeasured(FILE *out, const struct row *row)
{
    fprintf(out, " | **");
    put(out, row->status[0] ? row->status : "no status");
    fprintf(out, "** | | | | | ");
    put(out, row->reason);
    if (row_failed(row) && row->repeat[0]) {
        fprintf(out, "; repeat: ");
        put_code(out, row->repeat);
    }
}

void markdown_group(FILE *out, const struct row *rows, int n, const struct report_options *o)
{
    char words[700];
    fprintf(out, "\n### ");
    put(out, rows[0].op);
    if (problem_dims_text(&rows[0], o, words, sizeof(words))[0]) {
        fprintf(out, " ");
        put(out, words);
    }
    fprintf(out, "\n\n%s", regime_text(rows, n, words, sizeof(words)));
    if (limit_text(rows, n, words, sizeof(words))[0]) fprintf(out, "; %s", words);
    fprintf(out, "\n\n| kernel | median | 95 %% interval | speed-up | %s | error | marks |\n|---|--:|--:|--:|--:|--:|---|\n",
        share_of(rows, n).title);
    for (int i = 0; i < n; i++) {
        fprintf(out, "| ");
        put_code(out, label_text(&rows[i], rows, n, words, sizeof(words)));
        if (row_status(&rows[i]) == STATUS_OK) put_measured(out, rows, n, &rows[i]);
        else put_unmeasured(out, &rows[i]);
        fprintf(out, " |\n");
    }
}

static void put_growth(FILE *out, const struct scaling *s)
{
    static const char *const verdict[] = {"", "**above**", "open", ""};
    char from[32], to[32], word[32];
    fprintf(out, " | %s | %s..%s | %.2f", s->dim, value_text(s->from, from, sizeof(from)), value_text(s->to, to, sizeof(to)),
        s->fit.exponent);
    if (isfinite(s->fit.hi)) fprintf(out, " | %.2f..%.2f", s->fit.lo, s->fit.hi);
    else fprintf(out, " | %.2f..", s->fit.lo);
    fprintf(out, " | %s", ratio_text(s->ratio, word, sizeof(word)));
    fprintf(out, " | %s", s->fit.t0 > 0 ? ns_text(s->fit.t0, word, sizeof(word)) : "0");
    if (isnan(s->declared)) fprintf(out, " | ");
    else fprintf(out, " | %g", s->declared);
    fprintf(out, " | %s", verdict[s->verdict]);
    if (s->verdict == SCALING_ABOVE) {
        fprintf(out, ": ");
        put_code(out, s->repeat);
    }
    fprintf(out, " |\n");
}

void markdown_growth(FILE *out, const struct scalings *all, const struct table *table, const struct row *const *runner, int n)
{
    char words[240];
    fprintf(out, "\n### Growth\n\ntime = t0 + a * size^exponent, or the larger of both\n\n"
        "| kernel | dimension | sizes | exponent | 95 %% interval | time | t0 | declared | verdict |\n"
        "|---|---|--:|--:|--:|--:|--:|--:|---|\n");
    for (int i = 0; i < n; i++)
        for (int d = 0; d < runner[i]->n_dims; d++) {
            const struct scaling *s = growth_of(all, runner[i], runner[i]->dim[d].name);
            if (!s) continue;
            fprintf(out, "| ");
            put_code(out, label_text(runner[i], table->row, table->n, words, sizeof(words)));
            put_growth(out, s);
        }
}

/* Names instead of letters: there is room. */
void markdown_map(FILE *out, const struct table *table, const struct map *map)
{
    char words[600];
    if (map->n_kernels == 1) {
        fprintf(out, "\nFastest: ");
        put(out, everywhere_text(table, map, words, sizeof(words)));
        fprintf(out, "\n");
        return;
    }
    fprintf(out, "\n### Fastest: ");
    put(out, map->like->op);
    if (map_fixed_text(table, map, words, sizeof(words))[0]) {
        fprintf(out, " ");
        put(out, words);
    }
    fprintf(out, "\n\n%s; a tie is within 2 %% or the intervals\n\n| %s | %s", map->like->cache, map->down, map->across);
    for (int x = 0; x < map->n_across; x++)
        fprintf(out, "%s%s", x ? " | " : " ", dim_text(map->across, map->across_value[x], words, sizeof(words)));
    fprintf(out, " |\n|--:|");
    for (int x = 0; x < map->n_across; x++) fprintf(out, "---|");
    fputc('\n', out);
    for (int y = 0; y < map->n_down; y++) {
        fprintf(out, "| %s", dim_text(map->down, map->down_value[y], words, sizeof(words)));
        for (int x = 0; x < map->n_across; x++) {
            const struct map_cell *cell = &map->cell[y][x];
            fprintf(out, " | ");
            for (int i = 0; i < cell->n; i++) {
                if (i) fprintf(out, " = ");
                put_code(out, map->kernel[cell->kernel[i]]);
            }
        }
        fprintf(out, " |\n");
    }
}

void markdown_summary(FILE *out, const struct table *table, const struct report_options *o)
{
    char words[600];
    fprintf(out, "\n%s.", counts_text(table, o->above, words, sizeof(words)));
    if (o->folder) {
        fprintf(out, " Run folder: ");
        put_code(out, o->folder);
        fputc('.', out);
    }
    fputc('\n', out);
    if (o->next) fprintf(out, "\n%s\n", o->next);
}

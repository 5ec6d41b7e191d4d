#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "report_parts.h"
#include "report_profile.h"

#define BOLD   "\033[1m"
#define RED    "\033[1;31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define DIM    "\033[2m"

/* Columns of a kernel's line: the name takes what the figures leave. */
enum { INDENT = 2, MEDIAN = 9, INTERVAL = 16, SPEEDUP = 10, SHARE = 10, ERROR = 8 };
enum { FIGURES = MEDIAN + INTERVAL + SPEEDUP + SHARE + ERROR };
enum { SHOWN_FAILURES = 10 };

static const char *on(const struct report_options *o, const char *sequence)
{
    return o->colour ? sequence : "";
}

static const char *off(const struct report_options *o, const char *sequence)
{
    return o->colour && *sequence ? "\033[0m" : "";
}

/* Right-aligned in its column; colours take no room. */
static void cell(FILE *out, const struct report_options *o, int width, const char *colour, const char *word)
{
    fprintf(out, "%*s%s%s%s", width - (int)strlen(word), "", on(o, colour), word, off(o, colour));
}

void report_machine(FILE *out, const struct machine *m, const struct report_options *o)
{
    if (o->markdown) {
        markdown_machine(out, m, o);
        return;
    }
    char words[1600], engine[32];
    text(engine, sizeof(engine), "engine %s", m->engine == CUDA ? "cuda" : "host");
    machine_text(m, words, sizeof(words));
    int gap = o->width - (int)strlen(words) - (int)strlen(engine);
    fputs(on(o, BOLD), out);
    if (gap >= 2) {
        fprintf(out, "%s%s%*s%s\n", words, off(o, BOLD), gap, "", engine);
    } else {
        wrap_words(out, o->width, 0, 2, words);
        fprintf(out, "%s%s\n", off(o, BOLD), engine);
    }
    if (ceilings_text(m, words, sizeof(words))[0]) {
        int column = fprintf(out, "ceilings: ");
        wrap_words(out, o->width, column, 2, words);
    }
    if (throughout_text(o, words, sizeof(words))[0]) {
        int column = fprintf(out, "throughout: ");
        wrap_words(out, o->width, column, 2, words);
    }
}

/* The line above a group: what it is, whole parts kept together where they fit. */
static void print_title(FILE *out, const struct row *rows, int n, const struct report_options *o)
{
    char part[3][700], dims[600], regime[64], op[40];
    fprintf(out, "\n%s%s%s", on(o, BOLD), tame_text(rows[0].op, op, sizeof(op)), off(o, BOLD));
    int column = (int)strlen(op);
    text(part[0], sizeof(part[0]), "%s", problem_dims_text(&rows[0], o, dims, sizeof(dims)));
    text(part[1], sizeof(part[1]), "(%s)", regime_text(rows, n, regime, sizeof(regime)));
    limit_text(rows, n, part[2], sizeof(part[2]));
    for (int i = 0; i < 3; i++) {
        int wide = (int)strlen(part[i]);
        if (wide && column + 2 + wide > o->width && column > 4) {
            fprintf(out, "\n   ");
            column = 3;
        }
        if (!wide) continue;
        fprintf(out, "  ");
        column += 2;
        if (column + wide > o->width) {   /* one part alone is too wide: at its commas */
            for (char *comma = part[i]; (comma = strchr(comma, ',')); comma++) *comma = ' ';
            wrap_words(out, o->width, column, 5, part[i]);
            fprintf(out, "   ");
            column = 3;
        } else {
            fputs(part[i], out);
            column += wide;
        }
    }
    fputc('\n', out);
}

static int name_width(const struct row *rows, int n, const struct report_options *o)
{
    int widest = 6, room = o->width - INDENT - FIGURES;
    for (int i = 0; i < n; i++) {
        char label[200];
        int wide = (int)strlen(label_text(&rows[i], rows, n, label, sizeof(label)));
        if (wide > widest && wide <= room) widest = wide;
    }
    return widest;
}

/* Leaves the cursor behind the name column, on the next line if the name is wider. */
static void print_name(FILE *out, const char *label, int width)
{
    if ((int)strlen(label) > width) fprintf(out, "%*s%s\n%*s", INDENT, "", label, INDENT + width, "");
    else fprintf(out, "%*s%-*s", INDENT, "", width, label);
}

/* Under a row's figures: what marks saw, or why it failed. */
static void print_note(FILE *out, const char *title, const char *colour, const char *words, const struct report_options *o)
{
    char tame[400];
    int column = 4 + (int)strlen(title) + 2;
    fprintf(out, "%*s%s%s%s: ", 4, "", on(o, colour), title, off(o, colour));
    wrap_words(out, o->width, column, 6, tame_text(words, tame, sizeof(tame)));
}

static void print_unmeasured(FILE *out, const struct row *row, const char *label, int width, const struct report_options *o)
{
    char reason[400], status[32], command[sizeof(row->repeat)];
    const char *colour = row_failed(row) ? RED : YELLOW;
    print_name(out, label, width);
    tame_text(row->status[0] ? row->status : "no status", status, sizeof(status));
    fprintf(out, "  %s%s%s  ", on(o, colour), status, off(o, colour));
    int column = INDENT + width + 2 + (int)strlen(status) + 2, indent = INDENT + width + 2;
    tame_text(row->reason[0] ? row->reason : "no reason recorded", reason, sizeof(reason));
    wrap_words(out, o->width, column, indent, reason);
    if (row_failed(row) && row->repeat[0]) {
        fprintf(out, "%*s%srepeat:%s ", indent, "", on(o, DIM), off(o, DIM));
        wrap_command(out, o->width, indent + 8, indent + 4, tame_text(row->repeat, command, sizeof(command)));
    }
}

/* Of a run that only checked. */
static void print_checked(FILE *out, const struct row *row, const char *label, int width, const struct report_options *o)
{
    char error[32], share[32];
    print_name(out, label, width);
    if (row_is_probe(row)) {
        fprintf(out, "  probe: nothing to check\n");
        return;
    }
    error_text(row->err_rel, error, sizeof(error));
    text(share, sizeof(share), "%.3g %% checked", row->checked_pct);
    fprintf(out, "  %sok%s  error %s, %s\n", on(o, GREEN), off(o, GREEN), error, share);
}

static void print_measured(FILE *out, const struct row *rows, int n, const struct row *row, const char *label, int width,
    const struct report_options *o)
{
    char word[32], marks[2 * sizeof(row->marks)];
    bool clear;
    struct share share = share_of(rows, n);
    double ratio = speedup(report_base(rows, n), row, &clear);
    marks_text(row, marks, sizeof(marks));
    print_name(out, label, width);
    cell(out, o, MEDIAN, BOLD, ns_text(row->t_med_ns, word, sizeof(word)));
    cell(out, o, INTERVAL, "", ns_range_text(row->t_lo_ns, row->t_hi_ns, word, sizeof(word)));
    if (row_is_probe(row)) {
        fprintf(out, "   probe: the loads alone\n");
    } else {
        cell(out, o, SPEEDUP, !clear ? "" : ratio > 1 ? GREEN : YELLOW, ratio_text(ratio, word, sizeof(word)));
        cell(out, o, SHARE, "", percent_text(share_get(&share, row), word, sizeof(word)));
        cell(out, o, ERROR, "", error_text(row->err_rel, word, sizeof(word)));
        bool fits = INDENT + width + FIGURES + 2 + (int)strlen(marks) <= o->width && !row->reason[0];
        if (marks[0] && fits) fprintf(out, "  %s%s%s", on(o, YELLOW), marks, off(o, YELLOW));
        fputc('\n', out);
        if (fits) return;
    }
    if (marks[0] && row->reason[0]) print_note(out, marks, YELLOW, row->reason, o);
    else if (marks[0]) fprintf(out, "    %s%s%s\n", on(o, YELLOW), marks, off(o, YELLOW));
}

void report_group(FILE *out, const struct row *rows, int n, const struct report_options *o)
{
    if (n <= 0) return;
    if (o->markdown) {
        markdown_group(out, rows, n, o);
        return;
    }
    int width = name_width(rows, n, o);
    bool measured = false;
    for (int i = 0; i < n; i++) measured = measured || rows[i].t_med_ns > 0;
    print_title(out, rows, n, o);
    if (measured) {
        bool fits = INDENT + width + FIGURES + 7 <= o->width;
        fprintf(out, "%*s%s%-*s%*s%*s%*s%*s%*s%s%s\n", INDENT, "", on(o, DIM), width, "kernel", MEDIAN, "median", INTERVAL,
            "95 % interval", SPEEDUP, "speed-up", SHARE, share_of(rows, n).title, ERROR, "error",
            fits ? "  marks" : "", off(o, DIM));
    }
    for (int i = 0; i < n; i++) {
        char label[200];
        label_text(&rows[i], rows, n, label, sizeof(label));
        if (row_status(&rows[i]) == STATUS_OK && measured) print_measured(out, rows, n, &rows[i], label, width, o);
        else if (row_status(&rows[i]) == STATUS_OK) print_checked(out, &rows[i], label, width, o);
        else print_unmeasured(out, &rows[i], label, width, o);
    }
}

static void print_failures(FILE *out, const struct table *table, const struct report_options *o)
{
    int shown = 0, failed = 0;
    for (int i = 0; i < table->n; i++) failed += row_failed(&table->row[i]);
    if (failed) fprintf(out, "to repeat %s:\n", failed == 1 ? "it" : "them");
    for (int i = 0; i < table->n && shown < SHOWN_FAILURES; i++) {
        const struct row *row = &table->row[i];
        char command[sizeof(row->repeat)], status[32];
        if (!row_failed(row)) continue;
        tame_text(row->status, status, sizeof(status));
        fprintf(out, "  %s%-12s%s  ", on(o, RED), status, off(o, RED));
        wrap_command(out, o->width, 16, 18, tame_text(row->repeat[0] ? row->repeat : row->kernel, command, sizeof(command)));
        shown++;
    }
    if (failed > shown) fprintf(out, "  and %d more: the column `repeat` of rows.csv\n", failed - shown);
}

/* Two commands with a word each; a word that has no room is left out. */
static void print_next(FILE *out, const struct report_options *o)
{
    char command[2][2500], *folder = shell_word(o->folder);
    static const char *const what[] = {"for a pull request", "draws the plots again"};
    text(command[0], sizeof(command[0]), "./kbench report %s --markdown", folder);
    text(command[1], sizeof(command[1]), "./kbench plot %s", folder);
    bool aligned = strlen(command[0]) + 4 + strlen(what[1]) <= (size_t)o->width;
    fprintf(out, "next:\n");
    for (int i = 0; i < 2; i++) {
        bool fits = strlen(command[i]) + 4 + strlen(what[i]) <= (size_t)o->width;
        fprintf(out, "  ");
        if (fits) fprintf(out, "%-*s  %s\n", aligned ? (int)strlen(command[0]) : 0, command[i], what[i]);
        else wrap_command(out, o->width, 2, 4, command[i]);
    }
    free(folder);
}

void report_summary(FILE *out, const struct table *table, const struct report_options *o)
{
    if (o->markdown) {
        markdown_summary(out, table, o);
        return;
    }
    char words[600];
    fputc('\n', out);
    fputs(on(o, BOLD), out);
    counts_text(table, o->above, words, sizeof(words));
    wrap_words(out, o->width, 0, 2, words);
    fputs(off(o, BOLD), out);
    print_failures(out, table, o);
    if (o->folder) fprintf(out, "run folder: %s\n", o->folder);
    if (o->next) fprintf(out, "%s\n", o->next);
    else if (o->folder) print_next(out, o);
}

void report_all(FILE *out, const struct machine *machine, const struct table *table, const struct report_options *options)
{
    struct report_options o = *options;
    for (int i = 0; i < table->n; i++) {
        for (int d = 0; d < table->row[i].n_dims; d++) report_see(&o, table->row[i].dim[d].name, table->row[i].dim[d].value);
    }
    struct machine unknown = {.engine = table->n && !strcmp(table->row[0].engine, "cuda") ? CUDA : HOST};
    report_machine(out, machine ? machine : &unknown, &o);
    for (int i = 0, end; i < table->n; i = end) {
        end = group_end(table, i);
        /* It counts for growth, and its group stands above. */
        if (!strncmp(table->row[i].reason, MEASURED_AGAIN, strlen(MEASURED_AGAIN))) continue;
        report_group(out, table->row + i, end - i, &o);
        if (o.breakdown || o.counters) report_trees(out, table->row + i, end - i, &o);
    }
    struct scalings scalings = scalings_find(table);
    report_growth(out, &scalings, table, &o);
    report_crossover(out, table, &o);
    o.above = scalings_above(&scalings);
    scalings_free(&scalings);
    report_summary(out, table, &o);
}

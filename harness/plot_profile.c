#include "plot_profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "breakdown.h"
#include "format.h"
#include "gnuplot.h"
#include "registry.h"

enum { WIDTH = 640, LEFT = 16, RIGHT = 16, TITLE = 34, HEAD = 22, BAR = 26, LINE = 19, APART = 12, PAGE_BARS = 8 };   /* pixels */
enum { LETTER = 8, SEGMENTS = 7, MOST_POINTS = 400, MOST_KERNELS = 9 };
enum { MOST_LETTERS = 32 };   /* of a part in a key */

/* Okabe and Ito's palette without its yellow; light grey: nothing ran. */
static const char *const colours[SEGMENTS] = {"#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#707070"};
static const char gap_colour[] = "#E4E4E4";

/* Columns between `engine` and `tune` are dimensions. */
static int first_dim(const struct sheet *s)
{
    int c = 0;
    while (c < s->columns && strcmp(s->name[c], "engine")) c++;
    return c + 1;
}

static const char *cell(const struct sheet *s, int line, int column)
{
    return s->cell[(size_t)line * (size_t)s->columns + (size_t)column];
}

static bool varies(const struct sheet *s, int line, int column)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(sheet_text(s, i, "op"), sheet_text(s, line, "op")) && strcmp(cell(s, i, column), cell(s, line, column)))
            return true;
    return false;
}

/* "attn/splitk splits=4 batch=64" with what differs between the rows of the op. */
static char *row_label(const struct sheet *s, int line, char *ret, size_t size)
{
    const char *tune = sheet_text(s, line, "tune");
    text(ret, size, "%s%s%s", sheet_text(s, line, "kernel"), *tune ? " " : "", tune);
    for (int c = first_dim(s); c < s->columns && strcmp(s->name[c], "tune"); c++) {
        const char *value = cell(s, line, c);
        int64_t number;
        char word[32];
        size_t n = strlen(ret);
        if (!*value || !varies(s, line, c)) continue;
        if (!cell_whole(value, &number)) value = dim_text(s->name[c], number, word, sizeof word);
        text(ret + n, size - n, " %s=%s", s->name[c], value);
    }
    return ret;
}

/* Same row of rows.csv: everything up to the seed. */
static bool same_row(const struct sheet *s, int a, int b)
{
    for (int c = 0; c < s->columns && strcmp(s->name[c], "pass"); c++)
        if (strcmp(cell(s, a, c), cell(s, b, c))) return false;
    return true;
}

struct bar {
    int    first, end;      /* lines of its replays */
    double span_ns;
    int    key_lines;
    char   label[300];
};

static bool is_replay(const struct sheet *s, int line, const char *op)
{
    return !strcmp(sheet_text(s, line, "op"), op) && !strcmp(sheet_text(s, line, "pass"), "replay");
}

static bool is_part(const struct sheet *s, int line)
{
    const char *part = sheet_text(s, line, "part");
    return strcmp(part, "gaps") && strcmp(part, "overlap") && strcmp(part, "span");
}

/* A segment's words: "product: nvjet_64x384.. 25 %". */
static char *segment_text(const struct sheet *s, int line, int rest, char *ret, size_t size)
{
    char share[32], name[256];
    const char *part = sheet_text(s, line, "part"), *whole = sheet_text(s, line, "name");
    part_text(sheet_text(s, line, "range"), *whole ? whole : part, MOST_LETTERS, name, sizeof name);
    if (rest) text(name, sizeof name, "%d more", rest);
    return text(ret, size, "%s %s", name, percent_text(sheet_real(s, line, "share_pct"), share, sizeof share));
}

/* How many lines the words of all segments take. */
static int key_lines(const struct sheet *s, const struct bar *b)
{
    int lines = 1, x = LEFT, n = 0;
    for (int i = b->first; i < b->end; i++) {
        char words[80];
        if (!is_part(s, i) || n++ >= SEGMENTS) continue;
        int wide = LETTER * ((int)strlen(segment_text(s, i, 0, words, sizeof words)) + 2);
        if (x + wide > WIDTH - RIGHT && x > LEFT) lines++, x = LEFT;
        x += wide;
    }
    return lines;
}

static int find_bars(const struct sheet *s, const char *op, struct bar *ret, int most)
{
    int n = 0;
    for (int i = 0; i < s->n && n < most; i++) {
        if (!is_replay(s, i, op)) continue;
        struct bar *b = &ret[n++];
        *b = (struct bar){.first = i, .end = i + 1, .span_ns = NAN};
        while (b->end < s->n && is_replay(s, b->end, op) && same_row(s, i, b->end)) b->end++;
        for (int k = b->first; k < b->end; k++)
            if (!strcmp(sheet_text(s, k, "part"), "span")) b->span_ns = sheet_real(s, k, "t_ns");
        b->key_lines = key_lines(s, b);
        row_label(s, i, b->label, sizeof b->label);
        i = b->end - 1;
    }
    return n;
}

struct canvas {
    FILE *out;
    int   height, objects, labels;
};

static void put_box(struct canvas *c, double x, int y, double wide, const char *colour)
{
    fprintf(c->out, "set object %d rect from screen %.5f, screen %.5f to screen %.5f, screen %.5f fc rgb '%s' fs solid noborder\n",
        ++c->objects, x / WIDTH, 1 - (double)y / c->height, (x + wide) / WIDTH, 1 - (double)(y + BAR) / c->height, colour);
}

static void put_words(struct canvas *c, int x, int y, const char *words, const char *font, const char *colour)
{
    fprintf(c->out, "set label %d ", ++c->labels);
    gnuplot_quoted(c->out, words);
    fprintf(c->out, " at screen %.5f, screen %.5f left %s textcolor rgb '%s'\n", (double)x / WIDTH, 1 - (double)y / c->height,
        font, colour);
}

/* Segments by time, the smallest together; what is left of the span are gaps. */
static void put_bar(struct canvas *c, const struct sheet *s, const struct bar *b, int y)
{
    double x = LEFT, wide = WIDTH - LEFT - RIGHT, rest_pct = 0;
    int n = 0, key_x = LEFT, key_y = y + HEAD + BAR + LINE / 2 + 3;
    char words[400], time[32];
    put_words(c, LEFT, y + HEAD / 2 - 1, text(words, sizeof words, "%s: %s", b->label, ns_text(b->span_ns, time, sizeof time)), "",
        "#202020");
    put_box(c, LEFT, y + HEAD, wide, gap_colour);
    for (int i = b->first; i < b->end; i++) {
        double pct = sheet_real(s, i, "share_pct");
        if (!is_part(s, i) || !(pct > 0)) continue;
        if (n == SEGMENTS) {
            rest_pct += pct;
            continue;
        }
        double room = fmax(0, fmin(pct, 100 - 100 * (x - LEFT) / wide));   /* parts that overlap have no more than the bar */
        put_box(c, x, y + HEAD, wide * room / 100, colours[n]);
        x += wide * room / 100;
        segment_text(s, i, 0, words, sizeof words);
        int letters = LETTER * ((int)strlen(words) + 2);
        if (key_x + letters > WIDTH - RIGHT && key_x > LEFT) key_x = LEFT, key_y += LINE;
        put_words(c, key_x, key_y, words, "font ',14'", colours[n]);
        key_x += letters;
        n++;
    }
    if (rest_pct > 0) put_box(c, x, y + HEAD, wide * fmin(rest_pct, 100 - 100 * (x - LEFT) / wide) / 100, "#A0A0A0");
}

static int bar_height(const struct bar *b)
{
    return HEAD + BAR + LINE * b->key_lines + APART;
}

char *bars_script(const struct sheet *s, const char *op, int page, const char *name, const char *look)
{
    struct bar bar[4 * PAGE_BARS];
    int n = find_bars(s, op, bar, COUNT(bar)), first = page * PAGE_BARS, end = first + PAGE_BARS < n ? first + PAGE_BARS : n;
    if (first >= n) return NULL;
    char *bytes, title[120];
    size_t size;
    struct canvas c = {.out = open_memstream(&bytes, &size), .height = TITLE + 12};
    for (int b = first; b < end; b++) c.height += bar_height(&bar[b]);
    gnuplot_file(c.out, "figure", name, "svg");
    fprintf(c.out, "width = %d\nheight = %d\n", WIDTH, c.height);
    put_words(&c, LEFT, TITLE / 2, text(title, sizeof title, "%s: where a call's time goes (grey: nothing runs)", op), "font ',17'",
        "#202020");
    for (int b = first, y = TITLE; b < end; y += bar_height(&bar[b]), b++) put_bar(&c, s, &bar[b], y);
    fprintf(c.out, "\n%s", look);
    if (fclose(c.out)) die(EXIT_ENVIRONMENT, "out of host memory for a plot");
    return bytes;
}

/* One row in the roofline. */
struct dot {
    int    kernel;
    double x, y;   /* flop a byte, flop a second */
};

/* Within what axes have room for; what no machine does is noise. */
static bool drawable(double value)
{
    return value > 1e-12 && value < 1e24;
}

static int find_dots(const struct sheet *s, struct dot *ret, const char **kernel, int *ret_kernels)
{
    int n = 0;
    *ret_kernels = 0;
    for (int i = 0; i < s->n && n < MOST_POINTS; i++) {
        const char *name = sheet_text(s, i, "kernel");
        double x = sheet_real(s, i, "flop_per_B"), y = sheet_real(s, i, "flop") / sheet_real(s, i, "t_med_ns") * 1e9;
        int k = 0;
        if (!drawable(x) || !drawable(y)) continue;
        while (k < *ret_kernels && strcmp(kernel[k], name)) k++;
        if (k == MOST_KERNELS) continue;
        if (k == *ret_kernels) kernel[(*ret_kernels)++] = name;
        ret[n++] = (struct dot){k, x, y};
    }
    return n;
}

static void put_dots(FILE *out, const struct dot *dot, int n, const char *const *kernel, int kernels)
{
    fputs("$dots << END\n", out);
    for (int k = 0; k < kernels; k++) {
        gnuplot_header(out, kernel[k]);
        for (int i = 0; i < n; i++)
            if (dot[i].kernel == k) fprintf(out, "%.6g %.6g\n", dot[i].x, dot[i].y * 1e-12);
        fputs("\n\n", out);
    }
    fputs("END\n", out);
}

/* 1, 2, 5 where the range is short, else powers of ten. */
static void put_x_axis(FILE *out, double lo, double hi)
{
    static const int steps[] = {1, 2, 5};
    const char *comma = "";
    fprintf(out, "set xrange [%.6g:%.6g]\nset xtics (", lo, hi);
    for (int decade = (int)floor(log10(lo)); decade <= (int)ceil(log10(hi)); decade++)
        for (int i = 0; i < (hi < 300 * lo ? COUNT(steps) : 1); i++, comma = ", ")
            fprintf(out, "%s'%g' %g", comma, steps[i] * pow(10, decade), steps[i] * pow(10, decade));
    fputs(")\n", out);
}

char *roofline_script(const struct sheet *s, const struct ceilings *ceilings, const char *name, const char *look)
{
    struct dot *dot = must_alloc(MOST_POINTS, sizeof *dot);
    const char *kernel[MOST_KERNELS];
    int kernels, n = find_dots(s, dot, kernel, &kernels);
    if (!n || !drawable(ceilings->read_GBps) || !drawable(ceilings->matrix_GFLOPs)) return free(dot), NULL;
    double lo = INFINITY, hi = 0, ridge = ceilings->matrix_GFLOPs / ceilings->read_GBps, low = ceilings->matrix_GFLOPs * 1e-3;
    size_t widest = 1;
    for (int i = 0; i < n; i++) lo = fmin(lo, dot[i].x), hi = fmax(hi, dot[i].x), low = fmin(low, dot[i].y * 1e-12);
    for (int k = 0; k < kernels; k++) widest = strlen(kernel[k]) > widest ? strlen(kernel[k]) : widest;
    char *bytes, number[2][32];
    size_t size;
    FILE *out = open_memstream(&bytes, &size);
    locale_t before = c_numbers();
    bool counted = false;
    for (int i = 0; i < s->n; i++) counted |= !isnan(sheet_real(s, i, "dram_read_B"));
    int across = WIDTH / (int)(11 * widest + 60), rows = across > 1 ? (kernels + across - 1) / across : kernels;
    int foot = 92 + 29 * rows;
    gnuplot_file(out, "figure", name, "svg");
    fprintf(out, "width = %d.0\nheight = %d.0\nhead = 66.0\nfoot = %d.0\nkey_rows = %d\nkernels = %d\n", WIDTH,
        66 + 330 + foot, foot, rows, kernels);
    fprintf(out, "read_TBps = %.6g\nmatrix_TFLOPs = %.6g\n", ceilings->read_GBps * 1e-3, ceilings->matrix_GFLOPs * 1e-3);
    fprintf(out, "title = \"Roofline: read %s GB/s, matrix %s GFLOP/s, as measured\\n%s\"\n",
        amount_text(ceilings->read_GBps, number[0], sizeof number[0]),
        amount_text(ceilings->matrix_GFLOPs, number[1], sizeof number[1]),
        counted ? "(bytes as counted)" : "(no counters: the fewest bytes that a call must move)");
    fprintf(out, "set yrange [%.6g:%.6g]\n", low / 2, ceilings->matrix_GFLOPs * 2e-3);
    put_x_axis(out, fmin(lo, ridge) / 2, fmax(hi, ridge) * 4);
    put_dots(out, dot, n, kernel, kernels);
    fprintf(out, "\n%s", look);
    uselocale(before);
    if (fclose(out)) die(EXIT_ENVIRONMENT, "out of host memory for a plot");
    free(dot);
    return bytes;
}

#include "plot_profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "format.h"
#include "gnuplot.h"

enum { WIDTH = 640, AXES = 330, TITLE_LINE = 25, KEY_LINE = 29 };   /* pixels */
enum { MOST_KERNELS = 9 };   /* that plots/roofline.gp has marks for */

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

/* ret, kernel: room for s->n. Returns how many dots; *ret_kernels: how many kernels, also those that there are no marks for. */
static int find_dots(const struct sheet *s, struct dot *ret, const char **kernel, int *ret_kernels)
{
    int n = 0;
    *ret_kernels = 0;
    for (int i = 0; i < s->n; i++) {
        const char *name = sheet_text(s, i, "kernel");
        double x = sheet_real(s, i, "flop_per_B"), y = sheet_real(s, i, "flop") / sheet_real(s, i, "t_med_ns") * 1e9;
        int k = 0;
        if (!drawable(x) || !drawable(y)) continue;
        while (k < *ret_kernels && strcmp(kernel[k], name)) k++;
        if (k == *ret_kernels) kernel[(*ret_kernels)++] = name;
        if (k < MOST_KERNELS) ret[n++] = (struct dot){k, x, y};
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

/* Ranges that hold dots and roof. */
static void put_axes(FILE *out, const struct dot *dot, int n, const struct ceilings *c)
{
    double lo = c->matrix_GFLOPs / c->read_GBps, hi = lo, low = c->matrix_GFLOPs * 1e-3, high = low;
    for (int i = 0; i < n; i++) {
        lo = fmin(lo, dot[i].x), hi = fmax(hi, dot[i].x);
        low = fmin(low, dot[i].y * 1e-12), high = fmax(high, dot[i].y * 1e-12);
    }
    fprintf(out, "set yrange [%.6g:%.6g]\n", low / 2, high * 2);
    put_x_axis(out, lo / 2, hi * 4);
}

/* As many columns as the longest name leaves room for. */
static int key_rows(const char *const *kernel, int kernels)
{
    size_t widest = 1;
    for (int k = 0; k < kernels; k++) widest = strlen(kernel[k]) > widest ? strlen(kernel[k]) : widest;
    int across = WIDTH / (int)(11 * widest + 70);
    return across > 1 ? (kernels + across - 1) / across : kernels;
}

static bool is_counted(const struct sheet *s)
{
    for (int i = 0; i < s->n; i++)
        if (!isnan(sheet_real(s, i, "dram_read_B"))) return true;
    return false;
}

/* Returns its lines. */
static int put_title(FILE *out, const struct ceilings *c, bool counted, int left_out)
{
    char words[200], read[32], matrix[32];
    fputs("title = ", out);
    gnuplot_quoted(out, text(words, sizeof words, "Roofline: read %s GB/s, matrix %s GFLOP/s, as measured",
        amount_text(c->read_GBps, read, sizeof read), amount_text(c->matrix_GFLOPs, matrix, sizeof matrix)));
    fprintf(out, ".\"\\n\".'%s'", counted ? "(bytes as counted)" : "(no counters: the fewest bytes that a call must move)");
    if (left_out) fprintf(out, ".\"\\n\".'%d more kernels: counters.csv'", left_out);
    fputc('\n', out);
    return 2 + (left_out > 0);
}

char *roofline_script(const struct sheet *s, const struct ceilings *ceilings, const char *name, const char *look, int *ret_left_out)
{
    struct dot *dot = must_alloc((size_t)s->n, sizeof *dot);
    const char **kernel = must_alloc((size_t)s->n, sizeof *kernel);
    int kernels, n = find_dots(s, dot, kernel, &kernels), shown = kernels < MOST_KERNELS ? kernels : MOST_KERNELS;
    char *bytes = NULL;
    size_t size;
    *ret_left_out = kernels - shown;
    if (n && drawable(ceilings->read_GBps) && drawable(ceilings->matrix_GFLOPs)) {
        FILE *out = open_memstream(&bytes, &size);
        locale_t before = c_numbers();
        int rows = key_rows(kernel, shown), foot = 98 + KEY_LINE * rows;
        gnuplot_file(out, "figure", name, "svg");
        int head = 16 + TITLE_LINE * put_title(out, ceilings, is_counted(s), kernels - shown);
        fprintf(out, "width = %d.0\nheight = %d.0\nhead = %d.0\nfoot = %d.0\nkey_rows = %d\nkernels = %d\n", WIDTH,
            head + AXES + foot, head, foot, rows, shown);
        fprintf(out, "read_TBps = %.6g\nmatrix_TFLOPs = %.6g\n", ceilings->read_GBps * 1e-3, ceilings->matrix_GFLOPs * 1e-3);
        put_axes(out, dot, n, ceilings);
        put_dots(out, dot, n, kernel, shown);
        fprintf(out, "\n%s", look);
        uselocale(before);
        if (fclose(out)) die(EXIT_ENVIRONMENT, "out of host memory for a plot");
    }
    free(dot), free(kernel);
    return bytes;
}

#include "plot_map.h"

#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "format.h"
#include "gnuplot.h"
#include "registry.h"

enum { WIDTH = 640, FIELD = 40, TITLE_LINE = 25, KEY_LINE = 31 };   /* pixels */

/* Okabe and Ito's palette as in lines.gp, then tints: letters tell more kernels than there are colours. dark: white letters. */
static const struct { const char *rgb; bool dark; } colours[] = {
    {"#0072B2", true}, {"#E69F00", false}, {"#009E73", true}, {"#D55E00", true}, {"#56B4E9", false}, {"#CC79A7", false},
    {"#505050", true}, {"#F0E442", false}, {"#9ECAE1", false}, {"#C7E9C0", false}, {"#FDD0A2", false}, {"#D8D8D8", false},
};

char *map_name(const struct table *table, const struct map *map, char *ret, size_t size)
{
    char fixed[200];
    map_fixed_text(table, map, fixed, sizeof(fixed));
    text(ret, size, "%s-fastest%s%s-%s-%s", map->like->op, *fixed ? "-" : "", fixed, map->like->engine, map->like->cache);
    char *to = ret;
    for (char *c = ret; *c; c++) {
        if (*c == '=') continue;
        *to++ = *c == ',' ? '-' : *c;
    }
    *to = '\0';
    return gnuplot_file_name(ret);
}

/* Batch grows upwards. A tie's strips stand side by side, the fastest first. */
static void put_field(FILE *out, const struct map_cell *cell, int x, int y, int *object)
{
    for (int i = 0; i < cell->n; i++) {
        int    colour = cell->kernel[i] % COUNT(colours);
        double from = x - 0.47 + 0.94 * i / cell->n, to = x - 0.47 + 0.94 * (i + 1) / cell->n;
        fprintf(out, "set object %d rectangle from first %.3f, %.3f to first %.3f, %.3f fc rgb '%s' fs solid noborder behind\n",
            ++*object, from, y - 0.46, to, y + 0.46, colours[colour].rgb);
        if (cell->n <= 3)
            fprintf(out, "set label %d '%c' at first %.3f, %d center textcolor rgb '%s'\n", 10 + *object, 'a' + cell->kernel[i],
                (from + to) / 2, y, colours[colour].dark ? "white" : "black");
    }
}

static void put_ticks(FILE *out, char axis, const char *dim, const int64_t *value, int n, int most)
{
    char word[32];
    int  step = (n + most - 1) / most;
    fprintf(out, "set %ctics (", axis);
    for (int i = 0; i < n; i += step)
        fprintf(out, "%s'%s' %d", i ? ", " : "", dim_text(dim, value[i], word, sizeof(word)), i);
    fputs(")\n", out);
}

static const char *unit_of(const struct map *map, const char *dim)
{
    const struct op *op = op_find(map->like->op);
    int d = op ? op_dim(op, dim) : -1;
    return d >= 0 && op->dim[d].unit ? op->dim[d].unit : "";
}

static void put_name(FILE *out, const struct map *map, const char *what, const char *dim)
{
    char words[80];
    const char *unit = unit_of(map, dim);
    fprintf(out, "%s = ", what);
    gnuplot_quoted(out, text(words, sizeof(words), *unit ? "%s (%s)" : "%s", dim, unit));
    fputc('\n', out);
}

/* Letters beside the colours: those who see no colour read them. */
static void put_key(FILE *out, const struct map *map)
{
    fputs("colours = '", out);
    for (int k = 0; k < map->n_kernels; k++) fprintf(out, "%s%s", k ? " " : "", colours[k % COUNT(colours)].rgb);
    fputs("'\nname(i) = ", out);
    for (int k = 0; k < map->n_kernels; k++) {
        char words[160];
        fprintf(out, "i == %d ? ", k + 1);
        gnuplot_quoted(out, text(words, sizeof(words), "%c  %s", 'a' + k, map->kernel[k]));
        fputs(" : ", out);
    }
    fputs("''\n", out);
}

static int key_rows(const struct map *map)
{
    size_t widest = 1;
    for (int k = 0; k < map->n_kernels; k++)
        if (strlen(map->kernel[k]) + 3 > widest) widest = strlen(map->kernel[k]) + 3;
    int fit = WIDTH / (int)(11 * widest + 60);
    return fit > 1 ? (map->n_kernels + fit - 1) / fit : map->n_kernels;
}

char *map_script(const struct table *table, const struct map *map, const char *name, const char *look)
{
    char  *bytes, fixed[500], title[700];
    size_t size;
    FILE  *out = open_memstream(&bytes, &size);
    int    rows = key_rows(map), head = 18 + 2 * TITLE_LINE, foot = 86 + KEY_LINE * rows, object = 0;
    int    axes = FIELD * map->n_down < 160 ? 160 : FIELD * map->n_down > 480 ? 480 : FIELD * map->n_down;
    gnuplot_file(out, "figure", name, "svg");
    fputs("title = ", out);
    gnuplot_quoted(out, text(title, sizeof(title), "%s, %s, %s: fastest kernel; a cut field is a tie",
        map->like->op, map->like->cache, map->like->engine));
    if (*map_fixed_text(table, map, fixed, sizeof(fixed))) {
        fputs(".\"\\n\".", out);
        gnuplot_quoted(out, fixed);
    }
    fputc('\n', out);
    put_name(out, map, "xname", map->across);
    put_name(out, map, "yname", map->down);
    fprintf(out, "width = %d.0\nheight = %d.0\nhead = %d.0\nfoot = %d.0\nkey_rows = %d\ncolumns = %d\nlines = %d\nkernels = %d\n",
        WIDTH, head + axes + foot, head, foot, rows, map->n_across, map->n_down, map->n_kernels);
    put_key(out, map);
    for (int y = 0; y < map->n_down; y++)
        for (int x = 0; x < map->n_across; x++) put_field(out, &map->cell[y][x], x, y, &object);
    put_ticks(out, 'x', map->across, map->across_value, map->n_across, 9);
    put_ticks(out, 'y', map->down, map->down_value, map->n_down, axes / 30);
    fprintf(out, "\n%s", look);
    if (fclose(out)) die(EXIT_ENVIRONMENT, "out of host memory for a plot");
    return bytes;
}

#include "plot_script.h"

#include <math.h>
#include <string.h>
#include "base.h"
#include "format.h"
#include "gnuplot.h"
#include "plot_axes.h"
#include "registry.h"

enum { WIDTH = 640, AXES = 300, TITLE_LINE = 25, KEY_LINE = 31 };   /* pixels */

static char *add(char *ret, size_t size, const char *word)
{
    size_t n = strlen(ret);
    if (n < size) text(ret + n, size - n, "%s", word);
    return ret;
}

/* In what the rows of the op differ beside dims, so that a figure's name must say which it shows. */
static void regime_varies(const struct table *table, const struct row *like, bool *seed, bool *cache, bool *engine)
{
    *cache = *engine = *seed = false;
    for (int i = 0; i < table->n; i++) {
        const struct row *row = &table->row[i];
        if (strcmp(row->op, like->op)) continue;
        *cache |= strcmp(row->cache, like->cache) != 0;
        *engine |= strcmp(row->engine, like->engine) != 0;
        *seed |= row->seed != like->seed;
    }
}

char *figure_name(const struct table *table, const struct figure *f, char *ret, size_t size)
{
    char word[100], number[32];
    bool seed, cache, engine;
    text(ret, size, "%s-%s", f->like->op, f->dim);
    for (int d = 0; d < f->like->n_dims; d++) {
        const struct row_dim *dim = &f->like->dim[d];
        if (!strcmp(dim->name, f->dim) || !dim_varies(table, f->like->op, dim->name)) continue;
        add(ret, size, text(word, sizeof(word), "-%s%s", dim->name, dim_text(dim->name, dim->value, number, sizeof(number))));
    }
    regime_varies(table, f->like, &seed, &cache, &engine);
    if (engine) add(ret, size, text(word, sizeof(word), "-%s", f->like->engine));
    if (cache) add(ret, size, text(word, sizeof(word), "-%s", f->like->cache));
    if (seed) add(ret, size, text(word, sizeof(word), "-seed%lld", (long long)f->like->seed));
    if (f->ratio) add(ret, size, "-speedup");
    if (f->page) add(ret, size, text(word, sizeof(word), "-%d", f->page + 1));
    return gnuplot_file_name(ret);
}

/* Times are drawn in the unit of their geometric middle. */
static const struct { const char *name; double ns; } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

static int unit_of(const struct figure *f, struct range y)
{
    int unit = 0;
    double middle = sqrt(y.lo) * sqrt(y.hi);
    if (f->ratio) return 0;
    while (unit + 1 < COUNT(units) && middle >= 1.5 * units[unit + 1].ns) unit++;
    return unit;
}

char *figure_data(const struct figure *f)
{
    char *bytes;
    size_t size;
    FILE *out = open_memstream(&bytes, &size);
    double scale = f->ratio ? 1 : units[unit_of(f, axes_y(f))].ns;
    for (int c = 0; c < f->n; c++) {
        gnuplot_header(out, f->curve[c].label);
        for (int i = 0; i < f->curve[c].n; i++) {
            const struct point *p = &f->curve[c].point[i];
            const double cell[] = {(double)p->x, p->y / scale, p->lo / scale, p->hi / scale};
            for (int k = 0; k < COUNT(cell); k++) {
                if (k) fputc(' ', out);
                axes_number(out, cell[k]);
            }
            fputc('\n', out);
        }
        fputs("\n\n", out);
    }
    if (fclose(out)) die(EXIT_ENVIRONMENT, "out of host memory for a plot");
    return bytes;
}

/* "attn, cold, cuda" above "heads=64, ctx=128K, window=128". Returns how many lines. */
static int put_title(FILE *out, const struct figure *f)
{
    enum { LINE = 64 };
    char line[900], dim[64], number[32];
    int lines = 1;
    text(line, sizeof(line), "%s%s%s%s%s%s%s", f->like->op, f->like->cache[0] ? ", " : "", f->like->cache, f->like->engine[0]
        ? ", " : "",
        f->like->engine, f->ratio ? ": speed-up over " : "", f->ratio ? f->base : "");
    fputs("title = ", out);
    gnuplot_quoted(out, line);
    line[0] = '\0';
    for (int d = 0; d < f->like->n_dims; d++) {
        if (!strcmp(f->like->dim[d].name, f->dim)) continue;
        text(dim, sizeof(dim), "%s=%s", f->like->dim[d].name, dim_text(f->like->dim[d].name, f->like->dim[d].value, number,
            sizeof(number)));
        if (line[0] && strlen(line) + 2 + strlen(dim) > LINE) {
            fputs(".\"\\n\".", out);
            gnuplot_quoted(out, add(line, sizeof(line), ","));
            line[0] = '\0';
            lines++;
        }
        if (line[0]) add(line, sizeof(line), ", ");
        add(line, sizeof(line), dim);
    }
    if (line[0]) {
        fputs(".\"\\n\".", out);
        gnuplot_quoted(out, line);
        lines++;
    }
    fputc('\n', out);
    return lines;
}

static void put_labels(FILE *out, const struct figure *f, int unit)
{
    char label[300];
    fputs("xname = ", out);
    gnuplot_quoted(out, text(label, sizeof(label), f->unit[0] && strcmp(f->unit, f->dim) ? "%s (%s)" : "%s", f->dim, f->unit));
    fputs("\nyname = ", out);
    gnuplot_quoted(out, f->ratio ? "speed-up" : text(label, sizeof(label), "time of one call (%s)", units[unit].name));
    fputc('\n', out);
}

/* Blocks of each kind: kernels first, then probes, then limits. */
static void put_blocks(FILE *out, const struct figure *f)
{
    int kernels = 0, probes = 0, limits = 0;
    fputs("styles = '", out);
    for (int c = 0; c < f->n; c++) {
        if (f->curve[c].style >= 0) fprintf(out, "%s%d", kernels++ ? " " : "", f->curve[c].style + 1);
        else if (f->curve[c].style == -1) probes++;
        else limits++;
    }
    fprintf(out, "'\nkernels = %d\nprobes = %d\nlimits = %d\n", kernels, probes, limits);
}

/* In as many columns as the widest label leaves room for. */
static int key_rows(const struct figure *f)
{
    size_t widest = 1;
    for (int c = 0; c < f->n; c++) {
        if (strlen(f->curve[c].label) > widest) widest = strlen(f->curve[c].label);
    }
    int fit = WIDTH / (int)(11 * widest + 70);
    return fit > 1 ? (f->n + fit - 1) / fit : f->n;
}

char *figure_script(const struct figure *f, const char *name, const char *look)
{
    char *bytes;
    size_t size;
    FILE *out = open_memstream(&bytes, &size);
    struct range x = axes_x(f), y = axes_y(f);
    int unit = unit_of(f, y);
    y.lo /= units[unit].ns;
    y.hi /= units[unit].ns;
    if (!y.log) y.lo = 0;
    gnuplot_file(out, "data", name, "dat");
    gnuplot_file(out, "figure", name, "svg");
    put_blocks(out, f);
    int rows = key_rows(f), head = 18 + TITLE_LINE * put_title(out, f), foot = 86 + KEY_LINE * rows;
    put_labels(out, f, unit);
    fprintf(out, "width = %d.0\nheight = %d.0\nhead = %d.0\nfoot = %d.0\nkey_rows = %d\n", WIDTH, head + AXES + foot, head, foot,
        rows);
    axes_range(out, 'x', axes_padded(x, x.log ? 1.12 : 1.04));
    struct range room = axes_padded(y, y.log ? 1.25 : 1.08);
    if (!y.log) room.lo = 0;
    axes_range(out, 'y', room);
    axes_x_ticks(out, f, x);
    axes_y_ticks(out, room);
    fprintf(out, "\n%s", look);
    if (fclose(out)) die(EXIT_ENVIRONMENT, "out of host memory for a plot");
    return bytes;
}

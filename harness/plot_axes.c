#include "plot_axes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "csv.h"
#include "format.h"
#include "registry.h"

enum { MOST_TICKS = 9 };
static const double CHARACTER = 0.026, GAP = 0.02;   /* of a label, and between two: in lengths of the x axis of lines.gp */

struct range axes_y(const struct figure *f)
{
    struct range r = {INFINITY, 0, false};
    for (int c = 0; c < f->n; c++) {
        for (int i = 0; i < f->curve[c].n; i++) {
            const struct point *p = &f->curve[c].point[i];
            if (!isfinite(p->y)) continue;
            if (p->lo < r.lo) r.lo = p->lo;
            if (p->hi > r.hi) r.hi = p->hi;
        }
    }
    r.log = r.hi >= 6 * r.lo;
    return r;
}

struct range axes_x(const struct figure *f)
{
    struct range r = {INFINITY, -INFINITY, false};
    for (int c = 0; c < f->n; c++) {
        for (int i = 0; i < f->curve[c].n; i++) {
            double x = (double)f->curve[c].point[i].x;
            if (x < r.lo) r.lo = x;
            if (x > r.hi) r.hi = x;
        }
    }
    r.log = r.lo > 0 && r.hi >= 8 * r.lo;
    return r;
}

void axes_number(FILE *out, double value)
{
    char number[32];
    fputs(isnan(value) ? "NaN" : real_text(value, number), out);
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void axes_x_ticks(FILE *out, const struct figure *f, struct range x)
{
    int64_t all[4096];
    int n = 0;
    for (int c = 0; c < f->n; c++) {
        for (int i = 0; i < f->curve[c].n && n < COUNT(all); i++) all[n++] = f->curve[c].point[i].x;
    }
    qsort(all, (size_t)n, sizeof(all[0]), ascending);
    double span = x.log ? log(x.hi / x.lo) : x.hi - x.lo, last = -INFINITY;
    size_t before = 0;   /* characters of the label at `last` */
    bool first = true;
    fputs("set xtics (", out);
    for (int i = 0; i < n; i++) {
        double value = (double)all[i], at = span > 0 ? (x.log ? log(value / x.lo) : value - x.lo) / span : 0;
        char label[32];
        size_t characters = strlen(value_text(all[i], label, sizeof(label)));
        if (at - last < fmax(0.999 / MOST_TICKS, (double)(before + characters) / 2 * CHARACTER + GAP)) continue;
        fprintf(out, "%s'%s' ", first ? "" : ", ", label);
        axes_number(out, value);
        first = false;
        last = at;
        before = characters;
    }
    fputs(")\n", out);
}

void axes_y_ticks(FILE *out, struct range y)
{
    static const double steps[] = {1, 2, 5};
    bool fine = y.hi < 300 * y.lo, first = true;
    if (!y.log) return;
    fputs("set ytics (", out);
    for (int decade = (int)floor(log10(y.lo)); decade <= (int)ceil(log10(y.hi)); decade++) {
        for (int s = 0; s < (fine ? 3 : 1); s++) {
            char number[32];
            double value = steps[s] * pow(10, decade);
            if (value < y.lo * 0.999 || value > y.hi * 1.001) continue;
            if (value < 0.01 || value >= 1e9) text(number, sizeof(number), "1e%d", decade);
            else if (value < 1) text(number, sizeof(number), "%g", value);
            else amount_text(round(value), number, sizeof(number));
            char *point = value >= 1 ? strchr(number, '.') : NULL;   /* "2.00" -> "2" */
            if (point) *point = '\0';
            fprintf(out, "%s'%s' ", first ? "" : ", ", number);
            axes_number(out, value);
            first = false;
        }
    }
    fputs(")\n", out);
}

struct range axes_padded(struct range r, double factor)
{
    if (r.log) return (struct range){r.lo / factor, r.hi * factor, true};
    double room = r.hi > r.lo ? (factor - 1) * (r.hi - r.lo) : r.hi != 0 ? fabs(r.hi) / 2 : 1;
    return (struct range){r.lo - room, r.hi + room, false};
}

void axes_range(FILE *out, char axis, struct range r)
{
    if (r.log) fprintf(out, "set logscale %c\n", axis);
    fprintf(out, "set %crange [", axis);
    axes_number(out, r.lo);
    fputs(":", out);
    axes_number(out, r.hi);
    fputs("]\n", out);
}

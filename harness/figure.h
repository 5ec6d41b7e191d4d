/* Which figures a table gives: one op, time against one dimension, everything else held fixed. Knows no gnuplot. */
#ifndef KBENCH_FIGURE_H
#define KBENCH_FIGURE_H

#include <stdbool.h>
#include "table.h"

enum { MAX_LINES = 7, MAX_KERNELS = MAX_LINES - 2 };  /* beside the kernels: probe and limit */
enum { STYLES = 7 };                                  /* colours with a point shape each, in plots/lines.gp */

struct point {
    int64_t x;
    double  y, lo, hi;    /* NaN: measured without success, the line breaks here */
};

struct curve {
    char          label[200];
    int           style;  /* from the kernel's number within its op, so mostly the same in all figures; -1 probe, -2 limit */
    int           n;
    struct point *point;  /* ascending in x */
};

struct figure {
    const struct row *like;                       /* stands for all its rows in what is held fixed */
    char              dim[24], unit[24];          /* the axis */
    int               page, pages;                /* of the kernels that share one figure's room */
    bool              ratio;                      /* speed-up over the first kernel instead of time in ns */
    char              base[200];                  /* its label */
    int               n;
    struct curve      curve[MAX_LINES];
};

/* One plane through the table: rows that differ in kernel, tunables and `dim` alone. */
struct slice {
    const struct row *like;
    char              dim[24], unit[24];
    int               dim_index;                  /* in the order in which the axis was met */
    int               values, points, at_default; /* distinct x, rows that are ok, dims at their op's default */
};

/* Every slice with at least two x for which something was measured, in the order in which they are worth drawing: for each op and
 * dimension in turn the one with most points, then the next. Dimensions that are labels give no axis. free() it. */
struct slice *slices_find(const struct table *, int *ret_n);

/* The figures of a slice: time, and with two kernels or more the speed-up; several pages where more than MAX_KERNELS compete, each
 * with the first kernel again. Returns how many; figures_free() them. */
int  figures_make(const struct table *, const struct slice *, struct figure **ret);
void figures_free(struct figure *, int n);

/* Whether two rows lie in the same slice along dim. */
bool slice_has(const struct slice *, const struct row *);
/* Whether the dimension has several values among the rows of the slice's op. */
bool dim_varies(const struct table *, const char *op, const char *dim);

#endif

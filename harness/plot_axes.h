/* The axes of a figure: what range its points take, and ticks that can be read. */
#ifndef KBENCH_PLOT_AXES_H
#define KBENCH_PLOT_AXES_H

#include <stdio.h>
#include "figure.h"

struct range {
    double lo, hi;
    bool   log;
};

/* Of all that is drawn; limits and probes too, bars too. */
struct range axes_x(const struct figure *);
struct range axes_y(const struct figure *);
/* Room around what is drawn; a range of nothing gets some. */
struct range axes_padded(struct range, double factor);

/* "set logscale x", "set xrange [...]" */
void axes_range(FILE *, char axis, struct range);
/* The x that were measured, thinned until their labels stand apart. */
void axes_x_ticks(FILE *, const struct figure *, struct range);
/* On a log axis 1, 2, 5 where the range is short, else powers of ten; on a plain one gnuplot's own choice is good. */
void axes_y_ticks(FILE *, struct range);
/* In the C locale; NaN as gnuplot has it. */
void axes_number(FILE *, double);

#endif

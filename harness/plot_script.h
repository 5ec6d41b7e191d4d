/* A figure as gnuplot reads it: blocks of points, and the values that plots/lines.gp asks for. */
#ifndef KBENCH_PLOT_SCRIPT_H
#define KBENCH_PLOT_SCRIPT_H

#include "figure.h"

/* "attn-batch-ctx128K-speedup-2", of letters that every file system takes: op, axis, what is fixed but varies in the table. */
char *figure_name(const struct table *, const struct figure *, char *ret, size_t size);

/* malloc'ed texts. look: what plots/lines.gp holds. */
char *figure_data(const struct figure *);
char *figure_script(const struct figure *, const char *name, const char *look);

#endif

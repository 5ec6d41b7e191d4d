/* A map of winners as gnuplot reads it: fields, letters, and the values that plots/map.gp asks for. */
#ifndef KBENCH_PLOT_MAP_H
#define KBENCH_PLOT_MAP_H

#include "crossover.h"

/* "attn-fastest-heads64", of letters that every file system takes. */
char *map_name(const struct table *, const struct map *, char *ret, size_t size);

/* malloc'ed text. look: what plots/map.gp holds. */
char *map_script(const struct table *, const struct map *, const char *name, const char *look);

#endif

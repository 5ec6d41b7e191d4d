/* Which kernel is fastest where: a winner a problem, and maps of winners over batch and another dimension. Pure functions of
 * rows. */
#ifndef KBENCH_CROSSOVER_H
#define KBENCH_CROSSOVER_H

#include "table.h"

enum { MOST_TIES = 6, MAP_SIDE = 32, MAP_KERNELS = 26, MAPS_SHOWN = 2 };

/* One problem that two kernels at least were measured on. Of a kernel with several tunables the fastest counts. */
struct contest {
    const struct row *best;             /* NULL: none */
    int               n_ties;           /* best included; the fastest first */
    const struct row *tie[MOST_TIES];   /* intervals overlap, or within 2 % */
    const struct row *next;             /* the fastest that is no tie, or NULL */
};

/* Rows [0, n) are one group. */
struct contest contest_of(const struct row *rows, int n);

struct map_cell {
    bool there;
    int  n;                             /* kernels in it: more than one is a tie */
    int  kernel[MOST_TIES];
};

/* The contests of one op that differ in `down` and `across` alone. */
struct map {
    const struct row *like;
    char              down[24], across[24];   /* "batch", "ctx" */
    int               n_down, n_across;
    int64_t           down_value[MAP_SIDE], across_value[MAP_SIDE];   /* ascending */
    int               n_kernels;              /* that win or tie somewhere */
    char              kernel[MAP_KERNELS][140];
    int               n_cells;                /* that are there */
    struct map_cell   cell[MAP_SIDE][MAP_SIDE];   /* [down][across] */
};

/* Maps with two values each way at least and three cells, those with most cells first, at most MAPS_SHOWN an op. free() it. */
struct map *maps_find(const struct table *, int *ret_n);

/* crossover.csv: a line a contest. malloc'ed text, header always. */
char *crossover_csv(const struct table *);

/* What a map holds fixed: "heads=64,max_ctx=1M". Dims that have one value in all rows of the op are left out. */
char *map_fixed_text(const struct table *, const struct map *, char *ret, size_t size);

#endif

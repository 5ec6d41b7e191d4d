/* Rows for people: the terminal table (80 columns) and Markdown. Reads rows only. */
#ifndef KBENCH_REPORT_H
#define KBENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>
#include "format.h"
#include "machine.h"
#include "scaling.h"
#include "sheet.h"
#include "table.h"

/* A dimension met in this run's problems, and whether it has one value throughout. */
struct seen_dim {
    char    name[24];
    int64_t value;
    bool    varies;
};

struct report_options {
    int  width;        /* columns; 80 at least */
    bool colour;       /* bold and colour; honours NO_COLOR before it is set here */
    bool markdown;
    const char *folder;  /* of the run; NULL: none */
    const char *next;    /* "what to do next" lines, NULL: the usual ones */
    int         above;   /* growths above their declaration, for the summary */
    const struct sheet *breakdown, *counters;   /* of a profile's folder, for report_all; NULL: none */

    /* Filled by report_see: dims that never vary are said once, by report_machine, and left out of every report_group. Where none
     * varies, all stand in the group. */
    int             n_seen;
    struct seen_dim seen[MAX_DIM_COLUMNS];
};

/* Call for every dim of every problem that is going to be reported, before anything is. report_all does so itself. */
void report_see(struct report_options *, const char *dim, int64_t value);

/* Device and measured ceilings: the head of every report; and the dims that hold throughout. */
void report_machine(FILE *, const struct machine *, const struct report_options *);
/* One problem with its kernels; rows [0, n) are one row group. */
void report_group(FILE *, const struct row *rows, int n, const struct report_options *);
/* How time grows with each dimension that has three sizes or more, and which kernels grow above their declaration. Nothing where
 * there is no such dimension. */
void report_growth(FILE *, const struct scalings *, const struct table *, const struct report_options *);
/* Which kernel is fastest at each batch and context, where both vary. */
void report_crossover(FILE *, const struct table *, const struct report_options *);
/* Counts by status, the line that repeats each failure, folder, what next. */
void report_summary(FILE *, const struct table *, const struct report_options *);
/* All of the above, from a run folder's table; groups are runs of rows with equal op, dims, cache and seed. machine: NULL
 * where it is unknown. */
void report_all(FILE *, const struct machine *, const struct table *, const struct report_options *);

/* The row that the others of its group are compared with: the first that is ok and no probe. NULL: none. */
const struct row *report_base(const struct row *rows, int n);

#endif

/* Rows for people: the terminal table (80 columns) and Markdown. Reads rows only. */
#ifndef KBENCH_REPORT_H
#define KBENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>
#include "machine.h"
#include "table.h"

struct report_options {
    int  width;        /* columns; 80 at least */
    bool colour;       /* bold and colour; honours NO_COLOR before it is set here */
    bool markdown;
    const char *folder;  /* of the run; NULL: none */
    const char *next;    /* "what to do next" lines, NULL: the usual ones */
};

/* Device and measured ceilings: the head of every report. */
void report_machine(FILE *, const struct machine *, const struct report_options *);
/* One problem with its kernels; rows [0, n) are one row group. */
void report_group(FILE *, const struct row *rows, int n, const struct report_options *);
/* Counts by status, failures with the line that repeats each, folder, what next. */
void report_summary(FILE *, const struct table *, const struct report_options *);
/* All of the above, from a run folder's table; groups are runs of rows with equal op, dims, cache and seed. */
void report_all(FILE *, const struct machine *, const struct table *, const struct report_options *);

/* 12345.6 ns -> "12.3 us" in at most 8 characters; NaN -> "-". Three significant digits. */
char *ns_text(double ns, char *ret, size_t size);

#endif

/* What the terminal report and the Markdown report share: the words, without the layout. */
#ifndef KBENCH_REPORT_PARTS_H
#define KBENCH_REPORT_PARTS_H

#include "report.h"

/* Each returns ret. */
char *machine_text(const struct machine *, char *ret, size_t size);      /* "NVIDIA H200, 132 SMs, driver 580.159, CUDA 13.0" */
char *ceilings_text(const struct machine *, char *ret, size_t size);     /* "read 4,550 GB/s, ..."; "" where none was measured */
char *throughout_text(const struct report_options *, char *ret, size_t size);   /* "heads=64, window=128"; "" none */
char *problem_dims_text(const struct row *, const struct report_options *, char *ret, size_t size);   /* "batch=64,ctx=128K" */
char *regime_text(const struct row *rows, int n, char *ret, size_t size);       /* "cold, 7 sets of 42 MB" */
char *limit_text(const struct row *rows, int n, char *ret, size_t size);        /* "limit 11.0 us by bytes"; "" unknown */
char *marks_text(const struct row *, char *ret, size_t size);            /* "noisy, drifting" */
/* "12 ok, 1 wrong; 1 growth above its declaration; 2 with marks: 1 noisy, 1 drifting" */
char *counts_text(const struct table *, int above, char *ret, size_t size);

/* base's time / row's time, NaN where one is missing; *ret_clear: whether their intervals leave no doubt which is faster. */
double speedup(const struct row *base, const struct row *row, bool *ret_clear);

/* The share column of a group: of the probe's speed where there is a probe, else of the limit. */
struct share {
    const char *title;
    size_t      offset;   /* of the double in struct row */
};
struct share share_of(const struct row *rows, int n);
double       share_get(const struct share *, const struct row *);

/* Rows [i, result) of the table are one group. */
int group_end(const struct table *, int i);

/* Whether a dimension is said once for all groups, by report_machine. */
bool report_says_once(const struct report_options *, const char *dim);

/* The series of a kernel and dimension that tells most, or NULL. */
const struct scaling *growth_of(const struct scalings *, const struct row *, const char *dim);

void markdown_machine(FILE *, const struct machine *, const struct report_options *);
void markdown_group(FILE *, const struct row *rows, int n, const struct report_options *);
void markdown_growth(FILE *, const struct scalings *, const struct table *, const struct row *const *runner, int n);
struct map;
char *everywhere_text(const struct table *, const struct map *, char *ret, size_t size);
void markdown_map(FILE *, const struct table *, const struct map *);
void markdown_summary(FILE *, const struct table *, const struct report_options *);

#endif

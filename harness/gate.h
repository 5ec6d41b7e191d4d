/* Gates: what a gate file wants, held against the rows of one run and against static facts. Knows no file and no device. */
#ifndef KBENCH_GATE_H
#define KBENCH_GATE_H

#include <stdio.h>
#include "gatefile.h"
#include "noise_floors.h"
#include "table.h"

enum verdict { GATE_HOLDS, GATE_BROKEN, GATE_OPEN, GATE_LEFT_OUT, GATE_VERDICTS };

extern const char *const verdict_name[GATE_VERDICTS];   /* "holds", "broken", "inconclusive", "left out" */

/* One pair of rows, one function of a kernel, or a gate as a whole. */
struct finding {
    const struct gate *gate;
    enum verdict       verdict;
    double             ratio, lo, hi;     /* of times: over / kernel; NaN where there is none */
    double             floor_pct;         /* the larger noise floor of both, by which lo and hi are wider; NaN unknown */
    char               what[400];         /* which problem or function */
    char               why[500];          /* empty: nothing to add */
    const char        *repeat;            /* the line that repeats the kernel's row, or NULL; within the table */
};

struct findings {
    int             n;
    struct finding *finding;
    int             count[GATE_VERDICTS];
};

/* A row with a mark is believed only where the ratio is this many times away from the limit, on either side. */
extern const double gate_marked_margin;

/* The findings on a run that lacks rows of its plan, or whose last line is cut short, begin with one of this. */
extern const struct gate gate_whole_run;

/* run: NULL where the file has static limits alone. floors: of the run's device, or NULL. strict: a marked row is never
 * believed. */
struct findings gate_judge(const struct gatefile *, const struct table *run, const struct noise_floors *floors,
                           const struct static_fact *, const char *toolkit, bool strict);
void            findings_free(struct findings *);

/* 3 where something is broken, else 4 where something is inconclusive or nothing was judged at all, else 0. */
int findings_code(const struct findings *);

/* For people, at 80 columns; and JUnit XML. title: the gate file; folder: of the run, or NULL. */
void gate_print(FILE *, const struct findings *, const char *title, const char *folder);
void gate_junit(FILE *, const struct findings *, const char *title);

#endif

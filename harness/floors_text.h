/* Noise floors in words, and as the file that the gate reads. */
#ifndef KBENCH_FLOORS_TEXT_H
#define KBENCH_FLOORS_TEXT_H

#include <stdbool.h>
#include <stdio.h>
#include "channel.h"

enum { FLOOR_REPEATS = 3, FLOOR_ROUNDS = 60 };
enum { FLOORS_WIDTH = 80 };   /* columns of what a person reads */
enum { FLOORS_SCHEMA = 2 };   /* 1: loaded_pct was of a tracer that had been on */

struct floor {
    struct row    row;                   /* who it is */
    int           n;
    double        ratio[FLOOR_REPEATS];  /* of the medians of the two copies */
    int           disturbed;             /* repeats in which other work was seen */
    double        pct;                   /* the largest of them */
    struct loaded loaded;                /* without copies: before, with and after the tracer */
};

/* By how many per cent a call takes longer with the tracer loaded but off than without, in rounds of one run; NaN: not measured. */
double floor_loaded_pct(const struct floor *);
/* And than in the second run before there was one: in a run without it any more, and in one once it has been on. */
double floor_gone_pct(const struct floor *);
double floor_traced_pct(const struct floor *);
/* The same of the two runs before: what another run alone changes. */
double floor_again_pct(const struct floor *);

void  floors_head(FILE *);
void  floors_line(FILE *, const struct floor *, const struct group *);
/* The worst of each, and why a tracer's cost is missing: why "" where it isn't. */
void  floors_worst(FILE *, const struct floor *, int n, const char *why);
/* Whether it is a file of this machine's floors, so that what is measured now can join them. False: ret_why says what it is. */
bool  floors_whole(const char *json, const struct machine *, char *ret_why, size_t size);
/* The file: rows of the earlier one (NULL: none; else a whole one) as they stand there, but for those measured anew, which take
 * their places; others behind. malloc'ed; NULL: no memory. */
char *floors_json(const struct machine *, const struct floor *, int n, const char *why, const char *earlier);
/* What env.json says of the machine, an object, with these floors as "floors": as in the file, and beside the rows the worst. */
char *floors_beside(const char *env, const struct machine *, const struct floor *, int n, const char *why);

#endif

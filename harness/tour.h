/* One kernel over the ring of input sets in pieces of equally many calls, each a graph: what traces, counters and their untraced
 * times walk round. */
#ifndef KBENCH_TOUR_H
#define KBENCH_TOUR_H

#include "breakdown.h"
#include "check.h"

enum { TOUR_CHUNKS = 64 };
#define TOUR_PART_S 0.1   /* of a part of a long ring, and of a pass of the counters, which take some fifteen */

/* A kernel over the ring in pieces of equally many calls, each a graph. */
struct tour {
    struct bound *bound;
    struct dev   *dev;
    int           chunks, calls;     /* calls in each chunk */
    int           at_once, next;     /* chunks in a walk, all or 1, and where the next one begins */
    int           passes;            /* over a chunk in one graph */
    struct tour_piece {
        struct tour *tour;
        int          first;
    } piece[TOUR_CHUNKS];
    struct graph *graph[TOUR_CHUNKS];
    struct recording *host;          /* HOST: calls are recorded by the clock, or NULL */
    int           room;              /* for as many there */
    const char       *name;          /* of the kernel there */
};

/* call_ns: about what a call takes; NaN: nobody knows. Where the whole ring would take longer than walk_s, a walk is one of its
 * parts: they follow each other round the ring, so each set has left the cache by the time it is its turn again. */
void tour_plan(struct tour *, struct bound *, double call_ns, double walk_s);
/* Passes over a short ring in one graph, as the timer has them: else two events and the begin of a graph would cost a call what its
 * records don't show, and the first of a graph's calls, which takes longer on a GPU that was idle, would be one of few. Not
 * over a chunk of a long one, which a cache might hold. */
int  tour_passes(const struct tour *, double call_ns);

/* 0 or the device's error, as the others. */
int  tour_capture(struct tour *);
void tour_drop(struct tour *);
/* Round the ring, or on by a part of it, and a wait. */
int  tour_walk(struct tour *);
/* One set, outside of a graph. */
int  tour_launch(struct tour *, int set);
/* A call in a median walk, between two events. The step is told before each, for the time limit is for one walk. */
int  tour_time(struct tour *, step_fn *, void *step_arg, double *ret_call_ns);

/* Into how many parts of how many calls a ring is cut that takes longer than TOUR_PART_S to go round; 1 part: it isn't. */
void tour_parts(int sets, double call_ns, int *ret_parts, int *ret_calls);

#endif

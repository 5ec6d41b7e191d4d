/* CUPTI by dlopen: no library, another tool that holds it, or a driver that refuses, and the harness goes on without. Nothing of
 * it is on except between begin and end, and while counters are read; rows are timed at other times. */
#ifndef KBENCH_CUPTI_H
#define KBENCH_CUPTI_H

#include "breakdown.h"
#include "counters.h"

struct cupti;
struct cupti_api;

/* NULL, and why in ret_why. */
struct cupti *cupti_open(char *ret_why, size_t size);
void          cupti_close(struct cupti *);   /* the library stays: once on, it has hooks in the driver */
/* Closes one that was never on, or NULL, and its library. 0 where no CUPTI is in the process now, or non-zero and why. */
int           cupti_unload(struct cupti *, char *ret_why, size_t size);
/* On functions of another origin, for tests: api must live as long. */
struct cupti *cupti_on(const struct cupti_api *);

/* Every kernel, copy and set from here to the end becomes a record; nodes of graphs that are captured and instantiated meanwhile
 * are known by their ids. eager: so are launches outside of graphs, by a callback in each. 0, or non-zero and why in ret_why. One
 * at a time in a process. */
int cupti_trace_begin(struct cupti *, bool eager, char *ret_why, size_t size);
/* The device is idle now. The recording's activity, n, node, n_nodes, dropped and names. */
int cupti_trace_end(struct cupti *, struct recording *ret, char *ret_why, size_t size);

/* enqueue(arg), and a wait, as often as the counters need passes; sums over all of each pass into ret. 0, or non-zero and words in
 * ret->why. Its values are NaN where there is none. */
int cupti_count(struct cupti *, int ordinal, int (*enqueue)(void *arg), void *arg, struct counters *ret);

#endif

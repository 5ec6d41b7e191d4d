/* How long: all kernels of a group in interleaved, order-balanced rounds over one ring of input sets. Knows no op and no tolerance.
 *  The ring is cut into chunks. All kernels share one cursor: each sample starts where the last one of any kernel ended, so
 * that between two visits of a set always a whole ring goes by and no sample finds its inputs in a cache. A sample is so many
 * chunks that it lasts dev->sample_s; its time a call goes into the round.
 *
 * Where data lies in memory moves a time by some per cent and stays the same for a whole process, so that rounds alone can't see
 * it. Rounds are therefore taken at several placements, at each until they are narrow; median and interval are over all of
 * them. */
#ifndef KBENCH_TIMER_H
#define KBENCH_TIMER_H

#include "channel.h"
#include "check.h"
#include "quiet.h"
#include "stats.h"

struct piece;                    /* a captured stretch of launches */

struct lane {                    /* one kernel in the timer */
    struct bound   *bound;
    int             owner;       /* who it is to whoever waits: see step_owner */
    struct piece  **piece;       /* one a chunk, captured when first needed */
    double          pilot_ns;    /* of one call, roughly; 0: not known yet */
    int             passes;      /* of the chunk inside one graph, where the ring is short */
    int             chunks;      /* of one sample */
    int             n;           /* samples */
    int             first;       /* of them the first at this placement */
    struct sample  *sample;
    struct summary  summary;
    struct witness  witness;     /* of other work and held clocks */
    const char     *stop;        /* "width", "cap", "rounds" */
    struct verdict  verdict;     /* of the outputs of timed launches; STATUS_OK unless found wrong */
};

struct timer {
    struct dev      *dev;
    struct workload *w;
    struct timing    timing;
    uint64_t         seed;       /* of the order */
    step_fn         *step;       /* told before each sample */
    void            *step_arg;
    int             *step_owner; /* set to the lane's owner before step, where not NULL; lane -1 has owner -1 */
    int              placements; /* 0 counts as 1 */
    int            (*move)(void *arg, int placement);   /* puts the ring elsewhere; told before each placement but the first */
    void            *move_arg;
    /* Told before each round, whose samples are then warm again; NULL: rounds follow at once. Two rounds each are in one order. */
    void           (*turn)(void *arg, int round);
    void            *turn_arg;
    int              n_lanes;
    struct lane     *lane;
    int              chunk_sets, chunks, cursor;
    double           warm_s;     /* untimed running before the first round */
};

/* Still to be timed: not found wrong so far. */
bool lane_active(const struct lane *);

/* Times all lanes whose verdict is OK. 0 or a device error; *ret_lane says whose. */
int  timer_run(struct timer *, int *ret_lane);
/* Everything as before the first run, but for verdicts and the pilots' times: the next run cuts the ring alike. */
void timer_rewind(struct timer *);
/* Which lane is at hand, and with what: to whoever waits for it. */
void timer_tell(struct timer *, int lane, const char *what);
void timer_free(struct timer *);

/* Which lane runs at `position` of `round`: every lane is at every position equally often, and follows every other one. */
int timer_order(uint64_t seed, int round, int position, int n);

#endif

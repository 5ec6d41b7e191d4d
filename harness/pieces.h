/* The timer's ring as graphs: cut into chunks, and each lane's launches over a chunk captured when they are first needed. */
#ifndef KBENCH_PIECES_H
#define KBENCH_PIECES_H

#include "timer.h"

enum { MAX_GRAPHS = 64 };   /* of one sample */

/* A lane's launches over sets [first, first + n) of the ring, `passes` times: what one graph holds. */
struct span {
    struct timer *timer;
    struct bound *bound;
    int           first, n, passes;
};

/* A captured span; the host's graph keeps arg, hence on the heap. */
struct piece {
    struct span   span;
    struct graph *graph;
};

/* By the lanes' pilots: chunks so long that the fastest kernel's graph outlasts its launch; samples so many chunks that they
 * last. */
void pieces_cut(struct timer *);
/* Of all lanes, before the ring moves: graphs hold addresses. */
void pieces_drop(struct timer *);

int  chunk_sets(const struct timer *, int chunk);
/* The lane's piece over a chunk, which stays the lane's. 0 or a device error. */
int  piece_need(struct timer *, struct lane *, int chunk, struct piece **ret);

/* A piece of one's own. */
int  piece_capture(struct timer *, struct span, struct piece **ret);
void piece_drop(struct timer *, struct piece *);

#endif

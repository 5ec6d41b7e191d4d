/* A kernel on a workload: state, workspace and counters between guard bands, and the one way in which everybody launches it. */
#ifndef KBENCH_BOUND_H
#define KBENCH_BOUND_H

#include "channel.h"
#include "workload.h"

/* One kernel bound to a workload: what every launch of it needs. */
struct bound {
    struct workload     *w;
    const struct kernel *kernel;
    const int32_t       *tune;
    void                *workspace, *zeroed, *state;
    size_t               workspace_bytes, zeroed_bytes;
    const struct arg    *t;   /* of the set at hand */
};

/* Opens the kernel on the workload: state, workspace, zeroed counters. 0 or an error. */
int  bound_open(struct bound *, struct workload *, const struct kernel *, const int32_t *tune);
/* Takes its workspace and counters anew: kernels share one block, which may have grown and moved. */
int  bound_blocks(struct bound *);
void bound_close(struct bound *);
/* enqueue_fn of one launch on bound->t. */
int  bound_launch(void *bound);

/* A device error as a verdict. */
struct verdict verdict_of_error(struct bound *, int error, const char *what);

#endif

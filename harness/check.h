/* Right or wrong: one kernel against the references of the check sets, eagerly, again, and captured with other inputs. Knows no
 * clock but the deadline that the caller keeps. */
#ifndef KBENCH_CHECK_H
#define KBENCH_CHECK_H

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

/* The step that is about to run, for the board: "captured replay". */
typedef void step_fn(void *arg, const char *what);

struct verdict check_kernel(struct bound *, step_fn *, void *arg);
/* One launch on set 0, compared where there is a reference: under --wrap. */
struct verdict check_once(struct bound *, step_fn *, void *arg);
/* Outputs of the ring's set 0 as they are now against its reference. */
struct verdict check_ring_set(struct bound *);
/* A device error as a verdict. */
struct verdict verdict_of_error(struct bound *, int error, const char *what);

#endif

/* One row group in a worker: its data, then what is right, how long that takes, and where the time goes. */
#ifndef KBENCH_GROUP_H
#define KBENCH_GROUP_H

#include "channel.h"
#include "workload.h"

struct worker {
    int             fd, memory;
    struct board   *board;
    struct dev     *dev;
    struct registry registry;
    struct workload workload;
    struct job     *job;
    int             variant;   /* at hand; -1: preparing */
    double          moved_s;   /* spent on other placements of the ring */
    int             ranged;    /* the variant whose NVTX range stands open; -1: none */
};

/* Runs worker->job to its end and tells the parent all that comes out. Ends the process after an error that stays. */
void group_run(struct worker *);

/* A frame to the parent; where that is gone there is nobody to work for, and the process ends. */
void worker_send(struct worker *, enum message, const void *a, size_t a_size, const void *b, size_t b_size);

#endif

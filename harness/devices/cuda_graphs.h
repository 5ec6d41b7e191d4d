/* Launches as nodes of graphs: captured, looked through for what no launch may do, replayed, and timed between two events. */
#ifndef KBENCH_CUDA_GRAPHS_H
#define KBENCH_CUDA_GRAPHS_H

#include <cuda_runtime.h>
#include "device.h"

/* Time for the CPU to queue a replay behind a spin: the interval then holds no launch latency. */
enum { LEAD_NS = 60000 };

/* As dev_ops wants them. */
int  cuda_capture(struct dev *, enqueue_fn *, void *arg, struct graph **ret, int *ret_nodes, char *ret_why, size_t size);
int  cuda_replay(struct dev *, struct graph *);
void cuda_drop(struct dev *, struct graph *);
int  cuda_asynchronous(struct dev *, enqueue_fn *, void *arg, bool *ret);
int  cuda_time_between(struct dev *, struct graph *const *, int n, cudaEvent_t begin, cudaEvent_t end, double *ret_ns);

#endif

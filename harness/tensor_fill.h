/* Filling tensors by many threads, and rows on their way to the device. */
#ifndef KBENCH_TENSOR_FILL_H
#define KBENCH_TENSOR_FILL_H

#include "workload.h"

void workload_shapes(const struct problem *, struct shape *ret);

/* All inputs of a set into dense host tensors; of sparse ones only the touched rows. */
void fill_set(const struct workload *, uint32_t set, void *const *host);
/* Touched rows of tensor t by the other tensors of its set: malloc'ed, distinct, ascending. */
int64_t *touched_rows(const struct workload *, int t, void *const *host, int64_t *ret_n);
/* Tensor t of a filled host set to the device, whole or its touched rows. */
int put_rows(struct workload *, int t, void *const *host, struct arg to);

#endif

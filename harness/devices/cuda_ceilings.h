/* What this device can do, measured: the ceilings against which rows are read. */
#ifndef KBENCH_CUDA_CEILINGS_H
#define KBENCH_CUDA_CEILINGS_H

#include "device.h"

int cuda_ceilings(struct dev *dev, struct ceilings *ret);

/* bf16 product n x n x n with fp32 accumulation through cuBLASLt, which is opened at run time. a, b, c: n*n bf16 in device memory.
 * Best of `repeats`, 1e9 flop/s; 0 where the library or the algorithm is not to be had. */
double cublaslt_GFLOPs(struct dev *dev, int n, void *a, void *b, void *c, int repeats);

#endif

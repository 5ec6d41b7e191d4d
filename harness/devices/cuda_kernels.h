/* The harness's own device code, as C functions that enqueue on a stream and return a cudaError_t. No kernel under test uses it. */
#ifndef KBENCH_CUDA_KERNELS_H
#define KBENCH_CUDA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

struct CUstream_st;

#ifdef __cplusplus
extern "C" {
#endif

int cuda_empty(struct CUstream_st *);
/* One block that spins for `ns` by the device's nanosecond timer. */
int cuda_spin(uint64_t ns, struct CUstream_st *);
/* One thread that spins for so many of its SM's cycles; then, where ret is not NULL, ret[0] = cycles, ret[1] = ns that went by. */
int cuda_spin_cycles(uint64_t cycles, uint64_t *ret, struct CUstream_st *);
/* Adds the sum of position-mixed words of src to *sum (device memory): equal sums mean equal bytes, in any order of summing. */
int cuda_hash(const void *src, size_t words, uint64_t *sum, struct CUstream_st *);
/* dst + row[i] * stride = packed row i; row_bytes a multiple of 4. row and packed in device memory. */
int cuda_scatter(void *dst, int64_t stride, int64_t row_bytes, const int64_t *row, int64_t n, const void *packed,
                 struct CUstream_st *);
/* Reads bytes (a multiple of 16) with 16-byte loads, keeps their sum; blocks of 512 threads. */
int cuda_read(const void *src, size_t bytes, int blocks, uint32_t *out, struct CUstream_st *);
/* n bf16 values, about N(0, 1): products of zeros run faster than those of data. */
int cuda_random_bf16(void *dst, size_t n, struct CUstream_st *);
/* One block of 32 threads: loads slot[0], then 512 bytes of the row that it names, stores 16 bytes a thread. */
int cuda_latency(const int32_t *slot, const void *rows, void *out, struct CUstream_st *);
/* NaN into all shared memory that a block can have, one block an SM at a time. */
int cuda_poison_shared(int sm_count, int smem_bytes, struct CUstream_st *);

#ifdef __cplusplus
}
#endif

#endif

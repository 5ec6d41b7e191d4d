/* One block a row: topk/radix, and the second half of index_select/two_step. */
#ifndef KBENCH_TOPK_RADIX_CUH
#define KBENCH_TOPK_RADIX_CUH

#include "topk.cuh"

static constexpr int RADIX_THREADS = 512;

static __global__ void __launch_bounds__(RADIX_THREADS, 1) topk_radix(const __grid_constant__ topk_args a, bool eager) {
    __shared__ topk_shared<RADIX_THREADS> sh;
    topk_select(a, blockIdx.x, peers_none(), sh, eager, 0);
}

/* Rows so many that they come in waves are worth no guess at the length. */
static inline bool topk_eager(int32_t batch, const struct device *d) {
    return batch <= 2 * d->sm_count;
}

static inline int radix_launch(const topk_args &a, int32_t batch, const struct device *d, cudaStream_t stream) {
    topk_radix<<<(unsigned)batch, RADIX_THREADS, 0, stream>>>(a, topk_eager(batch, d));
    return cudaGetLastError();
}

#endif

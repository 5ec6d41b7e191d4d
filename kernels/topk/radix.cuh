/* One block a row: topk/radix, and the second half of index_select/two_step. */
#ifndef KBENCH_TOPK_RADIX_CUH
#define KBENCH_TOPK_RADIX_CUH

#include "topk.cuh"

template <int THREADS, int CACHED> static __global__ void __launch_bounds__(THREADS, 1) topk_radix(const __grid_constant__ topk_args a) {
    __shared__ topk_shared<THREADS, CACHED> sh;
    topk_select<THREADS, CACHED>(a, blockIdx.x, peers_none(), sh, true, 0);
}

/* As few threads as hold the row, since they all wait for each other. */
static inline int radix_launch(const topk_args &a, int32_t batch, cudaStream_t stream) {
    if (a.width <= 512 * 4)
        topk_radix<512, 1><<<(unsigned)batch, 512, 0, stream>>>(a);
    else if (a.width <= 512 * 16)
        topk_radix<512, 4><<<(unsigned)batch, 512, 0, stream>>>(a);
    else
        topk_radix<512, 16><<<(unsigned)batch, 512, 0, stream>>>(a);
    return cudaGetLastError();
}

#endif

/* One block a row: topk/radix, and the second half of index_select/two_step. */
#ifndef KBENCH_TOPK_RADIX_CUH
#define KBENCH_TOPK_RADIX_CUH

#include "stream.cuh"

static constexpr int RADIX_THREADS = 512;

/* Of more than 4 rounds: from registers, or where they can't hold it, as a stream. */
struct radix_longer {
    stream_shared<RADIX_THREADS> &kept;

    __device__ __forceinline__ void operator()(const topk_args &a, const topk_row<RADIX_THREADS> &row,
        const peers_none &peers, topk_shared<RADIX_THREADS> &sh, uint4 round0, bool early, topk_slots out) const {
        constexpr int CACHED = topk_row<RADIX_THREADS>::CACHED;
        if (row.n <= CACHED) {
            topk_finish<RADIX_THREADS, CACHED, false>(a, row, peers, sh, round0, early, out);
            return;
        }
        topk_stream<RADIX_THREADS> stream = {a, row, sh, kept};
        stream.pieces();
        out.pad<RADIX_THREADS>(stream.finish(out), (uint32_t)a.k);
    }
};

/* WRITTEN: its scores, by the kernel before. */
template <bool WRITTEN>
static __global__ void __launch_bounds__(RADIX_THREADS, 1) topk_radix(const __grid_constant__ topk_args a, bool eager) {
    __shared__ topk_shared<RADIX_THREADS> sh;
    __shared__ stream_shared<RADIX_THREADS> kept;
    topk_select<WRITTEN>(a, blockIdx.x, peers_none(), sh, eager, 0, radix_longer{kept});
}

template <bool WRITTEN = false>
static inline int radix_launch(const topk_args &a, int32_t batch, const struct device *d, cudaStream_t stream) {
    topk_radix<WRITTEN><<<(unsigned)batch, RADIX_THREADS, 0, stream>>>(a, topk_eager(batch, d));
    return cudaGetLastError();
}

#endif

/* The loads of ops indexer and indexer_fp8 alone, over the live keys: blocks share the live pages as the persistent kernels do,
 * and eight warps take an eighth of each page, of several pages at once.
 */
#ifndef KBENCH_INDEXER_GATHER_CUH
#define KBENCH_INDEXER_GATHER_CUH

#include "indexer.cuh"

static constexpr int GATHER_WARPS = 8, GATHER_BLOCKS = 4;  /* warps a block, blocks an SM */

static __device__ __forceinline__ uint32_t gather_fold(uint4 v) {
    return v.x ^ v.y ^ v.z ^ v.w;
}

/* F: what a warp loads of a page, and how many pages at once. One word a warp goes to logits, so that nothing is dead. */
template <class F> static __device__ __forceinline__ void gather_share(const indexer_args &a) {
    indexer_share share = indexer_share_of(a, (int32_t)blockIdx.x, (int32_t)gridDim.x);
    if (share.count == 0)
        return;
    float *const out = indexer_logits(a, share.at.b, share.at.page) + warp_id();
    uint32_t sum = 0;
    for (int32_t left = share.count; left > 0; left -= F::PAGES) {
        int32_t slot[F::PAGES];
        uint4 v[F::PAGES][F::LOADS];
#pragma unroll
        for (int i = 0; i < F::PAGES; i++) {
            slot[i] = i < left ? indexer_slot(a, share.at.b, share.at.page) : -1;
            if (i + 1 < left)
                share.at.advance(a, 1);
        }
#pragma unroll
        for (int i = 0; i < F::PAGES; i++)
            F::load(a, slot[i], v[i]);
#pragma unroll
        for (int i = 0; i < F::PAGES; i++)
#pragma unroll
            for (int j = 0; j < F::LOADS; j++)
                sum ^= gather_fold(v[i][j]);
    }
    sum = __reduce_xor_sync(ALL_LANES, sum);
    if (lane_id() == 0)
        *out = __uint_as_float(sum);
}

#endif

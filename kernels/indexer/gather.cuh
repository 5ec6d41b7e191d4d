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

template <class F> static __device__ __forceinline__ uint32_t gather_fold_all(const uint4 (&v)[F::PAGES][F::LOADS]) {
    uint32_t sum = 0;
#pragma unroll
    for (int i = 0; i < F::PAGES; i++)
#pragma unroll
        for (int j = 0; j < F::LOADS; j++)
            sum ^= gather_fold(v[i][j]);
    return sum;
}

static __device__ __forceinline__ void gather_put(float *out, uint32_t sum) {
    sum = __reduce_xor_sync(ALL_LANES, sum);
    if (lane_id() == 0)
        out[warp_id()] = __uint_as_float(sum);
}

/* A single request: its pages dealt out in turn, so that page numbers are asked for together with the length. */
template <class F> static __device__ __forceinline__ void gather_single(const indexer_args &a) {
    const int32_t parts = (int32_t)gridDim.x, room = a.width / INDEXER_PAGE;
    const int32_t raw = (int32_t)load4_now(a.t[INDEXER_LENGTH].p);
    int32_t page = (int32_t)blockIdx.x, slot[F::PAGES];
#pragma unroll
    for (int i = 0; i < F::PAGES; i++) {
        const int32_t at = page + i * parts;
        slot[i] = at < room ? (int32_t)load4_now(indexer_row<INDEXER_PAGE_TABLE>(a, 0) + (int64_t)at * 4) : -1;
    }
    const int32_t pages = indexer_pages(indexer_clamp(a, raw));
    if (page >= pages)
        return;
    uint32_t sum = 0;
    for (;;) {
        uint4 v[F::PAGES][F::LOADS];
#pragma unroll
        for (int i = 0; i < F::PAGES; i++)
            F::load(a, page + i * parts < pages ? slot[i] : -1, v[i]);
        page += F::PAGES * parts;
#pragma unroll
        for (int i = 0; i < F::PAGES; i++)
            slot[i] = page + i * parts < pages ? indexer_slot(a, 0, page + i * parts) : -1;
        sum ^= gather_fold_all<F>(v);
        if (page >= pages)
            break;
    }
    gather_put(indexer_logits(a, 0, (int32_t)blockIdx.x), sum);
}

/* F: what a warp loads of a page, and how many pages at once. One word a warp goes to logits, so that nothing is dead. */
template <class F> static __device__ __forceinline__ void gather_share(const indexer_args &a) {
    if (a.batch == 1) {
        gather_single<F>(a);
        return;
    }
    const uint4 lengths = indexer_load4(a, lane_id() * 4);
    indexer_ask<8 / GATHER_BLOCKS>(a, (int32_t)threadIdx.x);
    indexer_share share = indexer_share_of(a, (int32_t)blockIdx.x, (int32_t)gridDim.x, indexer_clamp4(a, lengths));
    if (share.count == 0)
        return;
    float *const out = indexer_logits(a, share.at.b, share.at.page);
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
        sum ^= gather_fold_all<F>(v);
    }
    gather_put(out, sum);
}

#endif

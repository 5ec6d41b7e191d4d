/* A block of 16 or 32 heads of attn/splitk by mma.sync: its items one after another, tiles of an item one at a time or three in
 * flight. The pieces are those of splitk.cuh.
 */
#ifndef KBENCH_ATTN_SPLITK_BLOCK_CUH
#define KBENCH_ATTN_SPLITK_BLOCK_CUH

#include "splitk.cuh"

template <class S> struct split_block {
    const attn_args    &a;
    mma_shared<S>      &sh;
    const mma_places<S> at;
    split_query<S>      q;
    mma_softmax<S>      softmax;
    mma_sums<S>         sums;
    mma_position<S>     from;

    __device__ __forceinline__ split_block(const attn_args &args, mma_shared<S> &shared)
        : a(args), sh(shared), at(shared), q((const uint4 *)NULL), from{0, 0} {}

    __device__ __forceinline__ void weigh(mma_position<S> tile, int buffer) {
        softmax.tile(sh, at, tile, buffer);
    }

    __device__ __forceinline__ void multiply(mma_position<S> tile, int buffer) {
        uint32_t v[4][4];
        sums.load_v(at, tile, 0, v);
        sums.scale(sh.old[buffer]);
        sums.tile(at, tile, buffer, v);
        mma_release(sh, tile);
    }

    /* n entries, a tile's scores, weights and products one after another. */
    __device__ __forceinline__ void attend(int32_t n) {
        for (int32_t i = 0; i < n; i += S::TILE) {
            mma_wait(sh, from);
            split_scores<S>(q, at, from, 0);
            mma_sync<S>();
            weigh(from, 0);
            mma_sync<S>();
            multiply(from, 0);
            from = from.next();
        }
    }

    /* One barrier a tile: between two of them the weights of a tile, the products of the one before and the scores of the one
     * after are made.
     * Of the two warps on each quarter of an SM one begins with the weights and one ends with them. */
    __device__ __forceinline__ void attend_overlapped(int32_t n) {
        const bool weights_first = warp_id() < S::WARPS / 2;
        mma_position<S> before = from;
        int buffer = 0;
        if (n > 0) {
            mma_wait(sh, from);
            split_scores<S>(q, at, from, 0);
        }
        for (int32_t i = 0; i < n; i += S::TILE) {
            const mma_position<S> now = from;
            mma_sync<S>();
            if (weights_first)
                weigh(now, buffer);
            if (i > 0)
                multiply(before, buffer ^ 1);
            from = from.next();
            if (i + S::TILE < n) {
                mma_wait(sh, from);
                split_scores<S>(q, at, from, buffer ^ 1);
            }
            if (!weights_first)
                weigh(now, buffer);
            before = now;
            buffer ^= 1;
        }
        if (n > 0) {
            mma_sync<S>();
            multiply(before, buffer ^ 1);
        }
    }

    /* m and l of the group's heads, and the sums as they are. */
    __device__ __forceinline__ void write_part(const partials &p, int64_t b, int32_t first, int32_t split) const {
        float l = softmax.sum;
#pragma unroll
        for (int step = S::LPH / 2; step > 0; step /= 2)
            l += __shfl_xor_sync(ALL_LANES, l, step);
        if (threadIdx.x % S::LPH == 0 && first + softmax.head() < a.heads)
            *partial_ml(p, b * a.heads + first + softmax.head(), split) = make_float2(softmax.m, l);
        split_write(a, p, sums, b, first, split);
    }

    __device__ __forceinline__ void write_result(int64_t b, int32_t first) {
        mma_sync<S>();  /* until all have read sh.factor of the item before */
        softmax.finish(a, sh, b, first);
        mma_sync<S>();
        sums.write_bf16(a, b, first, sh.factor);
    }

    __device__ __forceinline__ void run(const split_counts &counts, const partials &p) {
        for (int32_t item = (int32_t)blockIdx.x; item < counts.items; item += (int32_t)gridDim.x) {
            const int32_t split = item % counts.splits, group = item / counts.splits;
            const int64_t b = group / counts.groups;
            const int32_t first = group % counts.groups * S::HEADS;
            const split_range range = range_of<S>(attn_length_of(a, b).n, split, counts.splits);
            softmax.clear(a, first);
            q.load(a, b, first);
            sums.clear();
            if constexpr (S::BUFFERS == 2)
                attend_overlapped(range.end - range.begin);
            else
                attend(range.end - range.begin);
            if (counts.splits == 1)
                write_result(b, first);
            else
                write_part(p, b, first, split);
        }
    }
};

#endif

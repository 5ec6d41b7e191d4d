/* indexer_fp8/live: persistent; each block adds up the live lengths and scores its share of the live pages. No cost in max_ctx.
 * Moves a page once, on sm_90a straight to registers (path=1: by the copy engine to shared memory), and q once a request and block.
 * Limit: the memory's read rate; at small batches the latency of length, page number and page, one after another.
 */
#include "indexer/live.cuh"
#include "score_fp8.cuh"

struct live_paged : score_fp8 {
    static constexpr int MAP_ROWS = INDEXER_FP8_PAGE_BYTES / SCORE_ROW;  /* of the tensor map, a page: the last two are scales */

    static inline int64_t map_stride(const indexer_args &) {
        return SCORE_ROW;
    }
};

/* fp8 products. */
struct live_e4m3 : live_paged {
    static constexpr int OWN = 0;

    using live_paged::multiply;

    /* c[64 entries x 64 heads] = keys q^T, by a warpgroup. */
    static __device__ __forceinline__ void multiply(float (&c)[INDEXER_HEADS / 2], uint64_t keys, uint64_t q) {
#pragma unroll
        for (int step = 0; step < INDEXER_D / 32; step++)
            wgmma_e4m3(c, keys + step * 2, q + step * 2, step > 0);
    }
};

static __device__ __forceinline__ void live_halves(float (&c)[INDEXER_HEADS / 2], const uint32_t (&keys)[SCORE_STEPS][4],
                                                   uint64_t q) {
#pragma unroll
    for (int step = 0; step < SCORE_STEPS; step++)
        wgmma_half(c, keys[step], q + step % 4 * 2 + step / 4 * (SCORE_HALF >> 4), step > 0);
}

/* Keys straight to registers. Word v of chunk 4j + t of a row, thread t's: columns 2t, 2t + 1, 2t + 8, 2t + 9 of k-step 4j + v. */
struct direct_fp8 : score_fp8 {
    static constexpr int LOADS = 2;

    static __device__ __forceinline__ void fragments(const uint4 (&low)[LOADS], const uint4 (&high)[LOADS],
                                                     uint32_t (&k)[SCORE_STEPS][4]) {
#pragma unroll
        for (int row = 0; row < 2; row++)
#pragma unroll
            for (int j = 0; j < LOADS; j++) {
                const uint4 v = row ? high[j] : low[j];
                const uint32_t word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    uint32_t pair[2];
                    fp8_half4(word[i], pair);
                    k[j * 4 + i][row] = pair[0], k[j * 4 + i][row + 2] = pair[1];
                }
            }
    }

    /* Chunk `chunk` of q, counted over all rows, as halves where wgmma finds it in that order. */
    static __device__ __forceinline__ void place(uint32_t q, int chunk, uint4 v) {
        const int row = chunk / 8, j = chunk % 8 / 4, t = chunk % 4;
        const uint32_t word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t pair[2];
            fp8_half4(word[i], pair);
            store4_shared(q + j * SCORE_HALF + score_place(row, i * 2) + t * 4, pair[0]);
            store4_shared(q + j * SCORE_HALF + score_place(row, i * 2 + 1) + t * 4, pair[1]);
        }
    }

    using score_fp8::multiply;

    static __device__ __forceinline__ void multiply(float (&c)[INDEXER_HEADS / 2], const uint32_t (&keys)[SCORE_STEPS][4],
                                                    uint64_t q) {
        live_halves(c, keys, q);
    }
};

/* Products of halves. */
struct live_fp8 : live_paged {
    static constexpr int OWN = 2 * SCORE_HALF;  /* bytes of a team's q */
    using narrow = live_e4m3;
    using direct = direct_fp8;

    using live_paged::multiply;

    /* From q as it lies in memory to two halves of 64 rows of 64 dims in the order of score_fp8::keys, by warp `member` of a
     * warpgroup. A thread makes the 16 columns of a k-step of a head: columns 2t, 2t + 1 of four words, then 2t + 8, 2t + 9. */
    static __device__ __forceinline__ void convert(uint32_t q, uint32_t to, int member) {
        const int lane = lane_id(), word = lane / 8;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = member * 16 + i % 2 * 8 + lane % 8, half = i / 2;
            uint32_t pair[4][2];
#pragma unroll
            for (int t = 0; t < 4; t++)
                fp8_half4(load4_shared(q + score_place(row, t * 2 + half) + word * 4), pair[t]);
#pragma unroll
            for (int j = 0; j < 2; j++)
                store16_shared(to + half * SCORE_HALF + score_place(row, word * 2 + j),
                               make_uint4(pair[0][j], pair[1][j], pair[2][j], pair[3][j]));
        }
    }

    /* c[64 entries x 64 heads] = keys q^T, by a warpgroup. */
    static __device__ __forceinline__ void multiply(float (&c)[INDEXER_HEADS / 2], const uint32_t (&keys)[SCORE_STEPS][4],
                                                    uint64_t q) {
        live_halves(c, keys, q);
    }
};

static int open_(const struct problem *p, const struct device *d, void **state) {
    return live_open<live_fp8>(p, d, state);
}

KERNEL = {
    FOR_OP(indexer_fp8),
    .note = "persistent over the live pages, shared out by the blocks themselves; bound by the memory's read rate",
    .engine = CUDA,
    .tunable = LIVE_TUNABLES(LIVE_NARROW),
    .open = open_,
    .close = live_close,
    .launch = live_launch<live_fp8>,
    .describe = live_describe,
};

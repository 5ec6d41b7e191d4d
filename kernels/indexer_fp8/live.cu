/* indexer_fp8/live: persistent; each block adds up the live lengths and scores its share of the live pages. No cost in max_ctx.
 * Moves a page once, by the copy engine to shared memory, and q once a request and block; tensor cores take both from there.
 * Limit: the memory's read rate; at small batches the latency of length, page number and page, one after another.
 */
#include "indexer/live.cuh"
#include "score_fp8.cuh"

struct live_fp8 : score_fp8 {
    static constexpr int MAP_ROWS = INDEXER_FP8_PAGE_BYTES / SCORE_ROW;  /* of the tensor map, a page: the last two are scales */

    static inline int64_t map_stride(const indexer_args &) {
        return SCORE_ROW;
    }

    using score_fp8::multiply;

    /* c[64 entries x 64 heads] = keys q^T, by a warpgroup. */
    static __device__ __forceinline__ void multiply(float (&c)[INDEXER_HEADS / 2], uint64_t keys, uint64_t q) {
#pragma unroll
        for (int step = 0; step < INDEXER_D / 32; step++)
            wgmma_e4m3(c, keys + step * 2, q + step * 2, step > 0);
    }
};

static int open_(const struct problem *, const struct device *d, void **state) {
    return live_open<live_fp8>(d, state);
}

KERNEL = {
    FOR_OP(indexer_fp8),
    .note = "persistent over the live pages, shared out by the blocks themselves; bound by the memory's read rate",
    .engine = CUDA,
    .tunable = LIVE_TUNABLES,
    .open = open_,
    .close = live_close,
    .launch = live_launch<live_fp8>,
    .describe = live_describe,
};

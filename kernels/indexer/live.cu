/* indexer/live: persistent; each block adds up the live lengths and scores its share of the live pages. No cost in max_ctx.
 * Moves a page once, by the copy engine to shared memory (of a single request: to registers), and q once a request and block.
 * Limit: the memory's read rate; at small batches the latency of length, page number and page, one after another.
 */
#include "direct_bf16.cuh"
#include "live.cuh"

struct live_bf16 : score_bf16 {
    static constexpr int MAP_ROWS = INDEXER_PAGE;  /* of the tensor map, a page */
    static constexpr int OWN = 0;                  /* bytes of a team's own q */
    using narrow = live_bf16;                      /* there is none */
    using direct = direct_bf16;

    static inline int64_t map_stride(const indexer_args &a) {
        return a.t[INDEXER_KEYS].stride;
    }

    using score_bf16::multiply;

    /* c[64 entries x 64 heads] = keys q^T, by a warpgroup. */
    static __device__ __forceinline__ void multiply(float (&c)[INDEXER_HEADS / 2], uint64_t keys, uint64_t q) {
#pragma unroll
        for (int step = 0; step < SCORE_STEPS; step++) {
            const int at = step % 4 * 2 + step / 4 * (SCORE_HALF >> 4);
            wgmma_bf16(c, keys + at, q + at, step > 0);
        }
    }
};

static int open_(const struct problem *p, const struct device *d, void **state) {
    return live_open<live_bf16>(p, d, state);
}

KERNEL = {
    FOR_OP(indexer),
    .note = "persistent over the live pages, shared out by the blocks themselves; bound by the memory's read rate",
    .engine = CUDA,
    .tunable = LIVE_TUNABLES(LIVE_DIRECT),
    .open = open_,
    .close = live_close,
    .launch = live_launch<live_bf16>,
    .describe = live_describe,
};

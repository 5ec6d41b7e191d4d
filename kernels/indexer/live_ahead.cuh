/* Pages that a block asks L2 for before it knows its share: a length and a page number, loaded at once, are enough to know that a
 * page lives, and whichever block is to score it finds it in L2 or on its way there.
 *
 * That saves a share's first pages what lies between the lengths and them: the sum over all requests, and a page number. Pages
 * further on are in flight by then anyway, and asked for they would only take L2's time twice: hence a few pages a block, and none
 * where shares are long.
 */
#ifndef KBENCH_INDEXER_LIVE_AHEAD_CUH
#define KBENCH_INDEXER_LIVE_AHEAD_CUH

#include "hopper.cuh"
#include "score.cuh"

/* Bytes a multiple of 16, as is the address. */
static __device__ __forceinline__ void bulk_prefetch(const char *p, uint32_t bytes) {
#if HAS_BULK
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p), "r"(bytes) : "memory");
#endif
}

/* One warp of a block. Lanes 0 .. 15 have a page each, the others a request, for its q and w. All blocks' pages are counted in
 * turn, page i being page i / batch of request i % batch. */
template <class F> struct live_ahead {
    static constexpr int PAGES = 16;     /* of a block, at most */
    static constexpr uint32_t SHARE = 16; /* pages: the longest share for which anything is asked */
    int32_t page, raw, slot;             /* raw: the length as it stands in memory; 0: the lane asks for no page */

    /* count: of the block's pages. */
    __device__ __forceinline__ void begin(const indexer_args &a, int32_t count) {
        const int lane = lane_id();
        const uint32_t i = blockIdx.x + (uint32_t)(lane % PAGES) * gridDim.x;
        const int32_t b = (int32_t)(i % (uint32_t)a.batch);
        page = (int32_t)(i / (uint32_t)a.batch);
        raw = slot = 0;
        if (lane < count && page < a.width / INDEXER_PAGE) {
            raw = (int32_t)load4_now((const int32_t *)a.t[INDEXER_LENGTH].p + b);
            slot = (int32_t)load4_now((const int32_t *)indexer_row<INDEXER_PAGE_TABLE>(a, b) + page);
        }
        if (lane >= PAGES && i < (uint32_t)a.batch) {
            const char *q = indexer_row<INDEXER_Q>(a, (int64_t)i * INDEXER_HEADS);
            bulk_prefetch(q, (uint32_t)(a.t[INDEXER_Q].stride * (INDEXER_HEADS - 1)) + F::HALVES * SCORE_ROW);
            prefetch_l2(indexer_row<INDEXER_W>(a, i));
            prefetch_l2(indexer_row<INDEXER_W>(a, i) + 128);
        }
    }

    /* Waits for the length. How long shares are is judged as if all requests were like the lane's. */
    __device__ __forceinline__ void end(const indexer_args &a) const {
        const int32_t live = indexer_pages(indexer_clamp(a, raw));
        if (page < live && (uint64_t)live * (uint32_t)a.batch <= (uint64_t)SHARE * gridDim.x) {
            const char *const from = F::key(a, slot, 0);
            const char *const to = F::SCALES ? F::scales(a, slot) + F::SCALES  /* which stand behind the keys */
                                             : F::key(a, slot, INDEXER_PAGE - 1) + F::HALVES * SCORE_ROW;
            bulk_prefetch(from, (uint32_t)(to - from));
        }
        __syncwarp();
    }
};

#endif

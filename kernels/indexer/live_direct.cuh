/* A single request, sm_90a: nothing is in flight that waits for something else but pages for their numbers, and nobody hands
 * anything on. A team (a warpgroup, four a block) takes each so many-th page of the request, so that it knows which page numbers it
 * may need, and where q is, before the length is there; it loads a page from memory to registers as the first operand of its
 * products, and the next page while those run.
 *
 * k-steps are in another order than memory's, the same for keys and q, so that a thread's 16 bytes serve whole fragments; a format
 * F says how (and has F::LOADS, 16-byte loads of a row).
 */
#ifndef KBENCH_INDEXER_LIVE_DIRECT_CUH
#define KBENCH_INDEXER_LIVE_DIRECT_CUH

#include "hopper.cuh"
#include "score.cuh"

static constexpr int DIRECT_TEAMS = 4, DIRECT_THREADS = DIRECT_TEAMS * 4 * WARP;

template <class F> struct direct_page {
    uint4 low[F::LOADS], high[F::LOADS];  /* of entries g and g + 8 of the warp's 16 */
    float scale;                          /* of entry score_entry */

    __device__ __forceinline__ void load(const indexer_args &a, int32_t slot, int first) {
        const char *at = F::key(a, slot, first + lane_id() / 4) + lane_id() % 4 * 16;
        const char *below = F::key(a, slot, first + lane_id() / 4 + 8) + lane_id() % 4 * 16;
#pragma unroll
        for (int i = 0; i < F::LOADS; i++) {
            low[i] = load16_once(at + i * 64);
            high[i] = load16_once(below + i * 64);
        }
        scale = F::SCALES ? __uint_as_float(load4_now(F::scales(a, slot) + score_entry(first) * 4)) : 1.f;
    }
};

template <class F>
static __global__ void __launch_bounds__(DIRECT_THREADS, 1) indexer_direct(const __grid_constant__ indexer_args a) {
    __shared__ __align__(1024) char q_shared[2 * SCORE_HALF];
    __shared__ __align__(16) float  w_shared[INDEXER_HEADS];
    if constexpr (HAS_WGMMA) {
        constexpr int QUERIES = F::BYTES / 16 / DIRECT_THREADS;
        const int tid = (int)threadIdx.x, first = warp_id() % 4 * 16;
        const int32_t teams = (int32_t)gridDim.x * DIRECT_TEAMS, room = a.width / INDEXER_PAGE;
        int32_t page = (int32_t)blockIdx.x + warp_id() / 4 * (int32_t)gridDim.x;
        const int32_t raw = (int32_t)load4_now(a.t[INDEXER_LENGTH].p);
        const char *numbers = indexer_row<INDEXER_PAGE_TABLE>(a, 0) + (int64_t)page * 4;
        int32_t slot = page < room ? (int32_t)load4_now(numbers) : 0;
        int32_t next = page + teams < room ? (int32_t)load4_now(numbers + teams * 4) : 0;
        uint4 q[QUERIES], w = make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < QUERIES; i++) {
            const int chunk = i * DIRECT_THREADS + tid;
            q[i] = load16_now(indexer_row<INDEXER_Q>(a, chunk / (F::HALVES * 8)) + chunk % (F::HALVES * 8) * 16);
        }
        if (tid < INDEXER_HEADS / 4)
            w = load16_now(indexer_row<INDEXER_W>(a, 0) + tid * 16);

        const int32_t length = indexer_clamp(a, raw), pages = indexer_pages(length);
        direct_page<F> keys;
        if (page < pages)
            keys.load(a, slot, first);
        const uint32_t q_at = shared_address(q_shared), w_at = shared_address(w_shared);
#pragma unroll
        for (int i = 0; i < QUERIES; i++)
            F::place(q_at, i * DIRECT_THREADS + tid, q[i]);
        if (tid < INDEXER_HEADS / 4)
            store16_shared(w_at + tid * 16, w);
        wgmma_publish();
        __syncthreads();

        float *logits = indexer_logits(a, 0, page);
        for (; page < pages; page += teams, logits += (int64_t)teams * INDEXER_PAGE) {
            uint32_t k[SCORE_STEPS][4];
            F::fragments(keys.low, keys.high, k);
            const float scale = keys.scale;
            numbers += teams * 4;
            if (page + teams < pages)
                keys.load(a, next, first);
            if (page + 2 * teams < pages)
                next = (int32_t)load4_now(numbers + teams * 4);
            float c[INDEXER_HEADS / 2], weight[INDEXER_HEADS / 4], sum[2];
            wgmma_begin();
            F::multiply(c, k, wgmma_rows(q_at));
            wgmma_commit();
            wgmma_wait(c);
            score_weights(w_at, weight);
            score_fold_row(c, weight, sum);
            score_write(logits, first, min(length - page * INDEXER_PAGE, (int32_t)INDEXER_PAGE), scale, sum);
        }
    }
}

#endif

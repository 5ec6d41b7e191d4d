/* One block a (request, page) of the whole width: four warps of 16 entries each. The block reads its request's length and ends
 * where the page is past it.
 */
#ifndef KBENCH_INDEXER_EARLY_EXIT_CUH
#define KBENCH_INDEXER_EARLY_EXIT_CUH

#include "score.cuh"

static constexpr int EXIT_WARPS = 4, EXIT_ROWS = INDEXER_PAGE / EXIT_WARPS;

template <class F> struct __align__(1024) exit_shared {
    char  keys[F::BYTES], q[F::BYTES];
    float w[INDEXER_HEADS], scales[INDEXER_PAGE];
};

template <class F> static __device__ __forceinline__ void exit_page(const indexer_args &a, exit_shared<F> &sh) {
    const int32_t pages = a.width / INDEXER_PAGE, b = (int32_t)(blockIdx.x / (unsigned)pages),
                  page = (int32_t)(blockIdx.x % (unsigned)pages);
    const int32_t live = indexer_length(a, b) - page * INDEXER_PAGE;
    if (live <= 0)
        return;
    const int first = warp_id() * EXIT_ROWS;
    const uint32_t keys = shared_address(sh.keys), q = shared_address(sh.q), w = shared_address(sh.w);
    const uint32_t scales = shared_address(sh.scales);
    score_copy<F>(q, first, EXIT_ROWS, [&](int row) { return indexer_row<INDEXER_Q>(a, (int64_t)b * INDEXER_HEADS + row); });
    if (warp_id() == 0)
        score_copy_line(w, indexer_row<INDEXER_W>(a, b));
    const int32_t slot = indexer_slot(a, b, page);
    score_copy<F>(keys, first, EXIT_ROWS, [&](int row) { return F::key(a, slot, row); });
    if (F::SCALES && warp_id() == 1)
        score_copy_line(scales, F::scales(a, slot));
    copy_wait_all();
    __syncthreads();
    float sum[1][2];
    score_entries<F, 1>(keys, q, w, first, sum);
    score_write(indexer_logits(a, b, page), first, live, score_scale<F>(scales, first), sum[0]);
}

#endif

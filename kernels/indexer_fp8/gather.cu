/* indexer_fp8/gather: the loads of op indexer_fp8 alone, each live page once. Every block adds up the lengths and takes its share.
 * Moves the lengths, the page numbers and 8.25 KB a page to registers; one word a warp goes to logits, so that nothing is dead.
 * Limit: the memory's read rate; at small batches the latency of length, page number and page, one after another.
 */
#include "indexer/gather.cuh"
#include "indexer_fp8.h"

struct gather_fp8 {
    static constexpr int PAGES = 4, LOADS = 3;

    /* Eight rows, four a load, and the scales of those eight by two lanes. No page: zeros. */
    static __device__ __forceinline__ void load(const indexer_args &a, int32_t slot, uint4 (&v)[LOADS]) {
        const char *page = (const char *)a.t[INDEXER_KEYS].p + (int64_t)slot * INDEXER_FP8_PAGE_BYTES;
        const int lane = lane_id(), at = warp_id() * 8 * INDEXER_D + lane * 16, scales = INDEXER_FP8_SCALES + warp_id() * 32;
        const uint4 zero = make_uint4(0, 0, 0, 0);
        v[0] = slot < 0 ? zero : load16_once(page + at);
        v[1] = slot < 0 ? zero : load16_once(page + at + WARP * 16);
        v[2] = slot < 0 || lane >= 2 ? zero : load16_once(page + scales + lane * 16);
    }
};

static __global__ void __launch_bounds__(GATHER_WARPS *WARP, GATHER_BLOCKS)
    indexer_fp8_gather(const __grid_constant__ indexer_args a) {
    gather_share<gather_fp8>(a);
}

static int launch(const struct call *call) {
    const indexer_args a = indexer_args_of(call);
    indexer_fp8_gather<<<(unsigned)(call->device->sm_count * GATHER_BLOCKS), GATHER_WARPS * WARP, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(indexer_fp8),
    .note = "the loads alone, each live page once: what memory allows",
    .engine = CUDA,
    .reads = 1u << INDEXER_KEYS | 1u << INDEXER_PAGE_TABLE | 1u << INDEXER_LENGTH,
    .promises = PROBE,
    .launch = launch,
};

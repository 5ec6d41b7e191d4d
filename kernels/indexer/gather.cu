/* indexer/gather: the loads of op indexer alone, each live page once. Every block adds up the lengths and takes its share.
 * Moves the lengths, the page numbers and 16 KB a page to registers; one word a warp goes to logits, so that nothing is dead.
 * Limit: the memory's read rate; at small batches the latency of length, page number and page, one after another.
 */
#include "gather.cuh"

struct gather_bf16 {
    static constexpr int PAGES = 2, LOADS = 4;

    /* Eight rows; a load is two of them. No page: zeros. */
    static __device__ __forceinline__ void load(const indexer_args &a, int32_t slot, uint4 (&v)[LOADS]) {
        const int lane = lane_id(), chunks = INDEXER_D * 2 / 16;
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            const int64_t row = (int64_t)slot * INDEXER_PAGE + warp_id() * 8 + j * 2 + lane / chunks;
            v[j] = slot < 0 ? make_uint4(0, 0, 0, 0) : load16_once(indexer_row<INDEXER_KEYS>(a, row) + lane % chunks * 16);
        }
    }
};

static __global__ void __launch_bounds__(GATHER_WARPS *WARP, GATHER_BLOCKS) indexer_gather(const __grid_constant__ indexer_args a) {
    gather_share<gather_bf16>(a);
}

static int launch(const struct call *call) {
    const indexer_args a = indexer_args_of(call);
    indexer_gather<<<(unsigned)(call->device->sm_count * GATHER_BLOCKS), GATHER_WARPS * WARP, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(indexer),
    .note = "the loads alone, each live page once: what memory allows",
    .engine = CUDA,
    .reads = 1u << INDEXER_KEYS | 1u << INDEXER_PAGE_TABLE | 1u << INDEXER_LENGTH,
    .promises = PROBE,
    .launch = launch,
};

/* index_select/gather: the loads of op index_select alone, each live key once, by the loads of indexer/gather.
 * Moves the lengths, the page numbers and 256 bytes a live key to registers; one word a warp goes to the workspace, so that
 * nothing is dead.
 * Limit: the memory's read rate; at small batches the latency of length, page number and page, one after another.
 */
#include "indexer/gather.cuh"
#include "index_select.h"

struct gather_keys {
    static constexpr int PAGES = 2, LOADS = 4;
    static constexpr int CHUNKS = INDEXER_D * 2 / 16, ROWS = WARP / CHUNKS;  /* 16-byte chunks of a key; keys a load */

    static __device__ __forceinline__ void load(const indexer_args &a, int32_t slot, uint4 (&v)[LOADS]) {
        const int64_t first = (int64_t)slot * INDEXER_PAGE + warp_id() * (INDEXER_PAGE / GATHER_WARPS) + lane_id() / CHUNKS;
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            v[j] = slot < 0 ? make_uint4(0, 0, 0, 0)
                            : load16_once(indexer_row<INDEXER_KEYS>(a, first + j * ROWS) + lane_id() % CHUNKS * 16);
    }
};

static __global__ void __launch_bounds__(GATHER_WARPS *WARP, GATHER_BLOCKS)
    index_select_gather(const __grid_constant__ indexer_args a) {
    gather_share<gather_keys>(a);
}

static size_t workspace(const struct problem *p, const struct device *d, const int32_t *tune) {
    (void)d, (void)tune;
    return (size_t)(p->dim[INDEXER_BATCH] * indexer_width(p->dim[INDEXER_MAX_CTX]) * 4);
}

/* The words go where logits would. */
static int launch(const struct call *call) {
    indexer_args a = indexer_args_of(call);
    a.t[INDEXER_LOGITS] = {call->workspace, (int64_t)a.width * 4};
    index_select_gather<<<(unsigned)(call->device->sm_count * GATHER_BLOCKS), GATHER_WARPS * WARP, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(index_select),
    .note = "the loads alone, each live key once: what memory allows",
    .engine = CUDA,
    .reads = 1u << INDEXER_KEYS | 1u << INDEXER_PAGE_TABLE | 1u << INDEXER_LENGTH,
    .promises = PROBE,
    .workspace = workspace,
    .launch = launch,
};

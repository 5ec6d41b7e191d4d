/* indexer/early_exit: one block a (request, page) of the whole width; it reads the live length and ends past it.
 * Moves q once more for each live page, as many bytes as the page, from L2 to shared memory; bf16 by mma.sync.
 * Limit: one block after another for pages that nobody needs (O(max_ctx)); else the start of a block: length, page number, page.
 */
#include "early_exit.cuh"

static __global__ void __launch_bounds__(EXIT_WARPS *WARP) indexer_early_exit(const __grid_constant__ indexer_args a) {
    __shared__ exit_shared<score_bf16> sh;
    exit_page(a, sh);
}

static int launch(const struct call *call) {
    const indexer_args a = indexer_args_of(call);
    const int64_t blocks = (int64_t)a.batch * (a.width / INDEXER_PAGE);
    indexer_early_exit<<<(unsigned)blocks, EXIT_WARPS * WARP, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(indexer),
    .note = "a block a (request, page) of the whole width, which ends past the live length; bound by blocks that do nothing",
    .engine = CUDA,
    .growth = {{"max_ctx", 1}},
    .launch = launch,
};

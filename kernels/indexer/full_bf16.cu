/* indexer/full_bf16: the framework's chain of kernels over the whole maximum width: gather_pages, cuBLASLt in bf16, relu, multiply,
 * sum, mask. An entry moves 256 + 256 bytes in each of the first four, then 256 + 4 and 4 + 4: 2,316.
 * Limit: those bytes at copy bandwidth, whatever lives (O(max_ctx)).
 */
#include "gather_pages.cuh"

/* The workspace: x holds gathered keys, then relu's result; y holds scores, then weighted ones. Both take 256 bytes an entry. */
static size_t workspace(const struct problem *p, const struct device *, const int32_t *) {
    return chain_buffer(p) * 2 + CHAIN_ROOM;
}

static int launch(const struct call *call) {
    const indexer_args a = indexer_args_of(call);
    const size_t buffer = chain_buffer(call->problem);
    char *const x = (char *)call->workspace, *const y = x + buffer, *const library = y + buffer;
    CHAIN_STEP(chain_gather(call, a, x));
    CHAIN_STEP(chain_score(call, a, a.t[INDEXER_Q].p, a.t[INDEXER_Q].stride, x, y, library));
    return chain_mask(call, a);
}

KERNEL = {
    FOR_OP(indexer),
    .note = "the framework's chain at full width: gather, bf16 product, relu, multiply, sum, mask; 2,316 bytes an entry",
    .engine = CUDA,
    .promises = CLEAN,
    .growth = {{"max_ctx", 1}},
    .workspace = workspace,
    .open = chain_open<CUDA_R_16BF>,
    .close = chain_close,
    .launch = launch,
    .describe = chain_describe,
};

/* hc_pre/fp32_lt: the library row in fp32: cuBLASLt's product, then a kernel for the square sum.
 * Moves w once and x twice. Limit: two or three kernels in a row, and how the library splits a product of 24 rows over K.
 */
#include "chain.cuh"

static size_t workspace(const struct problem *, const struct device *, const int32_t *) {
    return CHAIN_ROOM;
}

static int launch(const struct call *call) {
    return chain_run(call, call->t[HC_PRE_W32], call->t[HC_PRE_X32], call->workspace);
}

KERNEL = {
    FOR_OP(hc_pre),
    .note = "fp32 product by cuBLASLt, then a kernel for the square sum; bound by launches and the library's split",
    .engine = CUDA,
    .reads = HC_PRE_READS_F32,
    .workspace = workspace,
    .open = chain_open<CUDA_R_32F>,
    .close = chain_close,
    .launch = launch,
    .describe = chain_describe,
};

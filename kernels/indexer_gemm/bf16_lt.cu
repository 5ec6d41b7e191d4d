/* indexer_gemm/bf16_lt: the library row in bf16, no casts: cuBLASLt's product with an fp32 result, since one in bf16 alone would be
 * 1e-3 off; then one kernel for relu, weights and sum. Moves bf16 keys once, and 256 bytes an entry of product to memory and back.
 * Limit: the memory's rate for 768 bytes an entry, two thirds of them product.
 */
#include "chain.cuh"

KERNEL = {
    FOR_OP(indexer_gemm),
    .note = "bf16 product by cuBLASLt with fp32 result, then relu, weights and sum; bound by the traffic of the product",
    .engine = CUDA,
    .reads = INDEXER_GEMM_READS_BF16,
    .workspace = chain_workspace,
    .open = chain_open<CUDA_R_16BF, CUBLAS_COMPUTE_32F>,
    .close = chain_close,
    .launch = chain_launch<INDEXER_GEMM_K16, INDEXER_GEMM_Q16>,
    .describe = chain_describe,
};

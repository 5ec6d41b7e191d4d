/* indexer_gemm/fp32_lt: the library row in fp32: cuBLASLt's product on CUDA cores, then one kernel for relu, weights and sum.
 * Moves fp32 keys once, and 256 bytes an entry of product to memory and back. Limit: the rate of fp32 multiply-adds.
 */
#include "chain.cuh"

KERNEL = {
    FOR_OP(indexer_gemm),
    .note = "fp32 product by cuBLASLt, then relu, weights and sum in a kernel; bound by fp32 multiply-adds",
    .engine = CUDA,
    .reads = INDEXER_GEMM_READS_F32,
    .workspace = chain_workspace,
    .open = chain_open<CUDA_R_32F, CUBLAS_COMPUTE_32F>,
    .close = chain_close,
    .launch = chain_launch<INDEXER_GEMM_K32, INDEXER_GEMM_Q32>,
    .describe = chain_describe,
};

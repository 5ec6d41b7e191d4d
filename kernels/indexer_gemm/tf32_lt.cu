/* indexer_gemm/tf32_lt: as fp32_lt, but multiplied by tensor cores as tf32, which holds what bf16 holds: here nothing is rounded.
 * Moves fp32 keys once, and 256 bytes an entry of product to memory and back. Limit: the memory's rate for 1 KB an entry.
 */
#include "chain.cuh"

KERNEL = {
    FOR_OP(indexer_gemm),
    .note = "fp32 in, multiplied as tf32 by cuBLASLt, then relu, weights and sum; bound by the traffic of fp32 keys and product",
    .engine = CUDA,
    .reads = INDEXER_GEMM_READS_F32,
    .workspace = chain_workspace,
    .open = chain_open<CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32>,
    .close = chain_close,
    .launch = chain_launch<INDEXER_GEMM_K32, INDEXER_GEMM_Q32>,
    .describe = chain_describe,
};

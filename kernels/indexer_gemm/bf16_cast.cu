/* indexer_gemm/bf16_cast: keys and queries arrive in fp32 and are cast to bf16 in each call, then all goes as in bf16_lt: the round
 * trip that eats what bf16 gains. Moves keys three times (512 bytes read, 256 written, 256 read an entry) and the product twice.
 * Limit: the memory's rate for 1.5 KB an entry, twice that of bf16_lt.
 */
#include "chain.cuh"

static constexpr int CAST_THREADS = 256, CAST_EACH = 2;  /* groups of 8 values a thread */

/* A request a row of blocks, `groups` of 8 values in it; dense in `to`. A thread's groups lie a block apart, loads in flight. */
static __global__ void __launch_bounds__(CAST_THREADS) indexer_gemm_cast(struct arg from, uint4 *to, int32_t groups) {
    const int32_t first = (int32_t)(blockIdx.x * CAST_THREADS * CAST_EACH + threadIdx.x);
    const float4 *row = (const float4 *)dense_request(from, blockIdx.y);
    to += (int64_t)blockIdx.y * groups;
    float4 v[CAST_EACH][2] = {};
#pragma unroll
    for (int i = 0; i < CAST_EACH; i++) {
        const int32_t at = first + i * CAST_THREADS;
        if (at < groups)
            v[i][0] = __ldcs(row + at * 2), v[i][1] = __ldcs(row + at * 2 + 1);
    }
#pragma unroll
    for (int i = 0; i < CAST_EACH; i++)
        if (first + i * CAST_THREADS < groups)
            to[first + i * CAST_THREADS] = chain_pack(v[i][0], v[i][1]);
}

/* Behind the chain's own workspace. */
static size_t q_at(const struct problem *p) {
    return chain_workspace(p, NULL, NULL);
}
static size_t k_at(const struct problem *p) {
    return q_at(p) + (size_t)p->dim[INDEXER_GEMM_BATCH] * HEADS * D * 2;
}

static size_t workspace(const struct problem *p, const struct device *, const int32_t *) {
    return k_at(p) + (size_t)(p->dim[INDEXER_GEMM_BATCH] * indexer_gemm_entries(p)) * D * 2;
}

/* The cast tensor, dense. */
static int cast(const struct call *call, int tensor, int64_t vectors, size_t at, struct arg *ret) {
    const int32_t groups = (int32_t)(vectors * D / 8), per_block = CAST_THREADS * CAST_EACH;
    *ret = {(char *)call->workspace + at, vectors * D * 2};
    indexer_gemm_cast<<<dim3((unsigned)((groups + per_block - 1) / per_block), (unsigned)call->problem->dim[INDEXER_GEMM_BATCH]),
        CAST_THREADS, 0, call->stream>>>(call->t[tensor], (uint4 *)ret->p, groups);
    return cudaGetLastError();
}

static int launch(const struct call *call) {
    struct arg k, q;
    CHAIN_STEP(cast(call, INDEXER_GEMM_Q32, HEADS, q_at(call->problem), &q));
    CHAIN_STEP(cast(call, INDEXER_GEMM_K32, indexer_gemm_entries(call->problem), k_at(call->problem), &k));
    return chain_run(call, k, q);
}

KERNEL = {
    FOR_OP(indexer_gemm),
    .note = "fp32 in, cast to bf16 in each call, then as bf16_lt; bound by the round trip of the cast keys",
    .engine = CUDA,
    .reads = INDEXER_GEMM_READS_F32,
    .workspace = workspace,
    .open = chain_open<CUDA_R_16BF, CUBLAS_COMPUTE_32F>,
    .close = chain_close,
    .launch = launch,
    .describe = chain_describe,
};

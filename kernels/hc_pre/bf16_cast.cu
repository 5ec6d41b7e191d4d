/* hc_pre/bf16_cast: x and w arrive in fp32 and are cast to bf16 in each call, then cuBLASLt's product in bf16 and a kernel for the
 * square sum: the round trip that eats what bf16 gains. Moves x and w three times, half of it in bf16, and x once more.
 * Limit: four kernels in a row.
 */
#include "chain.cuh"

static constexpr int THREADS = 256, EACH = K / 8 / THREADS;  /* groups of 8 values a thread */

/* A block a row, all loads of a thread in flight; dense in `to`. */
static __global__ void __launch_bounds__(THREADS) hc_pre_cast(struct arg from, uint4 *to) {
    const float4 *row = (const float4 *)hc_row(from, blockIdx.x) + threadIdx.x * 2;
    float4 v[EACH][2];
#pragma unroll
    for (int i = 0; i < EACH; i++)
        v[i][0] = __ldg(row + i * THREADS * 2), v[i][1] = __ldg(row + i * THREADS * 2 + 1);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        to[(int64_t)blockIdx.x * (K / 8) + i * THREADS + threadIdx.x] = chain_pack(v[i][0], v[i][1]);
}

static size_t workspace(const struct problem *p, const struct device *, const int32_t *) {
    return CHAIN_ROOM + (size_t)(N + p->dim[HC_PRE_BATCH]) * K * 2;
}

static int launch(const struct call *call) {
    const struct arg w = {(char *)call->workspace + CHAIN_ROOM, K * 2}, x = {(char *)w.p + N * K * 2, K * 2};
    hc_pre_cast<<<N, THREADS, 0, call->stream>>>(call->t[HC_PRE_W32], (uint4 *)w.p);
    CHAIN_STEP(cudaGetLastError());
    hc_pre_cast<<<(unsigned)call->problem->dim[HC_PRE_BATCH], THREADS, 0, call->stream>>>(call->t[HC_PRE_X32], (uint4 *)x.p);
    CHAIN_STEP(cudaGetLastError());
    return chain_run(call, w, x, call->workspace);
}

KERNEL = {
    FOR_OP(hc_pre),
    .note = "fp32 in, cast to bf16 in each call, then cuBLASLt and a kernel for the square sum; bound by four launches",
    .engine = CUDA,
    .reads = HC_PRE_READS_F32,
    .workspace = workspace,
    .open = chain_open<CUDA_R_16BF>,
    .close = chain_close,
    .launch = launch,
    .describe = chain_describe,
};

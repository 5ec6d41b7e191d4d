/* hc_pre/fp32_simt: fp32 on CUDA cores, the stock way: a block takes 4 outputs of up to 8 tokens and runs over all of K.
 * Moves x six times and w once for every 8 tokens, all but the first time from L2. Limit: few blocks, each of which must read
 * 0.3 to 0.8 MB alone.
 */
#include "hc.cuh"

static constexpr int THREADS = 256, OUTPUTS = 4, GROUPS = N / OUTPUTS;

template <int TOKENS> static __global__ void __launch_bounds__(THREADS) hc_pre_simt(const __grid_constant__ hc_args a) {
    __shared__ float shared[TOKENS * (OUTPUTS + 1)][THREADS / WARP];
    const int32_t first = (int32_t)blockIdx.y * TOKENS, output = (int32_t)blockIdx.x * OUTPUTS;
    float sum[TOKENS * (OUTPUTS + 1)] = {};  /* the last of a token's: its square sum */
#pragma unroll 2
    for (int k = (int)threadIdx.x * 4; k < K; k += THREADS * 4) {
        float4 w[OUTPUTS], x[TOKENS];
#pragma unroll
        for (int i = 0; i < OUTPUTS; i++)
            w[i] = __ldg((const float4 *)(hc_row(a.w, output + i) + k * 4));
#pragma unroll
        for (int t = 0; t < TOKENS; t++)
            x[t] = first + t < a.batch ? __ldg((const float4 *)(hc_row(a.x, first + t) + k * 4)) : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int t = 0; t < TOKENS; t++) {
#pragma unroll
            for (int i = 0; i < OUTPUTS; i++)
                sum[t * (OUTPUTS + 1) + i] = dot4(x[t], w[i], sum[t * (OUTPUTS + 1) + i]);
            sum[t * (OUTPUTS + 1) + OUTPUTS] = dot4(x[t], x[t], sum[t * (OUTPUTS + 1) + OUTPUTS]);
        }
    }
    const float all = block_sums<TOKENS * (OUTPUTS + 1), THREADS>(sum, shared);
    const int32_t token = first + (int32_t)threadIdx.x / (OUTPUTS + 1), i = (int32_t)threadIdx.x % (OUTPUTS + 1);
    if (threadIdx.x >= TOKENS * (OUTPUTS + 1) || token >= a.batch)
        return;
    if (i < OUTPUTS)
        hc_mix(a, token)[output + i] = all;
    else if (blockIdx.x == 0)
        *hc_sqsum(a, token) = all;
}

static int launch(const struct call *call) {
    const hc_args a = hc_args_of(call, false);
    const auto blocks = [&](int tokens) { return dim3(GROUPS, (unsigned)((a.batch + tokens - 1) / tokens)); };
    if (a.batch <= 16)
        hc_pre_simt<1><<<blocks(1), THREADS, 0, call->stream>>>(a);
    else if (a.batch <= 64)
        hc_pre_simt<4><<<blocks(4), THREADS, 0, call->stream>>>(a);
    else
        hc_pre_simt<8><<<blocks(8), THREADS, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(hc_pre),
    .note = "fp32 on CUDA cores, a block 4 outputs of up to 8 tokens; bound by what a block reads alone",
    .engine = CUDA,
    .reads = HC_PRE_READS_F32,
    .launch = launch,
};

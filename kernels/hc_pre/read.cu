/* hc_pre/read: the loads of the bf16 twins alone, each byte once. A block takes an eighth of a row of x or w.
 * Moves x and w to registers; one word a warp goes to mix, so that nothing is dead. Limit: latency up to some tens of tokens,
 * then the memory's read rate.
 */
#include "hc.cuh"

static constexpr int THREADS = 128, PARTS = 8, EACH = K / 8 / PARTS / THREADS;  /* 16-byte pieces a thread */

static __global__ void __launch_bounds__(THREADS) hc_pre_read(const __grid_constant__ hc_args a) {
    const int32_t row = (int32_t)blockIdx.x / PARTS, part = (int32_t)blockIdx.x % PARTS;
    const uint4 *from = (const uint4 *)(row < N ? hc_row(a.w, row) : hc_row(a.x, row - N)) + part * (K / 8 / PARTS);
    uint4 v[EACH];
    uint32_t sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        v[i] = load16_once(from + i * THREADS + threadIdx.x);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
    sum = __reduce_xor_sync(ALL_LANES, sum);
    if (lane_id() == 0)
        ((uint32_t *)hc_mix(a, row % a.batch))[(part * (THREADS / WARP) + warp_id()) % N] = sum;
}

static int launch(const struct call *call) {
    const hc_args a = hc_args_of(call, true);
    hc_pre_read<<<(unsigned)((N + a.batch) * PARTS), THREADS, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(hc_pre),
    .note = "the loads of the bf16 twins alone: what memory allows",
    .engine = CUDA,
    .reads = HC_PRE_READS_BF16,
    .promises = PROBE,
    .launch = launch,
};

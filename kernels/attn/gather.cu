/* attn/gather: the loads of op attn alone, each KV row once a request. A warp takes one to eight entries, all their loads in flight.
 * Moves the lengths, the slots and 1 KB an entry to registers; one word a warp goes to out, so that nothing is dead.
 * Limit: the memory's rate for random rows of 1 KB, or at small batches the latency of length, slot and row one after another.
 */
#include "attn.cuh"

static constexpr int WARPS = 4;

template <int ROWS> static __global__ void __launch_bounds__(WARPS *WARP) attn_gather(const __grid_constant__ attn_args a, int blocks) {
    const int lane = threadIdx.x % WARP;
    const int64_t b = blockIdx.x / blocks;
    const int32_t part = (int32_t)(blockIdx.x % blocks) * WARPS + (int32_t)threadIdx.x / WARP, first = part * ROWS;
    const attn_length len = attn_length_of(a, b);
    if (first >= len.n)
        return;

    const int32_t mine = lane < ROWS ? attn_slot(a, b, len, first + lane) : -1;
    uint4 v[ROWS][2] = {};
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int32_t slot = __shfl_sync(ALL_LANES, mine, j);
        if (slot >= 0) {
            const uint4 *row = (const uint4 *)attn_kv(a, len, first + j, slot);
            v[j][0] = load16_once(row + lane);
            v[j][1] = load16_once(row + WARP + lane);
        }
    }

    uint32_t sum = 0;
#pragma unroll
    for (int j = 0; j < ROWS; j++)
#pragma unroll
        for (int k = 0; k < 2; k++)
            sum ^= v[j][k].x ^ v[j][k].y ^ v[j][k].z ^ v[j][k].w;
    sum = __reduce_xor_sync(ALL_LANES, sum);
    if (lane == 0) {
        const int32_t words = ATTN_D / 2;
        ((uint32_t *)attn_row<ATTN_OUT>(a, b * a.heads + part / words % a.heads))[part % words] = sum;
    }
}

template <int ROWS> static int launch_rows(const attn_args &a, int32_t entries, cudaStream_t stream) {
    const int32_t per_block = WARPS * ROWS, blocks = (entries + per_block - 1) / per_block;
    attn_gather<ROWS><<<(unsigned)(a.batch * blocks), WARPS * WARP, 0, stream>>>(a, blocks);
    return cudaGetLastError();
}

/* One entry a warp spreads a small batch over the whole device; more keep more loads in flight where there are warps to spare. */
static int launch(const struct call *call) {
    const attn_args a = attn_args_of(call);
    const int64_t *dim = call->problem->dim;
    const int32_t entries = (int32_t)(dim[ATTN_WINDOW] + dim[ATTN_TOPK]);
    if (entries == 0)
        return cudaSuccess;
    const int64_t rows_per_sm = (int64_t)a.batch * entries / call->device->sm_count;
    if (rows_per_sm < 32)
        return launch_rows<1>(a, entries, call->stream);
    if (rows_per_sm < 64)
        return launch_rows<2>(a, entries, call->stream);
    return launch_rows<4>(a, entries, call->stream);
}

KERNEL = {
    FOR_OP(attn),
    .note = "the loads alone, each KV row once: what memory allows",
    .engine = CUDA,
    .promises = PROBE,
    .launch = launch,
};

/* attn/gather: the loads of op attn alone, each KV row once a request. A warp takes two entries, all their loads in flight.
 * Moves the lengths, the slots and 1 KB an entry to registers; one word a warp goes to out, so that nothing is dead.
 * Limit: the memory's rate for random rows of 1 KB, or at small batches the latency of length, slot and row one after another.
 */
#include "attn.cuh"

static constexpr int WARPS = 4, ROWS = 2;  /* more rows a warp are no faster at any batch, one is slower from 64 requests on */

/* Slot of entry i, counted over the full widths of both lists: length and slot are loaded side by side, and a slot past the
 * length is dropped unseen. One latency less than through the joined list. */
static __device__ __forceinline__ int32_t slot_of(const attn_args &a, int64_t b, int32_t i) {
    if (i >= a.window + a.topk)
        return -1;
    const bool first = i < a.window;
    const int32_t at = first ? i : i - a.window;
    const char *list = first ? attn_row<ATTN_WINDOW_SLOT>(a, b) : attn_row<ATTN_TOPK_SLOT>(a, b);
    const int32_t slot = __ldg((const int32_t *)list + at), length = __ldg((const int32_t *)attn_row<ATTN_LENGTH>(a, b) + !first);
    return at < length ? slot : -1;
}

static __global__ void __launch_bounds__(WARPS *WARP) attn_gather(const __grid_constant__ attn_args a, int32_t blocks) {
    const int lane = lane_id();
    const int64_t b = blockIdx.x / blocks;
    const int32_t part = (int32_t)(blockIdx.x % blocks) * WARPS + warp_id(), first = part * ROWS;

    const int32_t mine = lane < ROWS ? slot_of(a, b, first + lane) : -1;
    uint4 v[ROWS][2] = {};
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int32_t slot = __shfl_sync(ALL_LANES, mine, j);
        if (slot >= 0) {
            const char *row = first + j < a.window ? attn_row<ATTN_WINDOW_KV>(a, slot) : attn_row<ATTN_TOPK_KV>(a, slot);
            v[j][0] = load16_once((const uint4 *)row + lane);
            v[j][1] = load16_once((const uint4 *)row + WARP + lane);
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

static int launch(const struct call *call) {
    const attn_args a = attn_args_of(call);
    const int32_t per_block = WARPS * ROWS, blocks = (a.window + a.topk + per_block - 1) / per_block;
    attn_gather<<<(unsigned)(a.batch * blocks), WARPS * WARP, 0, call->stream>>>(a, blocks);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(attn),
    .note = "the loads alone, each KV row once: what memory allows",
    .engine = CUDA,
    .reads = 1u << ATTN_WINDOW_KV | 1u << ATTN_TOPK_KV | 1u << ATTN_WINDOW_SLOT | 1u << ATTN_TOPK_SLOT | 1u << ATTN_LENGTH,
    .promises = PROBE,
    .launch = launch,
};

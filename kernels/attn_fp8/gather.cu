/* attn_fp8/gather: the loads of op attn_fp8 alone, each entry once a request. A warp takes 1 to 4 entries, all loads in flight.
 * Moves the lengths, the slots and 584 bytes an entry to registers; one word a warp goes to out, so that nothing is dead.
 * Limit: the memory's rate for random rows of 576 bytes, or at small batches the latency of slot and row one after another.
 */
#include "fp8.cuh"

static constexpr int WARPS = 4;
static constexpr int TAIL = ATTN_FP8_DATA / 16 - WARP;  /* 16-byte pieces of an entry beyond one a lane: 4 */

/* Slot of entry i, counted over the full widths of both lists: length and slot are loaded side by side, and a slot past the length
 * is dropped unseen. One latency less than through the joined list. */
static __device__ __forceinline__ int32_t slot_of(const fp8_args &a, int64_t b, int32_t i) {
    if (i >= a.window + a.topk)
        return -1;
    const bool first = i < a.window;
    const int32_t at = first ? i : i - a.window;
    const char *list = first ? attn_row<ATTN_WINDOW_SLOT>(a, b) : attn_row<ATTN_TOPK_SLOT>(a, b);
    const int32_t slot = __ldg((const int32_t *)list + at), length = __ldg((const int32_t *)attn_row<ATTN_LENGTH>(a, b) + !first);
    return at < length ? slot : -1;
}

static __device__ __forceinline__ uint32_t folded(uint4 v) {
    return v.x ^ v.y ^ v.z ^ v.w;
}

/* One load a lane and entry, one for the tails of all of them, one for their scales. */
template <int ROWS>
static __global__ void __launch_bounds__(WARPS *WARP) attn_fp8_gather(const __grid_constant__ fp8_args a, int32_t blocks) {
    static_assert(ROWS * TAIL <= WARP, "a lane has at most one piece of the tails");
    const int lane = lane_id();
    const int64_t b = blockIdx.x / blocks;
    const int32_t part = (int32_t)(blockIdx.x % blocks) * WARPS + warp_id(), first = part * ROWS;

    const int32_t mine = lane < ROWS ? slot_of(a, b, first + lane) : -1;
    uint4 v[ROWS] = {}, tail = {};
    uint2 scales = {};
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int32_t slot = __shfl_sync(ALL_LANES, mine, j);
        if (slot >= 0)
            v[j] = load16_once((const uint4 *)fp8_entry_of(a, first + j < a.window, slot).data + lane);
    }
    const int32_t of_tail = __shfl_sync(ALL_LANES, mine, lane / TAIL);
    if (lane < ROWS * TAIL && of_tail >= 0)
        tail = load16_once((const uint4 *)fp8_entry_of(a, first + lane / TAIL < a.window, of_tail).data + WARP + lane % TAIL);
    if (mine >= 0)
        scales = __ldg((const uint2 *)fp8_entry_of(a, first + lane < a.window, mine).scales);

    uint32_t sum = folded(tail) ^ scales.x ^ scales.y;
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        sum ^= folded(v[j]);
    sum = __reduce_xor_sync(ALL_LANES, sum);
    if (lane == 0) {
        const int32_t words = ATTN_D / 2;
        ((uint32_t *)attn_row<ATTN_OUT>(a, b * a.heads + part / words % a.heads))[part % words] = sum;
    }
}

template <int ROWS> static int launch_rows(const struct call *call) {
    const fp8_args a = fp8_args_of(call);
    const int32_t per_block = WARPS * ROWS, blocks = (a.window + a.topk + per_block - 1) / per_block;
    attn_fp8_gather<ROWS><<<(unsigned)(a.batch * blocks), WARPS * WARP, 0, call->stream>>>(a, blocks);
    return cudaGetLastError();
}

/* One entry a warp spreads a small batch over the whole device; more keep more loads in flight where there are warps to spare. */
static int launch(const struct call *call) {
    const int64_t *dim = call->problem->dim, rows = dim[ATTN_BATCH] * (dim[ATTN_WINDOW] + dim[ATTN_TOPK]);
    const int64_t rows_per_sm = rows / call->device->sm_count;
    if (rows_per_sm < 32)
        return launch_rows<1>(call);
    if (rows_per_sm < 64)
        return launch_rows<2>(call);
    return launch_rows<4>(call);
}

KERNEL = {
    FOR_OP(attn_fp8),
    .note = "the loads alone, each entry once: what memory allows",
    .engine = CUDA,
    .reads = 1u << ATTN_WINDOW_KV | 1u << ATTN_TOPK_KV | 1u << ATTN_WINDOW_SLOT | 1u << ATTN_TOPK_SLOT | 1u << ATTN_LENGTH,
    .promises = PROBE,
    .launch = launch,
};

/* attn/simt: one block a (request, head) on CUDA cores, the stock way. A warp takes four entries at a time, each lane 16 elements.
 * Every head re-reads the KV rows of its request, 1024 bytes an entry, 16 bytes a load and eight loads in flight a lane.
 * Limit: heads * entries * 1 KB through L2; device memory sees each row about once.
 */
#include "attn.cuh"

static constexpr int WARPS = 8, ROWS = 4;  /* entries that a warp has in flight */
static constexpr int STEP = WARPS * ROWS;

/* A lane's 16 elements of a row: 8 at lane * 8, 8 at 256 + lane * 8, so that a warp's loads are whole lines. */
struct slice {
    uint4 v[2];
};

static __device__ __forceinline__ slice load_slice(const char *row, int lane) {
    return {{__ldg((const uint4 *)row + lane), __ldg((const uint4 *)row + WARP + lane)}};
}

static __device__ __forceinline__ void unpack(const slice &s, float (&x)[16]) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t word[4] = {s.v[i].x, s.v[i].y, s.v[i].z, s.v[i].w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            x[i * 8 + j * 2] = bf16_lo(word[j]);
            x[i * 8 + j * 2 + 1] = bf16_hi(word[j]);
        }
    }
}

/* What one warp has seen: maximum, sum of 2^(s - m), and the lane's 16 elements of the weighted sum. */
struct running {
    float m, sum, o[16];
};

/* Four entries; a negative slot is a hole, whose row is not read and whose score is -inf. */
static __device__ __forceinline__ void take_rows(running &r, const float (&q)[16], const slice (&kv)[ROWS],
    const int32_t (&slot)[ROWS]) {
    float s[ROWS], top = r.m;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        float x[16], dot = 0;
        unpack(kv[i], x);
#pragma unroll
        for (int j = 0; j < 16; j++)
            dot = fmaf(q[j], x[j], dot);
        dot = warp_sum(dot);
        s[i] = slot[i] < 0 ? -INFINITY : dot * SCALE_LOG2;
        top = fmaxf(top, s[i]);
    }
    if (top == -INFINITY)
        return;
    const float old = exp2f(r.m - top);
    r.m = top;
    r.sum *= old;
#pragma unroll
    for (int j = 0; j < 16; j++)
        r.o[j] *= old;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        float x[16];
        const float p = exp2f(s[i] - top);
        unpack(kv[i], x);
        r.sum += p;
#pragma unroll
        for (int j = 0; j < 16; j++)
            r.o[j] = fmaf(p, x[j], r.o[j]);
    }
}

/* The warps' partial results, in warp order, then the sink; thread i writes elements 2i and 2i + 1. */
static __device__ __forceinline__ void merge_warps(const attn_args &a, int64_t b, int32_t head, const running &r, int warp,
    int lane) {
    __shared__ float weighted[WARPS][ATTN_D], m[WARPS], sum[WARPS];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 8; j += 4)
            *(float4 *)&weighted[warp][i * 256 + lane * 8 + j] =
                make_float4(r.o[i * 8 + j], r.o[i * 8 + j + 1], r.o[i * 8 + j + 2], r.o[i * 8 + j + 3]);
    if (lane == 0) {
        m[warp] = r.m;
        sum[warp] = r.sum;
    }
    __syncthreads();

    float top = -INFINITY, total = 0;
    float2 o = {0, 0};
    for (int w = 0; w < WARPS; w++)
        top = fmaxf(top, m[w]);
    for (int w = 0; w < WARPS; w++) {
        const float scale = m[w] == -INFINITY ? 0 : exp2f(m[w] - top);
        const float2 part = *(const float2 *)&weighted[w][threadIdx.x * 2];
        total += sum[w] * scale;
        o.x += part.x * scale;
        o.y += part.y * scale;
    }
    const float scale = attn_finish(top, total, attn_sink_log2(a, head));
    uint32_t *out = (uint32_t *)attn_row<ATTN_OUT>(a, b * a.heads + head);
    out[threadIdx.x] = bf16_pack(o.x * scale, o.y * scale);
    if (threadIdx.x == 0)
        *attn_lse(a, b, head) = total > 0 ? top * LN2 + logf(total) : -INFINITY;
}

static __global__ void __launch_bounds__(WARPS *WARP, 2) attn_simt(const __grid_constant__ attn_args a) {
    const int warp = warp_id(), lane = lane_id();
    const int64_t b = blockIdx.x / a.heads;
    const int32_t head = (int32_t)(blockIdx.x % a.heads);
    const attn_length len = attn_length_of(a, b);

    float q[16];
    unpack(load_slice(attn_row<ATTN_Q>(a, b * a.heads + head), lane), q);
    running r = {-INFINITY, 0, {}};

    /* Lane l < ROWS knows the slot of the warp's entry l, one step ahead. */
    int32_t next = lane < ROWS ? attn_slot(a, b, len, warp * ROWS + lane) : -1;
    for (int32_t i = warp * ROWS; i < len.n; i += STEP) {
        slice kv[ROWS] = {};
        int32_t slot[ROWS];
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            slot[j] = __shfl_sync(ALL_LANES, next, j);
            if (slot[j] >= 0)
                kv[j] = load_slice(attn_kv(a, len, i + j, slot[j]), lane);
        }
        next = lane < ROWS ? attn_slot(a, b, len, i + STEP + lane) : -1;
        take_rows(r, q, kv, slot);
    }
    merge_warps(a, b, head, r, warp, lane);
}

static int launch(const struct call *call) {
    const attn_args a = attn_args_of(call);
    attn_simt<<<(unsigned)(a.batch * a.heads), WARPS * WARP, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(attn),
    .note = "a block a (request, head) on CUDA cores; bound by re-reading KV from L2 once a head",
    .engine = CUDA,
    .launch = launch,
};

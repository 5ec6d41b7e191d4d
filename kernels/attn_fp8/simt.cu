/* attn_fp8/simt: one block a (request, head) on CUDA cores, the stock way. A warp takes four entries, a lane 16 codes and 2 roped
 * elements of each. Every head re-reads its request's entries, 584 bytes each in up to twelve loads in flight, and converts them.
 * Limit: instructions that convert and multiply heads * entries * 512 elements; device memory sees each entry about once.
 */
#include "fp8.cuh"

static constexpr int WARPS = 8, ROWS = 4, TOGETHER = 2;  /* entries that a warp has in flight; that it converts at a time */
static constexpr int STEP = WARPS * ROWS;
static constexpr int CODES = 16, CODED = ATTN_FP8_NOPE / CODES;  /* codes of a lane; lanes that have codes: 28 of 32 */
static constexpr int MINE = CODES + 2;

/* A lane's part of an entry: elements lane * 16 .. of its codes, elements lane * 2 .. of its rope. Of a hole all bits are 0. */
struct slice {
    uint4    code;
    uint32_t rope, scale;
};

static __device__ __forceinline__ slice load_slice(fp8_entry e, int lane) {
    slice s = {};
    if (lane < CODED) {
        s.code = __ldg((const uint4 *)e.data + lane);
        s.scale = __ldg(e.scales + lane / (ATTN_FP8_GROUP / CODES));
    }
    s.rope = __ldg((const uint32_t *)(e.data + ATTN_FP8_NOPE) + lane);
    return s;
}

/* Without the scale. */
static __device__ __forceinline__ void unpack(const slice &s, float (&x)[MINE]) {
    const uint32_t word[4] = {s.code.x, s.code.y, s.code.z, s.code.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t half2[2];
        fp8_half4(word[i], half2);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            x[i * 4 + j * 2] = half_lo(half2[j]);
            x[i * 4 + j * 2 + 1] = half_hi(half2[j]);
        }
    }
    x[CODES] = bf16_lo(s.rope);
    x[CODES + 1] = bf16_hi(s.rope);
}

/* The elements of q that meet a lane's slice. */
static __device__ __forceinline__ void load_query(const char *row, int lane, float (&q)[MINE]) {
    uint4 v[2] = {};
    if (lane < CODED) {
        v[0] = __ldg((const uint4 *)row + lane * 2);
        v[1] = __ldg((const uint4 *)row + lane * 2 + 1);
    }
    const uint32_t word[MINE / 2] = {v[0].x, v[0].y, v[0].z, v[0].w, v[1].x, v[1].y, v[1].z, v[1].w,
                                     __ldg((const uint32_t *)row + ATTN_FP8_NOPE / 2 + lane)};
#pragma unroll
    for (int i = 0; i < MINE / 2; i++) {
        q[i * 2] = bf16_lo(word[i]);
        q[i * 2 + 1] = bf16_hi(word[i]);
    }
}

/* What one warp has seen: maximum, sum of 2^(s - m), and the lane's elements of the weighted sum. */
struct running {
    float m, sum, o[MINE];
};

/* TOGETHER entries; a negative slot is a hole, whose bytes are not read and whose score is -inf. A lane's codes share a scale. */
static __device__ __forceinline__ void take_rows(running &r, const float (&q)[MINE], const slice *kv, const int32_t *slot) {
    float x[TOGETHER][MINE], s[TOGETHER], scale[TOGETHER], top = r.m;
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
        unpack(kv[i], x[i]);
        float coded = 0;
#pragma unroll
        for (int j = 0; j < CODES; j++)
            coded = fmaf(q[j], x[i][j], coded);
        scale[i] = fp8_scale(kv[i].scale);
        const float roped = fmaf(q[CODES], x[i][CODES], q[CODES + 1] * x[i][CODES + 1]);
        s[i] = warp_sum(fmaf(coded, scale[i], roped)) * SCALE_LOG2;
        if (slot[i] < 0)
            s[i] = -INFINITY;
        top = fmaxf(top, s[i]);
    }
    if (top == -INFINITY)
        return;
    if (top > r.m) {
        const float old = exp2f(r.m - top);
        r.m = top;
        r.sum *= old;
#pragma unroll
        for (int j = 0; j < MINE; j++)
            r.o[j] *= old;
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
        const float p = exp2f(s[i] - top), scaled = p * scale[i];
        r.sum += p;
#pragma unroll
        for (int j = 0; j < CODES; j++)
            r.o[j] = fmaf(scaled, x[i][j], r.o[j]);
#pragma unroll
        for (int j = CODES; j < MINE; j++)
            r.o[j] = fmaf(p, x[i][j], r.o[j]);
    }
}

/* The warps' partial results, in warp order, then the sink; thread i writes elements 2i and 2i + 1. */
static __device__ __forceinline__ void merge_warps(const fp8_args &a, int64_t b, int32_t head, const running &r, int warp,
                                                   int lane) {
    __shared__ float weighted[WARPS][ATTN_D], m[WARPS], sum[WARPS];
    if (lane < CODED)
#pragma unroll
        for (int j = 0; j < CODES; j += 4)
            *(float4 *)&weighted[warp][lane * CODES + j] = make_float4(r.o[j], r.o[j + 1], r.o[j + 2], r.o[j + 3]);
    *(float2 *)&weighted[warp][ATTN_FP8_NOPE + lane * 2] = make_float2(r.o[CODES], r.o[CODES + 1]);
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

static __global__ void __launch_bounds__(WARPS *WARP, 2) attn_fp8_simt(const __grid_constant__ fp8_args a) {
    const int warp = warp_id(), lane = lane_id();
    const int64_t b = blockIdx.x / a.heads;
    const int32_t head = (int32_t)(blockIdx.x % a.heads);
    const attn_length len = attn_length_of(a, b);

    float q[MINE];
    load_query(attn_row<ATTN_Q>(a, b * a.heads + head), lane, q);
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
                kv[j] = load_slice(fp8_entry_of(a, i + j < len.window, slot[j]), lane);
        }
        next = lane < ROWS ? attn_slot(a, b, len, i + STEP + lane) : -1;
#pragma unroll
        for (int j = 0; j < ROWS; j += TOGETHER)
            take_rows(r, q, kv + j, slot + j);
    }
    merge_warps(a, b, head, r, warp, lane);
}

static int launch(const struct call *call) {
    const fp8_args a = fp8_args_of(call);
    attn_fp8_simt<<<(unsigned)(a.batch * a.heads), WARPS * WARP, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(attn_fp8),
    .note = "a block a (request, head) on CUDA cores; bound by converting and multiplying every entry once a head",
    .engine = CUDA,
    .launch = launch,
};

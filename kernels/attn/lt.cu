/* attn/lt: the library row. Entries are gathered into a dense copy, then two cuBLASLt products with a softmax kernel between them.
 * KV moves four times: gathered, written, read for Q K^T and for P V; scores, weights and fp32 sums go through memory as well.
 * Limit: five or more kernels one after another at small batches, the traffic of the dense copy and the scores at large ones.
 */
#include <stdlib.h>
#include "attn.cuh"
#include "lt.h"

static constexpr size_t ROOM = 32 << 20;  /* what the library may ask for as workspace */

/* From open. */
struct plan {
    struct lt         lt;
    struct lt_product score, value;
};

/* Entries of a dense request: a multiple of 8, so that rows of scores and weights begin at multiples of 16 bytes. */
static int64_t width_of(const struct problem *p) {
    return (p->dim[ATTN_WINDOW] + p->dim[ATTN_TOPK] + 7) / 8 * 8;
}

/* The workspace, by offset. All of it is written before it is read. */
struct places {
    size_t kv;       /* bf16 [batch, width, 512]    rows of holes and past the end are 0 */
    size_t score;    /* f32  [batch, heads, width]  in units of log 2 */
    size_t weight;   /* bf16 [batch, heads, width]  2^(s - m): the largest is exactly 1 */
    size_t sum;      /* f32  [batch, heads, 512]    weighted by that */
    size_t factor;   /* f32  [batch, heads]         what ends the weighted sum */
    size_t live;     /* u8   [batch, width]         1: an entry, 0: a hole or past the end */
    size_t library, end;
};

static size_t aligned(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

static struct places places_of(const struct problem *p) {
    const size_t entries = (size_t)(p->dim[ATTN_BATCH] * width_of(p)), rows = (size_t)(p->dim[ATTN_BATCH] * p->dim[ATTN_HEADS]);
    const size_t scores = rows * (size_t)width_of(p);
    struct places at = {};
    at.score = at.kv + entries * ROW_BYTES;
    at.weight = at.score + aligned(scores * 4);
    at.sum = at.weight + aligned(scores * 2);
    at.factor = at.sum + rows * ATTN_D * 4;
    at.live = at.factor + aligned(rows * 4);
    at.library = at.live + aligned(entries);
    at.end = at.library + ROOM;
    return at;
}

/* A warp copies two entries, all loads in flight. */
static constexpr int GATHER_WARPS = 4, GATHER_ROWS = 2;

static __global__ void __launch_bounds__(GATHER_WARPS *WARP)
    attn_lt_gather(const __grid_constant__ attn_args a, int32_t width, char *kv, uint8_t *live) {
    const int lane = lane_id();
    const int64_t at = ((int64_t)blockIdx.x * GATHER_WARPS + warp_id()) * GATHER_ROWS, b = at / width;
    const int32_t first = (int32_t)(at % width);
    if (b >= a.batch)
        return;
    const attn_length len = attn_length_of(a, b);
    const int32_t mine = lane < GATHER_ROWS ? attn_slot(a, b, len, first + lane) : -1;
    uint4 v[GATHER_ROWS][2] = {};
#pragma unroll
    for (int j = 0; j < GATHER_ROWS; j++) {
        const int32_t slot = __shfl_sync(ALL_LANES, mine, j);
        if (slot >= 0) {
            const uint4 *row = (const uint4 *)attn_kv(a, len, first + j, slot);
            v[j][0] = load16_once(row + lane);
            v[j][1] = load16_once(row + WARP + lane);
        }
    }
#pragma unroll
    for (int j = 0; j < GATHER_ROWS; j++) {
        uint4 *row = (uint4 *)(kv + (at + j) * ROW_BYTES);
        row[lane] = v[j][0];
        row[WARP + lane] = v[j][1];
    }
    if (lane < GATHER_ROWS)
        live[at + lane] = mine >= 0;
}

static constexpr int SOFTMAX_THREADS = 128;

/* Of all threads, in a fixed order, after a barrier. */
template <class F> static __device__ __forceinline__ float block_reduce(float x, F both, float *shared) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        x = both(x, __shfl_xor_sync(ALL_LANES, x, step));
    if (lane_id() == 0)
        shared[warp_id()] = x;
    __syncthreads();
    x = shared[0];
#pragma unroll
    for (int w = 1; w < SOFTMAX_THREADS / WARP; w++)
        x = both(x, shared[w]);
    return x;
}

/* Four scores; those of holes and past the end are -inf, whatever the product left there. */
static __device__ __forceinline__ float4 load_scores(const float *score, const uint8_t *live, int32_t i) {
    float4 s = *(const float4 *)(score + i);
    const uchar4 l = *(const uchar4 *)(live + i);
    s.x = l.x ? s.x : -INFINITY;
    s.y = l.y ? s.y : -INFINITY;
    s.z = l.z ? s.z : -INFINITY;
    s.w = l.w ? s.w : -INFINITY;
    return s;
}

/* A block a (request, head). Weights are not divided by their sum yet: rounding the heaviest of them to bf16 would cost up to 2^-8
 * of the result, while 1 is exact. */
static __global__ void __launch_bounds__(SOFTMAX_THREADS)
    attn_lt_softmax(const __grid_constant__ attn_args a, int32_t width, const float *score, const uint8_t *live, uint2 *weight,
                    float *factor) {
    __shared__ float most[SOFTMAX_THREADS / WARP], all[SOFTMAX_THREADS / WARP];
    const int64_t row = blockIdx.x, b = row / a.heads;
    const int32_t head = (int32_t)(row % a.heads), start = (int32_t)threadIdx.x * 4;
    score += row * width;
    live += b * width;
    weight += row * width / 4;

    float m = -INFINITY, sum = 0;
    for (int32_t i = start; i < width; i += SOFTMAX_THREADS * 4) {
        const float4 s = load_scores(score, live, i);
        m = fmaxf(m, fmaxf(fmaxf(s.x, s.y), fmaxf(s.z, s.w)));
    }
    m = block_reduce(m, [](float x, float y) { return fmaxf(x, y); }, most);
    const float base = m == -INFINITY ? 0 : m;
    for (int32_t i = start; i < width; i += SOFTMAX_THREADS * 4) {
        const float4 s = load_scores(score, live, i);
        const float4 p = {exp2f(s.x - base), exp2f(s.y - base), exp2f(s.z - base), exp2f(s.w - base)};
        sum += (p.x + p.y) + (p.z + p.w);
        weight[i / 4] = make_uint2(bf16_pack(p.x, p.y), bf16_pack(p.z, p.w));
    }
    sum = block_reduce(sum, [](float x, float y) { return x + y; }, all);
    if (threadIdx.x == 0) {
        factor[row] = attn_finish(m, sum, attn_sink_log2(a, head));
        *attn_lse(a, b, head) = sum > 0 ? m * LN2 + logf(sum) : -INFINITY;
    }
}

static constexpr int SCALE_WARPS = 4;

/* A warp a row of out, 8 elements a lane and half of it. In bf16 until here it would be rounded twice, which is too much. */
static __global__ void __launch_bounds__(SCALE_WARPS *WARP)
    attn_lt_scale(const __grid_constant__ attn_args a, const float *sum, const float *factor) {
    const int64_t row = (int64_t)blockIdx.x * SCALE_WARPS + warp_id();
    if (row >= (int64_t)a.batch * a.heads)
        return;
    const float f = factor[row];
    const float4 *from = (const float4 *)(sum + row * ATTN_D) + lane_id() * 2;
    uint4 *out = (uint4 *)attn_row<ATTN_OUT>(a, row) + lane_id();
    const float4 v[4] = {from[0], from[1], from[2 * WARP], from[2 * WARP + 1]};
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float4 x = v[i * 2], y = v[i * 2 + 1];
        out[i * WARP] = make_uint4(bf16_pack(x.x * f, x.y * f), bf16_pack(x.z * f, x.w * f), bf16_pack(y.x * f, y.y * f),
                                   bf16_pack(y.z * f, y.w * f));
    }
}

static size_t workspace(const struct problem *p, const struct device *, const int32_t *) {
    return places_of(p).end;
}

static void close_(void *state) {
    struct plan *plan = (struct plan *)state;
    lt_close(&plan->lt);
    free(plan);
}

/* One matrix a request: a tensor of rows of `columns` elements, `rows` of them, in steps of `stride` bytes. */
static struct lt_matrix matrix(cudaDataType_t type, int64_t rows, int64_t columns, int64_t stride) {
    const int64_t ld = stride / (type == CUDA_R_32F ? 4 : 2);
    return {type, columns, rows, ld, ld * rows, false};
}

/* score[heads, width] = q[heads, 512] kv[width, 512]^T ;  sum[heads, 512] = weight[heads, width] kv[width, 512] */
static cublasStatus_t choose(struct plan *plan, const struct problem *p) {
    const int64_t heads = p->dim[ATTN_HEADS], width = width_of(p);
    const struct lt_matrix kv = matrix(CUDA_R_16BF, width, ATTN_D, ROW_BYTES);
    struct lt_product &score = plan->score, &value = plan->value;
    score.name = "scores", value.name = "sums";
    score.batch = value.batch = (int32_t)p->dim[ATTN_BATCH];
    score.a = value.a = kv;
    score.b = matrix(CUDA_R_16BF, heads, ATTN_D, ROW_BYTES);
    score.d = matrix(CUDA_R_32F, heads, width, width * 4);
    value.b = matrix(CUDA_R_16BF, heads, width, width * 2);
    value.d = matrix(CUDA_R_32F, heads, ATTN_D, ATTN_D * 4);
    score.b.loose = true;
    LT_TRY(lt_open(&plan->lt));
    LT_TRY(lt_choose(&plan->lt, &score, true, ROOM));
    return lt_choose(&plan->lt, &value, false, ROOM);
}

static int open_(const struct problem *p, const struct device *, void **state) {
    struct plan *plan = (struct plan *)calloc(1, sizeof *plan);
    *state = NULL;
    if (!plan)
        return cudaErrorMemoryAllocation;
    const cublasStatus_t status = choose(plan, p);
    if (status == CUBLAS_STATUS_SUCCESS)
        *state = plan;
    else
        close_(plan);
    return lt_error(status);
}

static const char *describe(void *state, char *ret, size_t size) {
    const struct plan *plan = (const struct plan *)state;
    char score[160], value[160];
    snprintf(ret, size, "cuBLASLt %zu; q k: %s; p v: %s", plan->lt.version(),
             lt_describe(&plan->lt, &plan->score, score, sizeof score), lt_describe(&plan->lt, &plan->value, value, sizeof value));
    return ret;
}

#define STEP(call)                          \
    do {                                    \
        const int error_ = (call);          \
        if (error_)                         \
            return error_;                  \
    } while (0)

static int launch(const struct call *call) {
    const struct plan *plan = (const struct plan *)call->state;
    const attn_args a = attn_args_of(call);
    const struct places at = places_of(call->problem);
    const int32_t width = (int32_t)width_of(call->problem), per_block = GATHER_WARPS * GATHER_ROWS;
    const int64_t rows = (int64_t)a.batch * a.heads;
    char *base = (char *)call->workspace, *kv = base + at.kv, *weight = base + at.weight;
    float *score = (float *)(base + at.score), *sum = (float *)(base + at.sum), *factor = (float *)(base + at.factor);
    uint8_t *live = (uint8_t *)(base + at.live);

    struct lt_product q_k = plan->score;
    q_k.b = matrix(CUDA_R_16BF, a.heads, ATTN_D, a.t[ATTN_Q].stride);
    attn_lt_gather<<<(unsigned)(((int64_t)a.batch * width + per_block - 1) / per_block), GATHER_WARPS * WARP, 0, call->stream>>>(
        a, width, kv, live);
    STEP(cudaGetLastError());
    STEP(lt_error(lt_multiply(&plan->lt, &q_k, SCALE_LOG2, kv, a.t[ATTN_Q].p, score, base + at.library, ROOM, call->stream)));
    attn_lt_softmax<<<(unsigned)rows, SOFTMAX_THREADS, 0, call->stream>>>(a, width, score, live, (uint2 *)weight, factor);
    STEP(cudaGetLastError());
    STEP(lt_error(lt_multiply(&plan->lt, &plan->value, 1, kv, weight, sum, base + at.library, ROOM, call->stream)));
    attn_lt_scale<<<(unsigned)((rows + SCALE_WARPS - 1) / SCALE_WARPS), SCALE_WARPS * WARP, 0, call->stream>>>(a, sum, factor);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(attn),
    .note = "gather, two cuBLASLt products and a softmax; bound by the dense copy's traffic and by five kernels in a row",
    .engine = CUDA,
    .workspace = workspace,
    .open = open_,
    .close = close_,
    .launch = launch,
    .describe = describe,
};

/* attn/oracle: the op as written, in double precision. A block a (request, head); out and lse are arrays of double.
 * A warp computes one score at a time; then each thread sums two elements over a chunk of 256 weights kept in shared memory.
 * Limit: re-reads KV twice a head from L2 and converts every element to double; meant for full-rate fp64.
 */
#include "attn.cuh"

static constexpr int THREADS = 256, CHUNK = 256;

static __device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

/* Scores of entries [first, first + count), natural units; a hole scores -inf. */
static __device__ void score_chunk(const attn_args &a, int64_t b, attn_length len, int32_t first, int32_t count, const double *q,
                                   double *score, const char **row) {
    const int lane = lane_id();
    for (int32_t i = warp_id(); i < count; i += THREADS / WARP) {
        const int32_t slot = attn_slot(a, b, len, first + i);
        const char *kv = slot < 0 ? nullptr : attn_kv(a, len, first + i, slot);
        double dot = 0;
        if (kv)
            for (int32_t d = lane; d < ATTN_D / 2; d += WARP) {
                const uint32_t word = __ldg((const uint32_t *)kv + d);
                dot += q[2 * d] * bf16_lo(word) + q[2 * d + 1] * bf16_hi(word);
            }
        dot = warp_sum(dot);
        if (lane == 0) {
            score[i] = kv ? dot / sqrt((double)ATTN_D) : -INFINITY;
            row[i] = kv;
        }
    }
}

static __global__ void __launch_bounds__(THREADS, 4) attn_oracle(const __grid_constant__ attn_args a) {
    __shared__ double q[ATTN_D], score[CHUNK], weight[CHUNK];
    __shared__ const char *row[CHUNK];
    const int64_t b = blockIdx.x / a.heads;
    const int32_t head = (int32_t)(blockIdx.x % a.heads), d = (int32_t)threadIdx.x;
    const attn_length len = attn_length_of(a, b);

    const uint32_t pair = ((const uint32_t *)attn_row<ATTN_Q>(a, b * a.heads + head))[d];
    q[2 * d] = bf16_lo(pair);
    q[2 * d + 1] = bf16_hi(pair);
    __syncthreads();

    double m = -INFINITY, sum = 0, o[2] = {0, 0};
    for (int32_t first = 0; first < len.n; first += CHUNK) {
        const int32_t count = min(CHUNK, len.n - first);
        score_chunk(a, b, len, first, count, q, score, row);
        __syncthreads();
        double top = m;
        for (int32_t i = 0; i < count; i++)
            top = fmax(top, score[i]);
        if (d < count)
            weight[d] = row[d] ? exp(score[d] - top) : 0;
        __syncthreads();
        const double old = m == -INFINITY ? 0 : exp(m - top);
        m = top;
        sum *= old;
        o[0] *= old;
        o[1] *= old;
        for (int32_t i = 0; i < count; i++) {
            if (!row[i])
                continue;
            const uint32_t word = __ldg((const uint32_t *)row[i] + d);
            sum += weight[i];
            o[0] += weight[i] * bf16_lo(word);
            o[1] += weight[i] * bf16_hi(word);
        }
        __syncthreads();
    }

    const double sink = ((const float *)a.t[ATTN_SINK].p)[head], top = fmax(m, sink);
    const double scale = sum > 0 ? exp(m - top) / (sum * exp(m - top) + exp(sink - top)) : 0;
    double *out = (double *)attn_row<ATTN_OUT>(a, b * a.heads + head);
    out[2 * d] = o[0] * scale;
    out[2 * d + 1] = o[1] * scale;
    if (d == 0)
        ((double *)attn_row<ATTN_LSE>(a, b))[head] = sum > 0 ? m + log(sum) : -INFINITY;
}

static int launch(const struct call *call) {
    const attn_args a = attn_args_of(call);
    attn_oracle<<<(unsigned)(a.batch * a.heads), THREADS, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(attn),
    .note = "naive, in double precision: the reference for large problems",
    .engine = CUDA,
    .promises = ORACLE,
    .launch = launch,
};

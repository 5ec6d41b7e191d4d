/* attn_fp8/oracle: the op as written, in double precision. A block a (request, head); out and lse are arrays of double.
 * A warp computes one score at a time; then each thread sums two elements over a chunk of 256 weights kept in shared memory.
 * Limit: re-reads every entry twice a head from L2 and converts each element to double; meant for full-rate fp64.
 */
#include "fp8.cuh"

static constexpr int THREADS = 256, CHUNK = 256;
static constexpr int PAIRS = ATTN_FP8_GROUP / 2, GROUPS = ATTN_FP8_NOPE / ATTN_FP8_GROUP;
static_assert(PAIRS == WARP && (GROUPS + 1) * PAIRS == THREADS, "a warp's pairs are one group, or the rope");

static __device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

/* Elements 64 group + 2 lane and the next of an entry; group 7 is the rope. */
static __device__ __forceinline__ double2 load_pair(fp8_entry e, int group, int lane) {
    if (group == GROUPS) {
        const uint32_t word = __ldg((const uint32_t *)(e.data + ATTN_FP8_NOPE) + lane);
        return {bf16_lo(word), bf16_hi(word)};
    }
    const uint32_t half2 = fp8_half2(__ldg((const uint16_t *)(e.data + group * ATTN_FP8_GROUP) + lane));
    const double scale = fp8_scale(__ldg(e.scales + group));
    return {half_lo(half2) * scale, half_hi(half2) * scale};
}

/* Scores of entries [first, first + count), natural units; a hole scores -inf and has no data. */
static __device__ void score_chunk(const fp8_args &a, int64_t b, attn_length len, int32_t first, int32_t count, const double *q,
                                   double *score, fp8_entry *entry) {
    const int lane = lane_id();
    for (int32_t i = warp_id(); i < count; i += THREADS / WARP) {
        const int32_t slot = attn_slot(a, b, len, first + i);
        const fp8_entry e = slot < 0 ? fp8_entry{} : fp8_entry_of(a, first + i < len.window, slot);
        double dot = 0;
        if (e.data)
            for (int group = 0; group <= GROUPS; group++) {
                const double2 x = load_pair(e, group, lane);
                dot += q[group * 2 * PAIRS + 2 * lane] * x.x + q[group * 2 * PAIRS + 2 * lane + 1] * x.y;
            }
        dot = warp_sum(dot);
        if (lane == 0) {
            score[i] = e.data ? dot / sqrt((double)ATTN_D) : -INFINITY;
            entry[i] = e;
        }
    }
}

static __global__ void __launch_bounds__(THREADS, 4) attn_fp8_oracle(const __grid_constant__ fp8_args a) {
    __shared__ double q[ATTN_D], score[CHUNK], weight[CHUNK];
    __shared__ fp8_entry entry[CHUNK];
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
        score_chunk(a, b, len, first, count, q, score, entry);
        __syncthreads();
        double top = m;
        for (int32_t i = 0; i < count; i++)
            top = fmax(top, score[i]);
        if (d < count)
            weight[d] = entry[d].data ? exp(score[d] - top) : 0;
        __syncthreads();
        const double old = m == -INFINITY ? 0 : exp(m - top);
        m = top;
        sum *= old;
        o[0] *= old;
        o[1] *= old;
        for (int32_t i = 0; i < count; i++) {
            if (!entry[i].data)
                continue;
            const double2 x = load_pair(entry[i], warp_id(), lane_id());
            sum += weight[i];
            o[0] += weight[i] * x.x;
            o[1] += weight[i] * x.y;
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
    const fp8_args a = fp8_args_of(call);
    attn_fp8_oracle<<<(unsigned)(a.batch * a.heads), THREADS, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(attn_fp8),
    .note = "naive, in double precision: the reference for large problems",
    .engine = CUDA,
    .promises = ORACLE,
    .launch = launch,
};

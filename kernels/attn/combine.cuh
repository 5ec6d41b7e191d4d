/* Partial results of attention over a cut KV list, and their merge by log-sum-exp. For op attn and, with the same tensors, op
 * attn_fp8.
 *
 * A part is some of a request's entries. It leaves, for each head, m: the base of its weights, which is the largest of its
 * scores in units of log 2; l: the sum of its weights 2^(s - m); o: the weighted sum, not divided. A part without an entry
 * leaves m = -inf, l = 0 and an o of zeros, which are loaded and multiplied by a weight of 0 like any other. Order of the sums
 * is fixed by the part's number, so that the result does not depend on who was first.
 *
 * Row r is request * heads + head, parts of a row lie side by side:  o fp32 [rows][splits][512], then ml {m, l} fp32
 * [rows][splits][2].
 */
#ifndef KBENCH_ATTN_COMBINE_CUH
#define KBENCH_ATTN_COMBINE_CUH

#include "attn.cuh"

static constexpr int COMBINE_SPLITS = 2 * WARP, COMBINE_THREADS = ATTN_D / 4;

/* A kernel parameter. */
struct partials {
    float  *o;
    float2 *ml;
    int32_t splits;
};

/* Bytes of workspace. */
static inline size_t partials_bytes(const struct problem *p, int32_t splits) {
    return splits == 1 ? 0
        : (size_t)p->dim[ATTN_BATCH] * (size_t)p->dim[ATTN_HEADS] * (size_t)splits * (ATTN_D * sizeof(float) + sizeof(float2));
}

static inline partials partials_of(const struct call *call, int32_t splits) {
    const int64_t rows = call->problem->dim[ATTN_BATCH] * call->problem->dim[ATTN_HEADS];
    float *o = (float *)call->workspace;
    return {o, (float2 *)(o + rows * splits * ATTN_D), splits};
}

/* The 512 sums of a part of a row. */
static __device__ __forceinline__ float *partial_o(const partials &p, int64_t row, int32_t split) {
    return p.o + (row * p.splits + split) * ATTN_D;
}

static __device__ __forceinline__ float2 *partial_ml(const partials &p, int64_t row, int32_t split) {
    return p.ml + row * p.splits + split;
}

/* By the kernel that makes the parts, when it pleases: the merging kernel may take its place, where there is any. Its memory
 * accesses wait. */
static __device__ __forceinline__ void combine_may_start(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* A block a row, a thread 4 elements. BATCH parts are loaded at a time, the first ones beside their weights. */
static __global__ void __launch_bounds__(COMBINE_THREADS) attn_combine(const __grid_constant__ attn_args a,
                                                                       const __grid_constant__ partials p) {
    constexpr int BATCH = 8;
    const int     lane = lane_id();
    const int64_t row = blockIdx.x, b = row / a.heads;
    const int32_t head = (int32_t)(row % a.heads);
    const float   sink = attn_sink_log2(a, head);
    const float4 *o = (const float4 *)partial_o(p, row, 0) + threadIdx.x;
    float4        v[BATCH], sum = {};
    float         m[2], l[2], top;
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float2 x = lane + i * WARP < p.splits ? __ldcg(partial_ml(p, row, lane + i * WARP)) : make_float2(-INFINITY, 0);
        m[i] = x.x;
        l[i] = x.y;
    }
#pragma unroll
    for (int j = 0; j < BATCH; j++)
        v[j] = j < p.splits ? __ldcg(o + j * COMBINE_THREADS) : make_float4(0, 0, 0, 0);
    top = fmaxf(m[0], m[1]);
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, step));
    const float base = top == -INFINITY ? 0.f : top, w[2] = {exp2f(m[0] - base), exp2f(m[1] - base)};
    const float all = warp_sum(l[0] * w[0] + l[1] * w[1]);

#pragma unroll 1
    for (int32_t s = 0; s < p.splits; s += BATCH) {
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            const float weight = __shfl_sync(ALL_LANES, s < WARP ? w[0] : w[1], (s + j) % WARP);
            sum.x += v[j].x * weight;
            sum.y += v[j].y * weight;
            sum.z += v[j].z * weight;
            sum.w += v[j].w * weight;
            if (s + BATCH + j < p.splits)
                v[j] = __ldcg(o + (s + BATCH + j) * COMBINE_THREADS);
        }
    }
    const float f = attn_finish(top, all, sink);
    const uint32_t low = bf16_pack(sum.x * f, sum.y * f), high = bf16_pack(sum.z * f, sum.w * f);
    ((uint2 *)attn_row<ATTN_OUT>(a, row))[threadIdx.x] = make_uint2(low, high);
    if (threadIdx.x == 0)
        *attn_lse(a, b, head) = all > 0 ? top * LN2 + logf(all) : -INFINITY;
}

/* After the kernel that makes the parts, on the same stream. */
static inline int combine_launch(const struct call *call, const attn_args &a, const partials &p) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3((unsigned)(a.batch * a.heads));
    how.blockDim = dim3(COMBINE_THREADS);
    how.stream = call->stream;
    how.attrs = &early;
    how.numAttrs = call->device->sm >= 90;
    return cudaLaunchKernelEx(&how, attn_combine, a, p);
}

#endif

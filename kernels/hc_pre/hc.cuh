/* What the CUDA kernels of op hc_pre share: tensors as a kernel parameter, and sums over a block. */
#ifndef KBENCH_HC_PRE_HC_CUH
#define KBENCH_HC_PRE_HC_CUH

#include "../device.cuh"
#include "hc_pre.h"
#include "kernel.h"

static constexpr int K = HC_PRE_K, N = HC_PRE_N;

/* A kernel parameter. Strides: bytes from row to row. */
struct hc_args {
    struct arg x, w, mix, sqsum;  /* x and w: of the format that the kernel reads */
    int32_t    batch;
};

static inline hc_args hc_args_of(const struct call *call, bool bf16) {
    hc_args a;
    a.x = call->t[bf16 ? HC_PRE_X16 : HC_PRE_X32];
    a.w = call->t[bf16 ? HC_PRE_W16 : HC_PRE_W32];
    a.mix = call->t[HC_PRE_MIX];
    a.sqsum = call->t[HC_PRE_SQSUM];
    a.batch = (int32_t)call->problem->dim[HC_PRE_BATCH];
    return a;
}

static __device__ __forceinline__ const char *hc_row(const struct arg &t, int64_t row) {
    return (const char *)t.p + row * t.stride;
}
static __device__ __forceinline__ float *hc_mix(const hc_args &a, int64_t b) {
    return (float *)((char *)a.mix.p + b * a.mix.stride);
}
static __device__ __forceinline__ float *hc_sqsum(const hc_args &a, int64_t b) {
    return (float *)((char *)a.sqsum.p + b * a.sqsum.stride);
}

static __device__ __forceinline__ float dot4(float4 x, float4 y, float sum) {
    return fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, fmaf(x.x, y.x, sum))));
}

/* COUNT sums over all threads of a block, in a fixed order: within warps by shuffles, then over the warps. Thread i < COUNT gets
 * sum i. shared: [COUNT][warps]. */
template <int COUNT, int THREADS>
static __device__ __forceinline__ float block_sums(const float (&part)[COUNT], float (*shared)[THREADS / WARP]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const float sum = warp_sum(part[i]);
        if (lane_id() == 0)
            shared[i][warp_id()] = sum;
    }
    __syncthreads();
    float all = 0;
    if (threadIdx.x < COUNT)
#pragma unroll
        for (int w = 0; w < THREADS / WARP; w++)
            all += shared[threadIdx.x][w];
    return all;
}

#endif

/* The chain of the library rows of indexer_gemm: a product by cuBLASLt into memory, product[b, head, entry] in fp32, then a kernel
 * that reads it once for relu, weights and the sum over heads. Both factors fp32 or both bf16.
 */
#ifndef KBENCH_INDEXER_GEMM_CHAIN_CUH
#define KBENCH_INDEXER_GEMM_CHAIN_CUH

#include "dense.cuh"
#include "lt_chain.cuh"

/* Entries of a request in the product: a multiple of 4, so that its rows begin at multiples of 16 bytes. */
static inline int64_t chain_width(const struct problem *p) {
    return (indexer_gemm_entries(p) + 3) / 4 * 4;
}

static inline size_t chain_product_bytes(const struct problem *p) {
    return chain_aligned((size_t)(p->dim[INDEXER_GEMM_BATCH] * HEADS * chain_width(p)) * 4);
}

static inline size_t chain_workspace(const struct problem *p, const struct device *, const int32_t *) {
    return chain_product_bytes(p) + CHAIN_ROOM;
}

/* One matrix a request: `columns` vectors of 128, as the library counts; stride: bytes from request to request. */
static inline lt_matrix chain_factor(cudaDataType_t type, int64_t columns, int64_t stride) {
    return {type, D, columns, D, stride / chain_size(type), false};
}

/* For a kernel's table: product[entries, 64] = k[128, entries]^T q[128, 64], column by column. */
template <cudaDataType_t TYPE, cublasComputeType_t COMPUTE>
static int chain_open(const struct problem *p, const struct device *, void **state) {
    const int64_t bytes = chain_size(TYPE), entries = indexer_gemm_entries(p), width = chain_width(p);
    return chain_choose(COMPUTE, (int32_t)p->dim[INDEXER_GEMM_BATCH], chain_factor(TYPE, entries, entries * D * bytes),
                        chain_factor(TYPE, HEADS, HEADS * D * bytes), {CUDA_R_32F, entries, HEADS, width, width * HEADS, false},
                        state);
}

static constexpr int SUM_WARPS = 8, SUM_HEADS = HEADS / SUM_WARPS, SUM_KEYS = WARP * 4;

/* A block takes 128 entries, a warp 8 heads of them, all its loads in flight; the warps' sums meet in shared memory, in order. */
static __global__ void __launch_bounds__(SUM_WARPS *WARP)
    indexer_gemm_sum(const __grid_constant__ dense_args a, const float *product, int32_t width, int32_t blocks) {
    __shared__ float4 part[SUM_WARPS][WARP];
    const int64_t b = blockIdx.x / blocks;
    const int32_t first = (int32_t)(blockIdx.x % blocks) * SUM_KEYS, mine = first + lane_id() * 4;
    const float4 *from = (const float4 *)(product + (b * HEADS + warp_id() * SUM_HEADS) * width + mine);
    const float *weight = (const float *)dense_request(a.w, b) + warp_id() * SUM_HEADS;
    float4 v[SUM_HEADS] = {}, sum = {};
    if (mine < width)
#pragma unroll
        for (int h = 0; h < SUM_HEADS; h++)
            v[h] = __ldcs(from + (int64_t)h * width / 4);
#pragma unroll
    for (int h = 0; h < SUM_HEADS; h++) {
        const float w = __ldg(weight + h);
        sum.x = fmaf(w, fmaxf(v[h].x, 0), sum.x);
        sum.y = fmaf(w, fmaxf(v[h].y, 0), sum.y);
        sum.z = fmaf(w, fmaxf(v[h].z, 0), sum.z);
        sum.w = fmaf(w, fmaxf(v[h].w, 0), sum.w);
    }
    part[warp_id()][lane_id()] = sum;
    __syncthreads();
    const int32_t i = (int32_t)threadIdx.x;
    if (i < SUM_KEYS && first + i < a.entries) {
        float all = 0;
#pragma unroll
        for (int w = 0; w < SUM_WARPS; w++)
            all += ((const float *)part[w])[i];
        dense_logits(a, b)[first + i] = all;
    }
}

/* Product of k and q, wherever they stand, and the sum over heads. product: at the begin of the workspace. */
static inline int chain_run(const struct call *call, struct arg k, struct arg q) {
    const chain *c = (const chain *)call->state;
    const dense_args a = dense_args_of(call, false);
    char *base = (char *)call->workspace;
    struct lt_product product = c->product;
    product.a = chain_factor(product.a.type, product.a.columns, k.stride);
    product.b = chain_factor(product.b.type, product.b.columns, q.stride);
    CHAIN_STEP(lt_error(lt_multiply(&c->lt, &product, 1, k.p, q.p, base, base + chain_product_bytes(call->problem), CHAIN_ROOM,
                                    call->stream)));
    const int32_t blocks = (a.entries + SUM_KEYS - 1) / SUM_KEYS;
    indexer_gemm_sum<<<(unsigned)(a.batch * blocks), SUM_WARPS * WARP, 0, call->stream>>>(
        a, (const float *)base, (int32_t)chain_width(call->problem), blocks);
    return cudaGetLastError();
}

/* For a kernel's table: of tensors K and Q as they come. */
template <int K, int Q> static int chain_launch(const struct call *call) {
    return chain_run(call, call->t[K], call->t[Q]);
}

#endif

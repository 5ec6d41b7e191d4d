/* The library rows of hc_pre: mix by cuBLASLt straight into its tensor, the square sum by a kernel of its own. */
#ifndef KBENCH_HC_PRE_CHAIN_CUH
#define KBENCH_HC_PRE_CHAIN_CUH

#include "hc.cuh"
#include "lt_chain.cuh"

static constexpr int SQUARE_THREADS = 512;

/* A block a row of fp32: 8 loads of 16 bytes a thread, all in flight. */
static __global__ void __launch_bounds__(SQUARE_THREADS) hc_pre_square(const __grid_constant__ hc_args a) {
    __shared__ float shared[1][SQUARE_THREADS / WARP];
    const float4 *x = (const float4 *)hc_row(a.x, blockIdx.x) + threadIdx.x;
    float4 v[K / 4 / SQUARE_THREADS];
    float sum[1] = {0};
#pragma unroll
    for (int i = 0; i < K / 4 / SQUARE_THREADS; i++)
        v[i] = __ldg(x + i * SQUARE_THREADS);
#pragma unroll
    for (int i = 0; i < K / 4 / SQUARE_THREADS; i++)
        sum[0] = dot4(v[i], v[i], sum[0]);
    const float all = block_sums<1, SQUARE_THREADS>(sum, shared);
    if (threadIdx.x == 0)
        *hc_sqsum(a, blockIdx.x) = all;
}

/* For a kernel's table: mix[24, batch] = w[16384, 24]^T x[16384, batch], column by column. */
template <cudaDataType_t TYPE> static int chain_open(const struct problem *p, const struct device *, void **state) {
    const int64_t tokens = p->dim[HC_PRE_BATCH], row = K * chain_size(TYPE);
    return chain_choose(CUBLAS_COMPUTE_32F, 1, chain_matrix(TYPE, N, K, row, true), chain_matrix(TYPE, tokens, K, row, true),
                        chain_matrix(CUDA_R_32F, tokens, N, N * 4, true), state);
}

/* mix from w and x, wherever they stand; the square sum from x in fp32. library: CHAIN_ROOM bytes of workspace. */
static inline int chain_run(const struct call *call, struct arg w, struct arg x, void *library) {
    const chain *c = (const chain *)call->state;
    const hc_args a = hc_args_of(call, false);
    struct lt_product product = c->product;
    product.a = chain_matrix(product.a.type, N, K, w.stride, true);
    product.b = chain_matrix(product.b.type, a.batch, K, x.stride, true);
    product.d = chain_matrix(CUDA_R_32F, a.batch, N, a.mix.stride, true);
    CHAIN_STEP(lt_error(lt_multiply(&c->lt, &product, 1, w.p, x.p, a.mix.p, library, CHAIN_ROOM, call->stream)));
    hc_pre_square<<<(unsigned)a.batch, SQUARE_THREADS, 0, call->stream>>>(a);
    return cudaGetLastError();
}

#endif

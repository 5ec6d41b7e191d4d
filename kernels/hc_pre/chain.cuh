/* The library rows of hc_pre: mix by cuBLASLt straight into its tensor, the square sum by a kernel of its own. */
#ifndef KBENCH_HC_PRE_CHAIN_CUH
#define KBENCH_HC_PRE_CHAIN_CUH

#include <stdlib.h>
#include "hc.cuh"
#include "lt.h"

static constexpr size_t CHAIN_ROOM = 32 << 20;  /* what the library may ask for as workspace */

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

#define STEP(call)                          \
    do {                                    \
        const int error_ = (call);          \
        if (error_)                         \
            return error_;                  \
    } while (0)

/* From open. */
struct chain {
    struct lt         lt;
    struct lt_product product;
};

/* `rows` rows of 16384, as the library counts: columns. */
static inline lt_matrix chain_factor(cudaDataType_t type, int64_t rows, int64_t stride) {
    const int64_t ld = stride / (type == CUDA_R_32F ? 4 : 2);
    return {type, K, rows, ld, ld * rows, true};
}

static inline lt_matrix chain_result(int64_t tokens, int64_t stride) {
    return {CUDA_R_32F, N, tokens, stride / 4, stride / 4 * tokens, true};
}

static inline void chain_close(void *state) {
    chain *c = (chain *)state;
    lt_close(&c->lt);
    free(c);
}

/* mix[24, batch] = w[16384, 24]^T x[16384, batch], column by column. */
static inline int chain_open(const struct problem *p, cudaDataType_t type, void **state) {
    chain *c = (chain *)calloc(1, sizeof *c);
    *state = NULL;
    if (!c)
        return cudaErrorMemoryAllocation;
    const int64_t bytes = type == CUDA_R_32F ? 4 : 2, tokens = p->dim[HC_PRE_BATCH];
    c->product.batch = 1;
    c->product.a = chain_factor(type, N, K * bytes);
    c->product.b = chain_factor(type, tokens, K * bytes);
    c->product.d = chain_result(tokens, N * 4);
    cublasStatus_t status = lt_open(&c->lt);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt_choose(&c->lt, &c->product, true, CHAIN_ROOM);
    if (status == CUBLAS_STATUS_SUCCESS)
        *state = c;
    else
        chain_close(c);
    return lt_error(status);
}

static inline const char *chain_describe(void *state, char *ret, size_t size) {
    const chain *c = (const chain *)state;
    char product[200];
    snprintf(ret, size, "cuBLASLt %zu; %s", c->lt.version(), lt_describe(&c->lt, &c->product, product, sizeof product));
    return ret;
}

/* mix from w and x, wherever they stand; the square sum from x in fp32. library: CHAIN_ROOM bytes of workspace. */
static inline int chain_run(const struct call *call, struct arg w, struct arg x, void *library) {
    const chain *c = (const chain *)call->state;
    const hc_args a = hc_args_of(call, false);
    struct lt_product product = c->product;
    product.a = chain_factor(product.a.type, N, w.stride);
    product.b = chain_factor(product.b.type, a.batch, x.stride);
    product.d = chain_result(a.batch, a.mix.stride);
    STEP(lt_error(lt_multiply(&c->lt, &product, 1, w.p, x.p, a.mix.p, library, CHAIN_ROOM, call->stream)));
    hc_pre_square<<<(unsigned)a.batch, SQUARE_THREADS, 0, call->stream>>>(a);
    return cudaGetLastError();
}

#endif

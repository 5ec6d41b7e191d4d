/* What rows by the library have in common, whatever the op: one product of cuBLASLt, chosen at open and pinned, beside kernels of
 * our own. An op's chain.cuh says which product, and has the kernels; a kernel's file says in which format it multiplies.
 */
#ifndef KBENCH_LT_CHAIN_CUH
#define KBENCH_LT_CHAIN_CUH

#include <stdlib.h>
#include "device.cuh"
#include "lt.h"

static constexpr size_t CHAIN_ROOM = 32 << 20;  /* what the library may ask for as workspace */

#define CHAIN_STEP(call)                    \
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

static inline size_t chain_aligned(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

/* Bytes a value. */
static constexpr int64_t chain_size(cudaDataType_t type) {
    return type == CUDA_R_32F ? 4 : 2;
}

/* A row-major tensor [rows, columns] as the library counts, one behind the other for each of a batch. stride: bytes from row to
 * row; loose: a launch may bring another. */
static inline struct lt_matrix chain_matrix(cudaDataType_t type, int64_t rows, int64_t columns, int64_t stride, bool loose) {
    const int64_t ld = stride / chain_size(type);
    return {type, columns, rows, ld, ld * rows, loose};
}

static inline void chain_close(void *state) {
    struct chain *c = (struct chain *)state;
    lt_close(&c->lt);
    free(c);
}

/* d = a^T b for each of `batch`, column by column. */
static inline int chain_choose(cublasComputeType_t compute, int32_t batch, const struct lt_matrix &a, const struct lt_matrix &b,
                               const struct lt_matrix &d, void **state) {
    struct chain *c = (struct chain *)calloc(1, sizeof *c);
    *state = NULL;
    if (!c)
        return cudaErrorMemoryAllocation;
    c->product.batch = batch;
    c->product.a = a;
    c->product.b = b;
    c->product.d = d;
    cublasStatus_t status = lt_open(&c->lt);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt_choose_by(&c->lt, &c->product, true, compute, CHAIN_ROOM);
    if (status == CUBLAS_STATUS_SUCCESS)
        *state = c;
    else
        chain_close(c);
    return lt_error(status);
}

static inline const char *chain_describe(void *state, char *ret, size_t size) {
    const struct chain *c = (const struct chain *)state;
    char product[200];
    snprintf(ret, size, "cuBLASLt %zu; %s", c->lt.version(), lt_describe(&c->lt, &c->product, product, sizeof product));
    return ret;
}

/* Eight values of fp32 to bf16, for rows that cast before they multiply. */
static __device__ __forceinline__ uint4 chain_pack(float4 x, float4 y) {
    return make_uint4(bf16_pack(x.x, x.y), bf16_pack(x.z, x.w), bf16_pack(y.x, y.y), bf16_pack(y.z, y.w));
}

#endif

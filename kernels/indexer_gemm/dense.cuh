/* What the CUDA kernels of op indexer_gemm share: tensors as a kernel parameter, and tiles of entries shared out over blocks. */
#ifndef KBENCH_INDEXER_GEMM_DENSE_CUH
#define KBENCH_INDEXER_GEMM_DENSE_CUH

#include "../device.cuh"
#include "indexer_gemm.h"
#include "kernel.h"

static constexpr int HEADS = INDEXER_GEMM_HEADS, D = INDEXER_GEMM_D;

/* A kernel parameter. Strides: bytes from request to request. */
struct dense_args {
    struct arg q, k, w, logits;  /* q and k: of the format that the kernel reads */
    int32_t    batch, entries;
};

static inline dense_args dense_args_of(const struct call *call, bool bf16) {
    dense_args a;
    a.q = call->t[bf16 ? INDEXER_GEMM_Q16 : INDEXER_GEMM_Q32];
    a.k = call->t[bf16 ? INDEXER_GEMM_K16 : INDEXER_GEMM_K32];
    a.w = call->t[INDEXER_GEMM_W];
    a.logits = call->t[INDEXER_GEMM_LOGITS];
    a.batch = (int32_t)call->problem->dim[INDEXER_GEMM_BATCH];
    a.entries = (int32_t)indexer_gemm_entries(call->problem);
    return a;
}

static __device__ __forceinline__ const char *dense_request(const struct arg &t, int64_t b) {
    return (const char *)t.p + b * t.stride;
}
static __device__ __forceinline__ float *dense_logits(const dense_args &a, int64_t b) {
    return (float *)((char *)a.logits.p + b * a.logits.stride);
}

/* Tiles of a problem in one row, request after request; the last one of a request may be short. Each block takes a piece of the
 * row, so that it meets few requests, and pieces differ by one tile at most. */
static __host__ __device__ __forceinline__ int32_t dense_tiles(int32_t entries, int32_t tile) {
    return (entries + tile - 1) / tile;
}
static __device__ __forceinline__ int64_t dense_piece(int64_t tiles, uint32_t block) {
    return tiles * block / gridDim.x;
}

/* Where in that row somebody is. */
struct dense_at {
    int64_t left;     /* tiles to go for all warps that walk together, this one included; <= 0: the end */
    int32_t b, tile;  /* request, and the tile in it */

    __device__ __forceinline__ void start(int64_t first, int64_t end, int32_t tiles) {
        left = end - first;
        b = (int32_t)(first / tiles);
        tile = (int32_t)(first % tiles);
    }
    __device__ __forceinline__ void step(int32_t by, int32_t tiles) {
        left -= by;
        for (tile += by; tile >= tiles; tile -= tiles)
            b++;
    }
};

#endif

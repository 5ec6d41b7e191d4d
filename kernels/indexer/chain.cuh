/* The framework's chain: the indexer as separate kernels over the whole width of the tables, whatever lives. Each streams one
 * tensor to the next at 16 bytes an access; only the mask at the end looks at the lengths.
 *
 *   gather_pages   [batch, pages] page numbers -> pages in a row; -1 reads page 0
 *   cast           8 bytes to 16: bf16 to fp32, or e4m3 to bf16; of keys, and of q
 *   (product)      cuBLASLt: [batch, width, 128] x [batch, 64, 128]^T -> fp32 [batch, width, 64], the tensor that gives the cost
 *   relu, multiply (by w), sum (over heads, to logits), scale (fp8 alone), mask (-inf from the length on)
 *
 * Elementwise tensors are fp32 in both: rounded to bf16, as frameworks do it, scores would miss the op's tolerance.
 * Stages take turns in two buffers, as large as the largest tensor that each holds.
 */
#ifndef KBENCH_INDEXER_CHAIN_CUH
#define KBENCH_INDEXER_CHAIN_CUH

#include "indexer.cuh"
#include "lt_chain.cuh"

static constexpr int CHAIN_THREADS = 256, CHAIN_VECTORS = 4;  /* 16-byte accesses a thread, all in flight */

static inline int64_t chain_entries(const struct problem *p) {
    return p->dim[INDEXER_BATCH] * indexer_width(p->dim[INDEXER_MAX_CTX]);
}

/* Of the workspace, one of the two that take 256 bytes an entry: for scores, say. */
static inline size_t chain_buffer(const struct problem *p) {
    return (size_t)chain_entries(p) * (INDEXER_HEADS * 4);
}

static inline unsigned chain_blocks(int64_t vectors) {
    const int64_t a_block = CHAIN_THREADS * CHAIN_VECTORS;
    return (unsigned)((vectors + a_block - 1) / a_block);
}

/* The thread's vectors of `count`: the first, and how far apart. */
static __device__ __forceinline__ int64_t chain_first(void) {
    return (int64_t)blockIdx.x * (CHAIN_THREADS * CHAIN_VECTORS) + threadIdx.x;
}

static __device__ __forceinline__ float4 chain_relu(float4 v) {
    return make_float4(fmaxf(v.x, 0.f), fmaxf(v.y, 0.f), fmaxf(v.z, 0.f), fmaxf(v.w, 0.f));
}

static __global__ void __launch_bounds__(CHAIN_THREADS) indexer_relu(const float4 *from, float4 *to, int64_t count) {
    float4 v[CHAIN_VECTORS];
    const int64_t at = chain_first();
#pragma unroll
    for (int i = 0; i < CHAIN_VECTORS; i++)
        if (at + i * CHAIN_THREADS < count)
            v[i] = __ldcs(from + at + i * CHAIN_THREADS);
#pragma unroll
    for (int i = 0; i < CHAIN_VECTORS; i++)
        if (at + i * CHAIN_THREADS < count)
            __stcs(to + at + i * CHAIN_THREADS, chain_relu(v[i]));
}

/* [batch, width, 64] by w [batch, 64]. A thread's vectors all stand at the same place of an entry, so that w is loaded once. */
static __global__ void __launch_bounds__(CHAIN_THREADS)
    indexer_multiply(const __grid_constant__ indexer_args a, const float4 *from, float4 *to, int64_t count) {
    constexpr int ROW = INDEXER_HEADS / 4;
    float4 v[CHAIN_VECTORS];
    const int64_t at = chain_first(), a_request = (int64_t)a.width * ROW;
    int64_t b = at / a_request, left = (b + 1) * a_request - at;
    float4 w = make_float4(0, 0, 0, 0);
    if (at < count)
        w = __ldg((const float4 *)indexer_row<INDEXER_W>(a, b) + at % ROW);
#pragma unroll
    for (int i = 0; i < CHAIN_VECTORS; i++)
        if (at + i * CHAIN_THREADS < count)
            v[i] = __ldcs(from + at + i * CHAIN_THREADS);
#pragma unroll
    for (int i = 0; i < CHAIN_VECTORS; i++)
        if (at + i * CHAIN_THREADS < count) {
            if (left <= i * CHAIN_THREADS) {
                left += a_request;
                w = __ldg((const float4 *)indexer_row<INDEXER_W>(a, ++b) + at % ROW);
            }
            __stcs(to + at + i * CHAIN_THREADS, make_float4(v[i].x * w.x, v[i].y * w.y, v[i].z * w.z, v[i].w * w.w));
        }
}

/* A warp sums 32 entries: each load is two of them, 16 lanes an entry, and lane l keeps what it will store: entry l. */
static __global__ void __launch_bounds__(CHAIN_THREADS)
    indexer_sum(const __grid_constant__ indexer_args a, const float4 *from, int64_t entries) {
    constexpr int ROW = INDEXER_HEADS / 4, AT_ONCE = 4;
    const int lane = lane_id();
    const int64_t first = ((int64_t)blockIdx.x * (CHAIN_THREADS / WARP) + warp_id()) * WARP;
    if (first >= entries)
        return;
    from += first * ROW + lane;
    float mine = 0;
#pragma unroll
    for (int i = 0; i < WARP / 2; i += AT_ONCE) {
        float4 v[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            v[j] = __ldcs(from + (i + j) * WARP);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            float sum = (v[j].x + v[j].y) + (v[j].z + v[j].w);
#pragma unroll
            for (int step = ROW / 2; step > 0; step /= 2)
                sum += __shfl_xor_sync(ALL_LANES, sum, step);
            const float low = __shfl_sync(ALL_LANES, sum, 0), high = __shfl_sync(ALL_LANES, sum, ROW);
            if (lane / 2 == i + j)
                mine = lane % 2 ? high : low;
        }
    }
    const int64_t b = first / a.width;
    ((float *)indexer_row<INDEXER_LOGITS>(a, b))[first % a.width + lane] = mine;
}

/* A warp's 32 entries stay within a request, since the width is a multiple of 64; so do a thread's 4. */
static __global__ void __launch_bounds__(CHAIN_THREADS) indexer_mask(const __grid_constant__ indexer_args a, int64_t count) {
    const int64_t at = (int64_t)blockIdx.x * CHAIN_THREADS + threadIdx.x, a_row = a.width / 4;
    if (at >= count)
        return;
    const int64_t b = at / a_row;
    const int32_t entry = (int32_t)(at % a_row) * 4, live = indexer_length(a, (int32_t)b);
    float4 *const p = (float4 *)((float *)indexer_row<INDEXER_LOGITS>(a, b) + entry);
    float4 v = *p;
    v.x = entry < live ? v.x : -INFINITY;
    v.y = entry + 1 < live ? v.y : -INFINITY;
    v.z = entry + 2 < live ? v.z : -INFINITY;
    v.w = entry + 3 < live ? v.w : -INFINITY;
    *p = v;
}

/* C::source(i): the address of 16-byte chunk i of what is read; C::cast makes 16 bytes of 8. A warp reads 512 bytes a load and
 * writes twice 512 in a row, hence the exchange. chunks: a multiple of 32. */
template <class C> static __device__ __forceinline__ void chain_cast(const C &c, uint4 *to, int64_t chunks) {
    const int lane = lane_id();
    const int64_t warp = (int64_t)blockIdx.x * (CHAIN_THREADS / WARP) + warp_id(), first = warp * WARP * CHAIN_VECTORS;
    uint4 v[CHAIN_VECTORS];
#pragma unroll
    for (int i = 0; i < CHAIN_VECTORS; i++)
        if (first + i * WARP < chunks)
            v[i] = load16_once(c.source(first + i * WARP + lane));
#pragma unroll
    for (int i = 0; i < CHAIN_VECTORS; i++)
        if (first + i * WARP < chunks)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int from = half * (WARP / 2) + lane / 2;
                const uint2 low = make_uint2(__shfl_sync(ALL_LANES, v[i].x, from), __shfl_sync(ALL_LANES, v[i].y, from)),
                            high = make_uint2(__shfl_sync(ALL_LANES, v[i].z, from), __shfl_sync(ALL_LANES, v[i].w, from));
                __stcs(to + (first + i * WARP) * 2 + half * WARP + lane, C::cast(lane % 2 ? high : low));
            }
}

/* Launches a kernel of a row's own that calls chain_cast, for `rows` rows of 128 values. */
template <class C>
static int chain_cast_by(void (*kernel)(C, uint4 *, int64_t), const struct call *call, const C &c, void *to, int64_t rows) {
    const int64_t chunks = rows * (INDEXER_D * C::BYTES / 16);
    kernel<<<chain_blocks(chunks), CHAIN_THREADS, 0, call->stream>>>(c, (uint4 *)to, chunks);
    return cudaGetLastError();
}

/* scores fp32 [width, 64] = keys [width, 128] q [64, 128]^T, for each request. stride: bytes from head to head. */
static inline struct lt_matrix chain_q(cudaDataType_t type, int64_t stride) {
    return chain_matrix(type, INDEXER_HEADS, INDEXER_D, stride, true);
}

/* For a kernel's table. TYPE: of keys and q as the library sees them. */
template <cudaDataType_t TYPE> static int chain_open(const struct problem *p, const struct device *, void **state) {
    const int64_t width = indexer_width(p->dim[INDEXER_MAX_CTX]), row = INDEXER_D * chain_size(TYPE);
    return chain_choose(CUBLAS_COMPUTE_32F, (int32_t)p->dim[INDEXER_BATCH], chain_q(TYPE, row),
                        chain_matrix(TYPE, width, INDEXER_D, row, false),
                        chain_matrix(CUDA_R_32F, width, INDEXER_HEADS, INDEXER_HEADS * 4, false), state);
}

/* From keys in a row to sums over heads in logits: keys are in x, scores go to y, x, y in turn. stride: of q's heads, in bytes. */
static inline int chain_score(const struct call *call, const indexer_args &a, const void *q, int64_t stride, void *x, void *y,
                              void *library) {
    const struct chain *chain = (const struct chain *)call->state;
    const int64_t entries = (int64_t)a.batch * a.width, vectors = entries * (INDEXER_HEADS / 4);
    struct lt_product product = chain->product;
    product.a = chain_q(product.a.type, stride);
    CHAIN_STEP(lt_error(lt_multiply(&chain->lt, &product, 1, q, x, y, library, CHAIN_ROOM, call->stream)));
    indexer_relu<<<chain_blocks(vectors), CHAIN_THREADS, 0, call->stream>>>((const float4 *)y, (float4 *)x, vectors);
    CHAIN_STEP(cudaGetLastError());
    indexer_multiply<<<chain_blocks(vectors), CHAIN_THREADS, 0, call->stream>>>(a, (const float4 *)x, (float4 *)y, vectors);
    CHAIN_STEP(cudaGetLastError());
    const unsigned blocks = (unsigned)((entries + CHAIN_THREADS - 1) / CHAIN_THREADS);
    indexer_sum<<<blocks, CHAIN_THREADS, 0, call->stream>>>(a, (const float4 *)y, entries);
    return cudaGetLastError();
}

static inline int chain_mask(const struct call *call, const indexer_args &a) {
    const int64_t vectors = (int64_t)a.batch * a.width / 4;
    indexer_mask<<<(unsigned)((vectors + CHAIN_THREADS - 1) / CHAIN_THREADS), CHAIN_THREADS, 0, call->stream>>>(a, vectors);
    return cudaGetLastError();
}

#endif

/* indexer_fp8/full_bf16: the framework's chain of kernels over the whole maximum width: gather_pages, cast (keys and q, e4m3 to
 * bf16), cuBLASLt in bf16, relu, multiply, sum, scale, mask. An entry moves 132 + 132 bytes in the gather, 128 + 256 in the cast,
 * then three times 256 + 256, 256 + 4, 8 + 4 and 4 + 4: 2,464.
 * Limit: those bytes at copy bandwidth, whatever lives (O(max_ctx)).
 */
#include "attn_fp8/fp8.cuh"
#include "indexer/chain.cuh"
#include "indexer_fp8.h"

/* A block copies a page, 8,448 bytes, all loads in flight. */
static constexpr int GATHER_THREADS = 176, GATHER_EACH = INDEXER_FP8_PAGE_BYTES / 16 / GATHER_THREADS;

static __global__ void __launch_bounds__(GATHER_THREADS) indexer_gather_pages(const __grid_constant__ indexer_args a, uint4 *to) {
    const unsigned pages = (unsigned)(a.width / INDEXER_PAGE);
    const int64_t slot = max(indexer_slot(a, (int32_t)(blockIdx.x / pages), (int32_t)(blockIdx.x % pages)), 0);
    const uint4 *from = (const uint4 *)((const char *)a.t[INDEXER_KEYS].p + slot * INDEXER_FP8_PAGE_BYTES) + threadIdx.x;
    uint4 v[GATHER_EACH];
#pragma unroll
    for (int i = 0; i < GATHER_EACH; i++)
        v[i] = load16_once(from + i * GATHER_THREADS);
    to += (int64_t)blockIdx.x * (INDEXER_FP8_PAGE_BYTES / 16) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < GATHER_EACH; i++)
        __stcs(to + i * GATHER_THREADS, v[i]);
}

/* Eight e4m3 to eight bf16; exact. */
struct cast_e4m3 {
    static constexpr int BYTES = 1;  /* a value */

    const char *from;
    int64_t     stride;  /* bytes from block to block of 64 rows of 128, or from row to row */
    int32_t     rows;    /* that lie one behind the other */

    __device__ __forceinline__ const char *source(int64_t i) const {
        const unsigned chunks = (unsigned)rows * (INDEXER_D / 16);
        return from + i / chunks * stride + i % chunks * 16;
    }
    static __device__ __forceinline__ uint32_t two(uint32_t pair) {
        const uint32_t half2 = fp8_half2(pair);
        return bf16_pack(half_lo(half2), half_hi(half2));
    }
    static __device__ __forceinline__ uint4 cast(uint2 v) {
        return make_uint4(two(v.x), two(v.x >> 16), two(v.y), two(v.y >> 16));
    }
};

static __global__ void __launch_bounds__(CHAIN_THREADS)
    indexer_cast(const __grid_constant__ cast_e4m3 c, uint4 *to, int64_t chunks) {
    chain_cast(c, to, chunks);
}

/* logits by the scales of gathered pages, which stand behind their codes. */
static __global__ void __launch_bounds__(CHAIN_THREADS)
    indexer_scale(const __grid_constant__ indexer_args a, const char *gathered, int64_t count) {
    const int64_t at = (int64_t)blockIdx.x * CHAIN_THREADS + threadIdx.x, a_row = a.width / 4, page = at / (INDEXER_PAGE / 4);
    if (at >= count)
        return;
    const float4 s = *((const float4 *)(gathered + page * INDEXER_FP8_PAGE_BYTES + INDEXER_FP8_SCALES) + at % (INDEXER_PAGE / 4));
    float4 *const p = (float4 *)indexer_row<INDEXER_LOGITS>(a, at / a_row) + at % a_row;
    const float4 v = *p;
    *p = make_float4(v.x * s.x, v.y * s.y, v.z * s.z, v.w * s.w);
}

/* The workspace: x holds bf16 keys, then relu's result, y scores, then weighted ones, 256 bytes an entry; then gathered pages,
 * whose scales are needed at the end. */
static size_t pages_bytes(const struct problem *p) {
    return chain_aligned((size_t)(chain_entries(p) / INDEXER_PAGE) * INDEXER_FP8_PAGE_BYTES);
}

static size_t workspace(const struct problem *p, const struct device *, const int32_t *) {
    const size_t q = (size_t)p->dim[INDEXER_BATCH] * (INDEXER_HEADS * INDEXER_D * 2);
    return chain_buffer(p) * 2 + pages_bytes(p) + q + CHAIN_ROOM;
}

static int launch(const struct call *call) {
    const indexer_args a = indexer_args_of(call);
    const size_t buffer = chain_buffer(call->problem);
    const int64_t heads = (int64_t)a.batch * INDEXER_HEADS, entries = (int64_t)a.batch * a.width;
    char *const x = (char *)call->workspace, *const y = x + buffer, *const pages = y + buffer;
    char *const q = pages + pages_bytes(call->problem), *const library = q + heads * (INDEXER_D * 2);
    indexer_gather_pages<<<(unsigned)(entries / INDEXER_PAGE), GATHER_THREADS, 0, call->stream>>>(a, (uint4 *)pages);
    CHAIN_STEP(cudaGetLastError());
    CHAIN_STEP(chain_cast_by(indexer_cast, call, {pages, INDEXER_FP8_PAGE_BYTES, INDEXER_PAGE}, x, entries));
    CHAIN_STEP(chain_cast_by(indexer_cast, call, {(const char *)a.t[INDEXER_Q].p, a.t[INDEXER_Q].stride, 1}, q, heads));
    CHAIN_STEP(chain_score(call, a, q, INDEXER_D * 2, x, y, library));
    const unsigned blocks = (unsigned)((entries / 4 + CHAIN_THREADS - 1) / CHAIN_THREADS);
    indexer_scale<<<blocks, CHAIN_THREADS, 0, call->stream>>>(a, pages, entries / 4);
    CHAIN_STEP(cudaGetLastError());
    return chain_mask(call, a);
}

KERNEL = {
    FOR_OP(indexer_fp8),
    .note = "the framework's chain at full width: gather, cast, product, relu, multiply, sum, scale, mask; 2,464 bytes an entry",
    .engine = CUDA,
    .promises = CLEAN,
    .growth = {{"max_ctx", 1}},
    .workspace = workspace,
    .open = chain_open<CUDA_R_16BF>,
    .close = chain_close,
    .launch = launch,
    .describe = chain_describe,
};

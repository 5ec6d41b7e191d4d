/* indexer/full_fp32: the framework's chain of kernels over the whole maximum width: gather_pages, cast (keys and q), cuBLASLt in
 * fp32, relu, multiply, sum, mask. An entry moves 256 + 256 bytes in the gather, 256 + 512 in the cast, 512 + 256 in the product,
 * then 256 + 256, 256 + 256, 256 + 4 and 4 + 4: 3,340.
 * Limit: those bytes at copy bandwidth, whatever lives (O(max_ctx)); the product is bound by fp32 arithmetic, 16,384 flop an entry.
 */
#include "gather_pages.cuh"

/* Four bf16 to four floats. */
struct cast_bf16 {
    static constexpr int BYTES = 2;  /* a value */

    const char *from;
    int64_t     stride;  /* bytes from row to row of 256 */

    __device__ __forceinline__ const char *source(int64_t i) const {
        return from + i / 16 * stride + i % 16 * 16;
    }
    static __device__ __forceinline__ uint4 cast(uint2 v) {
        return make_uint4(v.x << 16, v.x & 0xffff0000u, v.y << 16, v.y & 0xffff0000u);
    }
};

static __global__ void __launch_bounds__(CHAIN_THREADS)
    indexer_cast(const __grid_constant__ cast_bf16 c, uint4 *to, int64_t chunks) {
    chain_cast(c, to, chunks);
}

/* The workspace: x holds fp32 keys of 512 bytes an entry, then relu's result; y holds gathered keys, scores, weighted scores. */
static size_t workspace(const struct problem *p, const struct device *, const int32_t *) {
    const size_t q = (size_t)p->dim[INDEXER_BATCH] * (INDEXER_HEADS * INDEXER_D * 4);
    return chain_buffer(p) * 3 + q + CHAIN_ROOM;
}

static int launch(const struct call *call) {
    const indexer_args a = indexer_args_of(call);
    const size_t buffer = chain_buffer(call->problem);
    const int64_t heads = (int64_t)a.batch * INDEXER_HEADS, entries = (int64_t)a.batch * a.width;
    char *const x = (char *)call->workspace, *const y = x + buffer * 2, *const q = y + buffer;
    char *const library = q + heads * (INDEXER_D * 4);
    CHAIN_STEP(chain_gather(call, a, y));
    CHAIN_STEP(chain_cast_by(indexer_cast, call, {y, INDEXER_D * 2}, x, entries));
    CHAIN_STEP(chain_cast_by(indexer_cast, call, {(const char *)a.t[INDEXER_Q].p, a.t[INDEXER_Q].stride}, q, heads));
    CHAIN_STEP(chain_score(call, a, q, INDEXER_D * 4, x, y, library));
    return chain_mask(call, a);
}

KERNEL = {
    FOR_OP(indexer),
    .note = "the framework's chain at full width: gather, cast, fp32 product, relu, multiply, sum, mask; 3,340 bytes an entry",
    .engine = CUDA,
    .promises = CLEAN,
    .growth = {{"max_ctx", 1}},
    .workspace = workspace,
    .open = chain_open<CUDA_R_32F>,
    .close = chain_close,
    .launch = launch,
    .describe = chain_describe,
};

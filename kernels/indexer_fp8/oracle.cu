/* indexer_fp8/oracle: the op as written, in double precision. A block a (request, page) of the whole width, 16 heads of one entry a
 * thread; logits is an array of double. Reads live pages once and q once a page.
 * Limit: fp64 arithmetic and its reads of shared memory, one for each product; meant for full-rate fp64.
 */
#include "indexer/oracle.cuh"
#include "attn_fp8/fp8.cuh"
#include "indexer_fp8.h"

struct oracle_fp8 {
    static __device__ __forceinline__ double e4m3(const char *row, int32_t d) {
        return half_lo(fp8_half2(__ldg((const uint8_t *)row + d)));
    }
    static __device__ __forceinline__ const char *page(const indexer_args &a, int32_t slot) {
        return (const char *)a.t[INDEXER_KEYS].p + (int64_t)slot * INDEXER_FP8_PAGE_BYTES;
    }
    static __device__ __forceinline__ double query(const indexer_args &a, int64_t row, int32_t d) {
        return e4m3(indexer_row<INDEXER_Q>(a, row), d);
    }
    static __device__ __forceinline__ double key(const indexer_args &a, int32_t slot, int32_t entry, int32_t d) {
        return e4m3(page(a, slot) + entry * INDEXER_D, d);
    }
    static __device__ __forceinline__ double scale(const indexer_args &a, int32_t slot, int32_t entry) {
        return __ldg((const float *)(page(a, slot) + INDEXER_FP8_SCALES) + entry);
    }
};

static __global__ void __launch_bounds__(ORACLE_THREADS, 2) indexer_fp8_oracle(const __grid_constant__ indexer_args a) {
    __shared__ oracle_shared sh;
    oracle_page<oracle_fp8>(a, sh);
}

static int launch(const struct call *call) {
    const indexer_args a = indexer_args_of(call);
    const int64_t blocks = (int64_t)a.batch * (a.width / INDEXER_PAGE);
    indexer_fp8_oracle<<<(unsigned)blocks, ORACLE_THREADS, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(indexer_fp8),
    .note = "naive, in double precision: the reference for large problems",
    .engine = CUDA,
    .promises = ORACLE,
    .launch = launch,
};

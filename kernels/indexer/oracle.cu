/* indexer/oracle: the op as written, in double precision. A block a (request, page) of the whole width, 16 heads of one entry a
 * thread; logits is an array of double. Reads live pages once and q once a page.
 * Limit: fp64 arithmetic and its reads of shared memory, one for each product; meant for full-rate fp64.
 */
#include "oracle.cuh"

struct oracle_bf16 {
    static __device__ __forceinline__ double bf16(const char *row, int32_t d) {
        return bf16_lo(__ldg((const uint16_t *)row + d));
    }
    static __device__ __forceinline__ double query(const indexer_args &a, int64_t row, int32_t d) {
        return bf16(indexer_row<INDEXER_Q>(a, row), d);
    }
    static __device__ __forceinline__ double key(const indexer_args &a, int32_t slot, int32_t entry, int32_t d) {
        return bf16(indexer_row<INDEXER_KEYS>(a, (int64_t)slot * INDEXER_PAGE + entry), d);
    }
    static __device__ __forceinline__ double scale(const indexer_args &, int32_t, int32_t) {
        return 1;
    }
};

static __global__ void __launch_bounds__(ORACLE_THREADS, 2) indexer_oracle(const __grid_constant__ indexer_args a) {
    __shared__ oracle_shared sh;
    oracle_page<oracle_bf16>(a, sh);
}

static int launch(const struct call *call) {
    const indexer_args a = indexer_args_of(call);
    const int64_t blocks = (int64_t)a.batch * (a.width / INDEXER_PAGE);
    indexer_oracle<<<(unsigned)blocks, ORACLE_THREADS, 0, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(indexer),
    .note = "naive, in double precision: the reference for large problems",
    .engine = CUDA,
    .promises = ORACLE,
    .launch = launch,
};

/* indexer_gemm/read: the loads of the bf16 twins alone, each byte once. A thread takes four 16-byte pieces of keys, a block apart.
 * Moves keys, queries and weights to registers; one word a warp goes to logits, so that nothing is dead.
 * Limit: the memory's read rate.
 */
#include "dense.cuh"

static constexpr int THREADS = 256, EACH = 4;

/* A request a row of blocks; the first of them takes its queries and weights too. */
static __global__ void __launch_bounds__(THREADS) indexer_gemm_read(const __grid_constant__ dense_args a, int32_t pieces) {
    const int64_t b = blockIdx.y;
    const int32_t first = (int32_t)(blockIdx.x * THREADS * EACH + threadIdx.x);
    const uint4 *keys = (const uint4 *)dense_request(a.k, b), *queries = (const uint4 *)dense_request(a.q, b);
    uint4 v[EACH] = {};
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (first + i * THREADS < pieces)
            v[i] = load16_once(keys + first + i * THREADS);
    uint32_t sum = 0;
    if (blockIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < HEADS * D / 8 / THREADS; i++) {
            const uint4 q = load16_once(queries + i * THREADS + threadIdx.x);
            sum ^= q.x ^ q.y ^ q.z ^ q.w;
        }
        if (threadIdx.x < HEADS)
            sum ^= __ldg((const uint32_t *)dense_request(a.w, b) + threadIdx.x);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
    sum = __reduce_xor_sync(ALL_LANES, sum);
    if (lane_id() == 0)
        ((uint32_t *)dense_logits(a, b))[(blockIdx.x * (THREADS / WARP) + warp_id()) % (uint32_t)a.entries] = sum;
}

static int launch(const struct call *call) {
    const dense_args a = dense_args_of(call, true);
    const int32_t pieces = a.entries * (D / 8), per_block = THREADS * EACH;
    indexer_gemm_read<<<dim3((unsigned)((pieces + per_block - 1) / per_block), (unsigned)a.batch), THREADS, 0, call->stream>>>(
        a, pieces);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(indexer_gemm),
    .note = "the loads of the bf16 keys alone: what memory allows",
    .engine = CUDA,
    .reads = INDEXER_GEMM_READS_BF16,
    .promises = PROBE,
    .launch = launch,
};

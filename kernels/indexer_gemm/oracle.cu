/* indexer_gemm/oracle: the op as written, in double precision, from the bf16 twins. A thread takes an entry and four heads at a
 * time; keys of a block stay in shared memory, queries pass through it in groups of 16 heads. logits is an array of double.
 * Limit: the rate of double multiply-adds; meant for full-rate fp64.
 */
#include "dense.cuh"

static constexpr int THREADS = 64, GROUP = 16, AT_ONCE = 4;
static constexpr int K_WORDS = D / 2 + 1;  /* odd: rows of neighbouring threads begin in neighbouring banks */

static __global__ void __launch_bounds__(THREADS) indexer_gemm_oracle(const __grid_constant__ dense_args a, int32_t tiles) {
    __shared__ uint32_t k[THREADS * K_WORDS];
    __shared__ double q[GROUP][D];
    const int64_t b = blockIdx.x / tiles;
    const int32_t first = (int32_t)(blockIdx.x % tiles) * THREADS, mine = (int32_t)threadIdx.x;
    const int32_t n = min(THREADS, a.entries - first);
    const uint32_t *keys = (const uint32_t *)dense_request(a.k, b) + (int64_t)first * (D / 2);
    for (int i = mine; i < n * (D / 2); i += THREADS)
        k[i / (D / 2) * K_WORDS + i % (D / 2)] = keys[i];

    double sum = 0;
    for (int group = 0; group < HEADS; group += GROUP) {
        __syncthreads();
        const uint32_t *from = (const uint32_t *)dense_request(a.q, b) + group * (D / 2);
        for (int i = mine; i < GROUP * D / 2; i += THREADS) {
            q[i / (D / 2)][i % (D / 2) * 2] = bf16_lo(from[i]);
            q[i / (D / 2)][i % (D / 2) * 2 + 1] = bf16_hi(from[i]);
        }
        __syncthreads();
        for (int h = 0; mine < n && h < GROUP; h += AT_ONCE) {
            double dot[AT_ONCE] = {};
            for (int d = 0; d < D; d += 2) {
                const uint32_t word = k[mine * K_WORDS + d / 2];
                const double lo = bf16_lo(word), hi = bf16_hi(word);
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++)
                    dot[j] += q[h + j][d] * lo + q[h + j][d + 1] * hi;
            }
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                sum += ((const float *)dense_request(a.w, b))[group + h + j] * fmax(dot[j], 0.0);
        }
    }
    if (mine < n)
        ((double *)dense_logits(a, b))[first + mine] = sum;
}

static int launch(const struct call *call) {
    const dense_args a = dense_args_of(call, true);
    const int32_t tiles = dense_tiles(a.entries, THREADS);
    indexer_gemm_oracle<<<(unsigned)(a.batch * tiles), THREADS, 0, call->stream>>>(a, tiles);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(indexer_gemm),
    .note = "naive, in double precision: the reference for large problems",
    .engine = CUDA,
    .promises = ORACLE,
    .launch = launch,
};

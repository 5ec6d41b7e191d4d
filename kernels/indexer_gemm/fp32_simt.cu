/* indexer_gemm/fp32_simt: a matrix product on CUDA cores: 128 keys x 64 heads a block, 8 x 8 sums a thread, 16-byte loads; relu,
 * weights and the sum over heads are fused behind it, in registers. Keys pass through two slices of 32 dims in shared memory, by
 * asynchronous copies; the queries of a request stay there for all its tiles. Limit: the rate of fp32 multiply-adds.
 */
#include "dense.cuh"

static constexpr int THREADS = 128, TILE = 128, SLICE = 32, SLICES = D / SLICE, STAGES = 2;
/* Blocks an SM where 228 KB of shared memory allow them; elsewhere one fits, which may have more registers. */
static constexpr int BLOCKS_PER_SM = 3;
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ != 900 && __CUDA_ARCH__ != 1000
static constexpr int BLOCKS_PROMISED = 1;
#else
static constexpr int BLOCKS_PROMISED = BLOCKS_PER_SM;
#endif
static constexpr int KEYS = 8, OWN = 8;                     /* keys and heads of a thread */
static constexpr int KEY_STEP = TILE / KEYS, HEAD_STEP = HEADS / OWN;
/* Rows are 16 bytes longer than a power of two: eight of them begin in different banks. */
static constexpr int Q_ROW = (D + 4) * 4, K_ROW = (SLICE + 4) * 4;

struct tiles_shared {
    char q[HEADS * Q_ROW];
    char k[STAGES][TILE * K_ROW];
};

static __device__ __forceinline__ float4 load_row(uint32_t shared) {
    const uint4 v = load16_shared(shared);
    return make_float4(__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z), __uint_as_float(v.w));
}

/* 32 dims of 128 keys; keys past the end of the request are zeros that are not read. */
static __device__ __forceinline__ void copy_slice(const dense_args &a, const dense_at &at, int slice, uint32_t to) {
    const int row = (int)threadIdx.x / 8, piece = (int)threadIdx.x % 8;
    const int32_t key = at.tile * TILE + row;
    const char *from = dense_request(a.k, at.b) + ((int64_t)key * D + slice * SLICE) * 4 + piece * 16;
    const uint32_t mine = to + row * K_ROW + piece * 16;
#pragma unroll
    for (int i = 0; i < TILE; i += THREADS / 8)
        copy16_async(mine + i * K_ROW, from + (int64_t)i * D * 4, key + i < a.entries);
}

/* All queries of a request, between barriers. */
static __device__ __forceinline__ void copy_queries(const dense_args &a, int64_t b, uint32_t to) {
    const int row = (int)threadIdx.x / 32, piece = (int)threadIdx.x % 32;
    const char *from = dense_request(a.q, b) + row * D * 4 + piece * 16;
#pragma unroll
    for (int i = 0; i < HEADS; i += THREADS / 32)
        copy16_async(to + (row + i) * Q_ROW + piece * 16, from + i * D * 4, true);
}

/* sum[i][j] += key i . head j over one slice: keys KEY_STEP rows apart, heads HEAD_STEP rows. */
static __device__ __forceinline__ void multiply(float (&sum)[KEYS][OWN], uint32_t k, uint32_t q) {
#pragma unroll 2
    for (int d = 0; d < SLICE; d += 4) {
        float4 y[OWN];
#pragma unroll
        for (int j = 0; j < OWN; j++)
            y[j] = load_row(q + j * HEAD_STEP * Q_ROW + d * 4);
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            const float4 x = load_row(k + i * KEY_STEP * K_ROW + d * 4);
#pragma unroll
            for (int j = 0; j < OWN; j++) {
                sum[i][j] = fmaf(x.x, y[j].x, sum[i][j]);
                sum[i][j] = fmaf(x.y, y[j].y, sum[i][j]);
                sum[i][j] = fmaf(x.z, y[j].z, sum[i][j]);
                sum[i][j] = fmaf(x.w, y[j].w, sum[i][j]);
            }
        }
    }
}

/* Eight neighbouring lanes hold parts of 8 keys; lane l of them gets the whole of key l. Half of the keys move at each step. */
static __device__ __forceinline__ float sum_lanes(float (&part)[KEYS]) {
#pragma unroll
    for (int step = 4; step > 0; step /= 2) {
        const bool upper = threadIdx.x & step;
#pragma unroll
        for (int i = 0; i < step; i++) {
            const float give = upper ? part[i] : part[i + step], keep = upper ? part[i + step] : part[i];
            part[i] = keep + __shfl_xor_sync(ALL_LANES, give, step);
        }
    }
    return part[0];
}

static __global__ void __launch_bounds__(THREADS, BLOCKS_PROMISED)
    indexer_gemm_simt(const __grid_constant__ dense_args a, int32_t tiles) {
    extern __shared__ __align__(128) char shared_bytes[];
    tiles_shared &sh = *(tiles_shared *)shared_bytes;
    const int head = (int)threadIdx.x % HEAD_STEP, key = (int)threadIdx.x / HEAD_STEP;
    const uint32_t q = shared_address(sh.q), k = shared_address(sh.k[0]), stage_bytes = TILE * K_ROW;
    const int64_t all = (int64_t)a.batch * tiles, first = dense_piece(all, blockIdx.x);

    dense_at at;
    at.start(first, dense_piece(all, blockIdx.x + 1), tiles);
    copy_slice(a, at, 0, k);
    int32_t loaded = -1;
    float w[OWN];
    for (; at.left > 0;) {
        dense_at next = at;
        next.step(1, tiles);
        if (at.b != loaded) {
            copy_queries(a, at.b, q);  /* free: see the barrier at the end */
#pragma unroll
            for (int j = 0; j < OWN; j++)
                w[j] = __ldg((const float *)dense_request(a.w, at.b) + head + j * HEAD_STEP);
            loaded = at.b;
        }
        float sum[KEYS][OWN] = {};
#pragma unroll 1
        for (int s = 0; s < SLICES; s++) {
            copy_wait_all();
            __syncthreads();  /* this slice is there for all; all have left the one that the next copies replace */
            const uint32_t free = k + ((s + 1) % STAGES) * stage_bytes;
            if (s + 1 < SLICES)
                copy_slice(a, at, s + 1, free);
            else if (next.left > 0)
                copy_slice(a, next, 0, free);
            multiply(sum, k + s % STAGES * stage_bytes + key * K_ROW, q + head * Q_ROW + s * SLICE * 4);
        }
        float part[KEYS];
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            part[i] = 0;
#pragma unroll
            for (int j = 0; j < OWN; j++)
                part[i] = fmaf(w[j], fmaxf(sum[i][j], 0), part[i]);
        }
        const float logit = sum_lanes(part);
        const int32_t entry = at.tile * TILE + key + head * KEY_STEP;
        if (entry < a.entries)
            dense_logits(a, at.b)[entry] = logit;
        if (next.left > 0 && next.b != at.b)
            __syncthreads();  /* all have left the queries that the next tile replaces */
        at = next;
    }
}

static const char *unfit(const struct problem *, const struct device *d) {
    return (int64_t)sizeof(tiles_shared) > d->smem_bytes ? "needs 71 KB of shared memory a block" : NULL;
}

static int open_(const struct problem *, const struct device *, void **state) {
    *state = NULL;
    return cudaFuncSetAttribute((const void *)indexer_gemm_simt, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)sizeof(tiles_shared));
}

static int launch(const struct call *call) {
    const dense_args a = dense_args_of(call, false);
    const int32_t tiles = dense_tiles(a.entries, TILE);
    const int64_t all = (int64_t)a.batch * tiles, most = (int64_t)call->device->sm_count * BLOCKS_PER_SM;
    indexer_gemm_simt<<<(unsigned)(all < most ? all : most), THREADS, sizeof(tiles_shared), call->stream>>>(a, tiles);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(indexer_gemm),
    .note = "fp32 on CUDA cores, 8x8 sums a thread, relu and sum over heads fused; bound by fp32 multiply-adds",
    .engine = CUDA,
    .reads = INDEXER_GEMM_READS_F32,
    .unfit = unfit,
    .open = open_,
    .launch = launch,
};

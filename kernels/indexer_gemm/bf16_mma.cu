/* indexer_gemm/bf16_mma: product, relu, weights and the sum over heads in registers, by mma.sync; nothing but logits is written.
 * A warp keeps the queries of all 64 heads in registers and streams tiles of 16 keys through a ring of its own in shared memory, by
 * asynchronous copies, five tiles ahead; no barrier but its own. Moves each key once. Limit: the memory's read rate.
 */
#include "dense.cuh"

static constexpr int WARPS = 8, TILE = 16, ROW = D * 2, TILE_BYTES = TILE * ROW;
static constexpr int NT = HEADS / 8;    /* n-tiles of 8 heads */
static constexpr int CHUNKS = D / 32;   /* of 32 elements of d, two k-steps */

/* Row and 16-byte piece of a tile in shared memory: odd rows turned by 64 bytes, so that the 2 rows x 4 pieces that a quarter of
 * a warp loads lie in different banks. */
static __host__ __device__ __forceinline__ uint32_t place(int row, int piece) {
    return (uint32_t)(row * ROW + ((piece ^ (row & 1) << 2) << 4));
}

/* B fragments of all heads. The order of d within a chunk of 32 is free as long as q and k agree: thread t of a quad takes the 8
 * elements at 8 t, one 16-byte load, words 0 and 1 for the first k-step and 2 and 3 for the second. */
struct queries {
    uint4 q[NT][CHUNKS];
    float w[NT][2];      /* of heads 8 nt + 2 t and the next, where the sums of a thread stand */

    __device__ __forceinline__ void load(const dense_args &a, int64_t b) {
        const int g = lane_id() / 4, t = lane_id() % 4;
        const char *from = dense_request(a.q, b) + g * ROW + t * 16;
        const float *weight = (const float *)dense_request(a.w, b) + t * 2;
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
                q[nt][c] = __ldg((const uint4 *)(from + nt * 8 * ROW + c * 64));
            w[nt][0] = __ldg(weight + nt * 8);
            w[nt][1] = __ldg(weight + nt * 8 + 1);
        }
    }
};

/* 16 keys of a request; those past its end are zeros that are not read. A warp's 512 bytes an instruction lie side by side. */
static __device__ __forceinline__ void copy_tile(const dense_args &a, const dense_at &at, uint32_t to) {
    if (at.left > 0) {
        const int lane = lane_id();
        const int32_t key = at.tile * TILE + lane / 16;
        const char *from = dense_request(a.k, at.b) + (int64_t)key * ROW + lane % 16 * 16;
#pragma unroll
        for (int j = 0; j < TILE / 2; j++)
            copy16_async(to + j * 2 * ROW, from + j * 2 * ROW, key + j * 2 < a.entries);
    }
    copy_commit();
}

/* Sums of rows g and g + 8 over the heads: thread t = 0 of the quad gets the first, t = 1 the second. */
static __device__ __forceinline__ float sum_heads(const float (&s)[NT][4], const float (&w)[NT][2]) {
    float lo = 0, hi = 0;
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            lo = fmaf(w[nt][e], fmaxf(s[nt][e], 0), lo);
            hi = fmaf(w[nt][e], fmaxf(s[nt][2 + e], 0), hi);
        }
    const bool odd = threadIdx.x & 1;
    const float mine = (odd ? hi : lo) + __shfl_xor_sync(ALL_LANES, odd ? lo : hi, 1);
    return mine + __shfl_xor_sync(ALL_LANES, mine, 2);
}

template <int STAGES>
static __global__ void __launch_bounds__(WARPS *WARP, 1) indexer_gemm_mma(const __grid_constant__ dense_args a, int32_t tiles) {
    extern __shared__ __align__(128) char ring[];
    const int lane = lane_id(), g = lane / 4, t = lane % 4;
    const uint32_t base = shared_address(ring) + warp_id() * STAGES * TILE_BYTES;
    const uint32_t put = base + place(lane / 16, lane % 16);          /* rows of a lane are 2 apart: the same turn */
    const uint32_t take = base + place(g, t);                         /* ^ 64 for odd chunks; 8 rows further: the same turn */
    const int64_t all = (int64_t)a.batch * tiles, first = dense_piece(all, blockIdx.x) + warp_id(),
        end = dense_piece(all, blockIdx.x + 1);

    dense_at at, ahead;
    at.start(first, end, tiles);
    ahead = at;
    for (int s = 0; s < STAGES - 1; s++) {
        copy_tile(a, ahead, put + s * TILE_BYTES);
        ahead.step(WARPS, tiles);
    }

    queries q;
    int32_t loaded = -1;
    for (int stage = 0; at.left > 0; at.step(WARPS, tiles)) {
        if (at.b != loaded) {
            q.load(a, at.b);
            loaded = at.b;
        }
        copy_wait<STAGES - 2>();
        __syncwarp();  /* the tile is there for all lanes, and all have left the one before it, which makes room */
        copy_tile(a, ahead, put + (stage == 0 ? STAGES - 1 : stage - 1) * TILE_BYTES);
        ahead.step(WARPS, tiles);

        float s[NT][4] = {};
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const uint32_t from = ((c & 1 ? take ^ 64 : take) + c / 2 * 128) + stage * TILE_BYTES;
            const uint4 lo = load16_shared(from), hi = load16_shared(from + 8 * ROW);
            const uint32_t k0[4] = {lo.x, hi.x, lo.y, hi.y}, k1[4] = {lo.z, hi.z, lo.w, hi.w};
#pragma unroll
            for (int nt = 0; nt < NT; nt++)
                mma_bf16(s[nt], k0, q.q[nt][c].x, q.q[nt][c].y);
#pragma unroll
            for (int nt = 0; nt < NT; nt++)
                mma_bf16(s[nt], k1, q.q[nt][c].z, q.q[nt][c].w);
        }
        const float logit = sum_heads(s, q.w);
        const int32_t key = at.tile * TILE + g + t * 8;
        if (t < 2 && key < a.entries)
            dense_logits(a, at.b)[key] = logit;
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    }
}

/* Five tiles ahead where 192 KB of shared memory are to be had, else two (96 KB: sm_86, sm_89, sm_120). */
struct choice {
    const void *kernel;
    int64_t     shared;
};

static choice choose(const struct device *d) {
    const int64_t ring = WARPS * TILE_BYTES;
    if (d->smem_bytes >= 6 * ring)
        return {(const void *)indexer_gemm_mma<6>, 6 * ring};
    return {(const void *)indexer_gemm_mma<3>, 3 * ring};
}

static const char *unfit(const struct problem *, const struct device *d) {
    return choose(d).shared > d->smem_bytes ? "needs 96 KB of shared memory a block" : NULL;
}

static int open_(const struct problem *, const struct device *d, void **state) {
    const choice c = choose(d);
    *state = NULL;
    return cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.shared);
}

static int launch(const struct call *call) {
    const choice c = choose(call->device);
    dense_args a = dense_args_of(call, true);
    int32_t tiles = dense_tiles(a.entries, TILE);
    const int64_t all = (int64_t)a.batch * tiles;
    const unsigned blocks = (unsigned)(all < call->device->sm_count ? all : call->device->sm_count);
    void *args[] = {&a, &tiles};
    return cudaLaunchKernel(c.kernel, dim3(blocks), dim3(WARPS * WARP), args, (size_t)c.shared, call->stream);
}

KERNEL = {
    FOR_OP(indexer_gemm),
    .note = "fused: keys stream past queries held in registers, only logits are written; bound by reading bf16 keys",
    .engine = CUDA,
    .reads = INDEXER_GEMM_READS_BF16,
    .unfit = unfit,
    .open = open_,
    .launch = launch,
};

/* hc_pre/bf16_splitk: bf16 state as it stands, no casts: mma.sync over pieces of K, the square sum from the same registers.
 * A block takes 16 tokens and one of up to 64 pieces of K; its warps' sums meet in shared memory, the pieces' sums in L2, where the
 * block that comes last adds them up, in a fixed order. Moves x once and w once for every 16 tokens, all but the first from L2.
 * Limit: three latencies in a row: the loads, the counter, the partial sums.
 */
#include "hc.cuh"

static constexpr int WARPS = 8, THREADS = WARPS * WARP, TILE = 16, CHUNK = 32;  /* tokens; elements of K a step of a warp */
static constexpr int NT = N / 8;                     /* n-tiles of 8 outputs */
static constexpr int SUMS = 28, QUADS = SUMS / 4;    /* of a token: 24 outputs, the square sum, and 3 of padding */
static constexpr int MOST_SPLITS = K / (WARPS * CHUNK);

/* Sums of a piece for one tile; in the workspace [tiles][splits]. */
struct partial {
    float4 of[TILE][QUADS];
};

/* The fragments of one chunk. The order of k within it is free as long as x and w agree: thread t of a quad takes the 8 elements at
 * 8 t, one 16-byte load, words 0 and 1 for the first k-step and 2 and 3 for the second. */
struct chunk {
    uint4 x[2], w[NT];

    __device__ __forceinline__ void load(const hc_args &a, int32_t first, int32_t k) {
        const int g = lane_id() / 4, at = k * 2 + lane_id() % 4 * 16;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int32_t token = first + half * 8 + g;
            x[half] = token < a.batch ? load16_once(hc_row(a.x, token) + at) : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int nt = 0; nt < NT; nt++)
            w[nt] = load16_once(hc_row(a.w, nt * 8 + g) + at);
    }

    __device__ __forceinline__ void multiply(float (&mix)[NT][4], float (&square)[2]) const {
        const uint32_t k0[4] = {x[0].x, x[1].x, x[0].y, x[1].y}, k1[4] = {x[0].z, x[1].z, x[0].w, x[1].w};
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
            mma_bf16(mix[nt], k0, w[nt].x, w[nt].y);
            mma_bf16(mix[nt], k1, w[nt].z, w[nt].w);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const uint32_t words[4] = {x[half].x, x[half].y, x[half].z, x[half].w};
#pragma unroll
            for (int i = 0; i < 4; i++)
                square[half] = fmaf(bf16_hi(words[i]), bf16_hi(words[i]), fmaf(bf16_lo(words[i]), bf16_lo(words[i]), square[half]));
        }
    }
};

/* A warp's sums to shared memory: tokens g and g + 8, outputs 8 nt + 2 t and the next; a token's square sum is in four lanes. */
static __device__ __forceinline__ void give(float (*sum)[SUMS], const float (&mix)[NT][4], float (&square)[2]) {
    const int g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float *row = sum[half * 8 + g];
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
            row[nt * 8 + t * 2] = mix[nt][half * 2];
            row[nt * 8 + t * 2 + 1] = mix[nt][half * 2 + 1];
        }
        square[half] += __shfl_xor_sync(ALL_LANES, square[half], 1);
        square[half] += __shfl_xor_sync(ALL_LANES, square[half], 2);
        row[N + t] = t == 0 ? square[half] : 0;
    }
}

static __device__ __forceinline__ float4 add(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

static constexpr int PARTS = 8, LOADS = 8;  /* of the combine: threads that share an output at most; loads in flight */

/* By the last block of a tile: the pieces' sums of its tokens to the outputs. `parts` threads share four outputs. */
static __device__ __forceinline__ void combine(const hc_args &a, const partial *part, int32_t splits, int32_t first,
                                               float4 *shared) {
    const int32_t tokens = min(TILE, a.batch - first), quads = tokens * QUADS, parts = min(PARTS, THREADS / quads);
    const int32_t mine = (int32_t)threadIdx.x, quad = mine % quads, share = mine / quads;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int32_t s = share; share < parts && s < splits; s += parts * LOADS) {
        float4 v[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            v[i] = s + i * parts < splits ? __ldcg(part[s + i * parts].of[0] + quad) : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            sum = add(sum, v[i]);
    }
    shared[mine] = sum;
    __syncthreads();
    if (mine >= quads)
        return;
    for (int32_t i = 1; i < parts; i++)
        sum = add(sum, shared[i * quads + mine]);
    const int32_t token = first + quad / QUADS, at = quad % QUADS;
    if (at < QUADS - 1)
        *(float4 *)(hc_mix(a, token) + at * 4) = sum;
    else
        *hc_sqsum(a, token) = sum.x;
}

/* AT_ONCE: chunks whose loads are in flight together. */
template <int AT_ONCE>
static __global__ void __launch_bounds__(THREADS)
    hc_pre_splitk(const __grid_constant__ hc_args a, partial *parts, uint32_t *arrived) {
    __shared__ __align__(16) float sums[WARPS][TILE][SUMS];
    __shared__ bool last;
    const int32_t splits = (int32_t)gridDim.x, split = (int32_t)blockIdx.x, tile = (int32_t)blockIdx.y, first = tile * TILE;
    const int32_t each = K / splits, begin = split * each;

    float mix[NT][4] = {}, square[2] = {};
    for (int32_t k = warp_id() * CHUNK; k < each; k += AT_ONCE * WARPS * CHUNK) {
        chunk c[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            c[i].load(a, first, begin + k + i * WARPS * CHUNK);
        __syncwarp();  /* keeps the compiler from waiting for one chunk before it asks for the next */
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            c[i].multiply(mix, square);
    }
    give(sums[warp_id()], mix, square);
    __syncthreads();
    partial *part = parts + (int64_t)tile * splits;
    if (threadIdx.x < TILE * QUADS) {
        const float4 *from = (const float4 *)sums[0][0] + threadIdx.x;
        float4 all = from[0];
#pragma unroll
        for (int w = 1; w < WARPS; w++)
            all = add(all, from[w * TILE * QUADS]);
        __stcg(part[split].of[0] + threadIdx.x, all);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(&arrived[tile], 1u) == (uint32_t)splits - 1;
        if (last)
            arrived[tile] = 0;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    combine(a, part, splits, first, (float4 *)sums[0][0]);
}

static int32_t tiles_of(const struct problem *p) {
    return (int32_t)((p->dim[HC_PRE_BATCH] + TILE - 1) / TILE);
}

/* A power of two, so that all pieces are whole: about as many blocks as there are SMs, and 64 at most, since the last block must
 * read the sums of them all. */
static int32_t splits_of(const struct problem *p, const struct device *d, const int32_t *tune) {
    const int32_t want = tune[0] ? tune[0] : d->sm_count / tiles_of(p);
    int32_t splits = 1;
    while (splits * 2 <= want && splits < MOST_SPLITS)
        splits *= 2;
    return splits;
}

static size_t workspace(const struct problem *p, const struct device *d, const int32_t *tune) {
    return (size_t)tiles_of(p) * splits_of(p, d, tune) * sizeof(partial);
}

static size_t zeroed(const struct problem *p, const struct device *, const int32_t *) {
    return (size_t)tiles_of(p) * sizeof(uint32_t);
}

static int launch(const struct call *call) {
    const hc_args a = hc_args_of(call, true);
    const int32_t splits = splits_of(call->problem, call->device, call->tune);
    const dim3 grid((unsigned)splits, (unsigned)tiles_of(call->problem));
    partial *parts = (partial *)call->workspace;
    uint32_t *arrived = (uint32_t *)call->zeroed;
    if (splits == MOST_SPLITS)
        hc_pre_splitk<1><<<grid, THREADS, 0, call->stream>>>(a, parts, arrived);
    else if (splits == MOST_SPLITS / 2)
        hc_pre_splitk<2><<<grid, THREADS, 0, call->stream>>>(a, parts, arrived);
    else
        hc_pre_splitk<4><<<grid, THREADS, 0, call->stream>>>(a, parts, arrived);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(hc_pre),
    .note = "bf16 state as it stands, by mma.sync over pieces of K, square sum in the same pass; bound by three latencies",
    .engine = CUDA,
    .reads = HC_PRE_READS_BF16,
    .tunable = {{"splits", {0}, 0, MOST_SPLITS}},   /* 0: by batch and SMs; rounded down to a power of two */
    .workspace = workspace,
    .zeroed = zeroed,
    .launch = launch,
};

/* Warpgroup products (wgmma), which read shared memory and write registers by themselves: tile * tile^T, 64 bf16 a row. */
#ifndef KBENCH_WAITS_PRODUCT_CUH
#define KBENCH_WAITS_PRODUCT_CUH

#include "waits.cuh"

/* How often a tile is multiplied, so long that a copy can arrive in the midst of it. */
static constexpr int PRODUCTS = 32;

template <int TIMES> static __device__ __forceinline__ void product_of(float (&c)[32], uint32_t tile, bool first) {
    wgmma_begin();
#pragma unroll
    for (int n = 0; n < TIMES * 4; n++)
        wgmma_bf16(c, wgmma_rows(tile) + n % 4 * 2, wgmma_rows(tile) + n % 4 * 2, n > 0 || !first);
    wgmma_commit();
}

static __device__ __forceinline__ void product_give(const wait_data &d, const float (&c)[32]) {
#pragma unroll
    for (int n = 0; n < 32; n++)
        d.out[threadIdx.x * 32 + n] = __float_as_uint(c[n]);
}

/* Tiles that threads store to shared memory: the products see them only past a fence between the two ways to it. */
template <int FORM> static __global__ void __launch_bounds__(READERS) wait_publish(wait_data d) {
    __shared__ __align__(1024) uint4 tiles[2][TILE_PIECES];
    float c[32];
    for (int i = 0; i < TILES; i++) {
        const uint32_t tile = shared_address(tiles[i % 2]);
        for (int at = (int)threadIdx.x; at < TILE_PIECES; at += READERS)
            tiles[i % 2][at ^ at / 8 % 8] = d.in[i * TILE_PIECES + at];
        if (FORM != EARLY)
            wgmma_publish();
        __syncthreads();
        product_of<1>(c, tile, i == 0);
        wgmma_wait(c);
    }
    product_give(d, c);
}

/* Sums in registers, read before their products are done. */
template <int FORM> static __global__ void __launch_bounds__(READERS) wait_sums(wait_data d) {
    __shared__ __align__(1024) uint4 tile[TILE_PIECES];
    float c[32];
    for (int at = (int)threadIdx.x; at < TILE_PIECES; at += READERS)
        tile[at ^ at / 8 % 8] = d.in[at];
    wgmma_publish();
    __syncthreads();
    product_of<PRODUCTS>(c, shared_address(tile), true);
    if (FORM == EARLY)
        product_give(d, c);
    wgmma_wait(c);
    if (FORM != EARLY)
        product_give(d, c);
}

/* A ring of a tensor map's boxes: products begun before the tile is there, or a stage given back before they are done. */
template <int FORM>
static __global__ void __launch_bounds__(READERS + WARP) wait_products(wait_data d, const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) uint4 tiles[STAGES][TILE_PIECES];
    __shared__ uint64_t              barriers[2][STAGES];
    const uint32_t ring = shared_address(tiles), full = shared_address(barriers[0]), empty = shared_address(barriers[1]);
    if (threadIdx.x < STAGES) {
        barrier_init(full + threadIdx.x * 8, 1);
        barrier_init(empty + threadIdx.x * 8, READERS / WARP);
        barrier_init_done();
    }
    __syncthreads();
    if (threadIdx.x >= READERS) {
        for (int i = 0; i < TILES && lane_id() == 0; i++) {
            if (i >= STAGES)
                barrier_wait(empty + i % STAGES * 8, (i / STAGES - 1) & 1);
            barrier_arrive_expect(full + i % STAGES * 8, TILE_BYTES);
            bulk_rows(ring + i % STAGES * TILE_BYTES, &map, 0, i * TILE_ROWS, full + i % STAGES * 8);
        }
        return;
    }
    float c[32];
    for (int i = 0; i < TILES; i++) {
        const uint32_t stage_full = full + i % STAGES * 8, stage_empty = empty + i % STAGES * 8;
        if (FORM != EARLY)
            barrier_wait(stage_full, i / STAGES & 1);
        if (FORM == REUSED && lane_id() == 0)
            barrier_arrive(stage_empty);
        __syncwarp();
        product_of<PRODUCTS>(c, ring + i % STAGES * TILE_BYTES, i == 0);
        wgmma_wait(c);
        if (FORM == EARLY)
            barrier_wait(stage_full, i / STAGES & 1);
        if (FORM != REUSED && lane_id() == 0)
            barrier_arrive(stage_empty);
        __syncwarp();
    }
    product_give(d, c);
}

#endif

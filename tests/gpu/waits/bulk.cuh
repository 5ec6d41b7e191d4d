/* Rings of tiles that the copy engine fills: lines (cp.async.bulk), and boxes of a tensor map (cp.async.bulk.tensor). */
#ifndef KBENCH_WAITS_BULK_CUH
#define KBENCH_WAITS_BULK_CUH

#include "waits.cuh"

template <bool TENSOR> static __device__ __forceinline__ void bulk_copy(const wait_data &d, const CUtensorMap *map, uint32_t tile,
                                                                        int i, uint32_t full) {
    barrier_arrive_expect(full, TILE_BYTES);
    if (TENSOR)
        bulk_rows(tile, map, 0, i * TILE_ROWS, full);
    else
        bulk_line(tile, d.in + i * TILE_PIECES, TILE_BYTES, full);
}

template <int FORM, bool TENSOR>
static __global__ void __launch_bounds__(READERS + WARP) wait_bulk(wait_data d, const __grid_constant__ CUtensorMap map) {
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
            bulk_copy<TENSOR>(d, &map, ring + i % STAGES * TILE_BYTES, i, full + i % STAGES * 8);
        }
        return;
    }
    wait_read<FORM, TENSOR>(d, ring, full, empty);
}

#endif

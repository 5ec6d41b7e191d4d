/* Rings of tiles, filled by asynchronous copies of 16 bytes (cp.async). */
#ifndef KBENCH_WAITS_RING_CUH
#define KBENCH_WAITS_RING_CUH

#include "waits.cuh"

/* Piece k of those that `threads` threads copy of a tile. */
static __device__ __forceinline__ void ring_copy(const wait_data &d, uint32_t tile, int i, int thread, int threads) {
    for (int at = thread; at < TILE_PIECES; at += threads)
        copy16_async(tile + at * 16, d.in + i * TILE_PIECES + at, true);
}

/* Groups of copies, and the block meets once a tile: after it the tile is there, and the stage before it is free. */
template <int FORM> static __global__ void __launch_bounds__(READERS) wait_ring(wait_data d) {
    __shared__ uint4 tiles[STAGES][TILE_PIECES];
    const uint32_t ring = shared_address(tiles);
    const auto copy = [&](int i) {
        if (i < TILES)
            ring_copy(d, ring + i % STAGES * TILE_BYTES, i, (int)threadIdx.x, READERS);
        copy_commit();
    };
    for (int i = 0; i < STAGES - 1; i++)
        copy(i);
    uint32_t sum = 0;
    for (int i = 0; i < TILES; i++) {
        if (FORM == REUSED)
            copy(i + STAGES - 1);
        if (FORM != EARLY)
            copy_wait<FORM == REUSED ? STAGES - 1 : STAGES - 2>();
        __syncthreads();
        if (FORM != REUSED)
            copy(i + STAGES - 1);
        if (warp_id() == 3 && FORM != EARLY)
            wait_linger();
        sum = wait_take<false>(sum, ring + i % STAGES * TILE_BYTES);
    }
    copy_wait_all();
    d.out[threadIdx.x] = sum;
}

/* A thread reads but what it copied itself, so nobody has to meet. */
template <int FORM> static __global__ void __launch_bounds__(READERS) wait_ring_own(wait_data d) {
    __shared__ uint4 tiles[STAGES][TILE_PIECES];
    const uint32_t ring = shared_address(tiles);
    const auto copy = [&](int i) {
        for (int k = 0; i < TILES && k < PIECES; k++) {
            const int at = wait_piece((int)threadIdx.x, k);
            copy16_async(ring + i % STAGES * TILE_BYTES + at * 16, d.in + i * TILE_PIECES + at, true);
        }
        copy_commit();
    };
    for (int i = 0; i < STAGES - 1; i++)
        copy(i);
    uint32_t sum = 0;
    for (int i = 0; i < TILES; i++) {
        copy(i + STAGES - 1);
        if (FORM != EARLY)
            copy_wait<STAGES - 1>();
        sum = wait_take<false>(sum, ring + i % STAGES * TILE_BYTES);
    }
    copy_wait_all();
    d.out[threadIdx.x] = sum;
}

/* A warp copies, four read; two mbarriers a stage say when it is full and when it is empty again. */
template <int FORM> static __global__ void __launch_bounds__(READERS + WARP) wait_ring_barrier(wait_data d) {
    __shared__ uint4    tiles[STAGES][TILE_PIECES];
    __shared__ uint64_t barriers[2][STAGES];
    const uint32_t ring = shared_address(tiles), full = shared_address(barriers[0]), empty = shared_address(barriers[1]);
    if (threadIdx.x < STAGES) {
        barrier_init(full + threadIdx.x * 8, WARP);
        barrier_init(empty + threadIdx.x * 8, READERS / WARP);
    }
    __syncthreads();
    if (threadIdx.x >= READERS) {
        for (int i = 0; i < TILES; i++) {
            if (i >= STAGES)
                barrier_wait(empty + i % STAGES * 8, (i / STAGES - 1) & 1);
            ring_copy(d, ring + i % STAGES * TILE_BYTES, i, lane_id(), WARP);
            barrier_arrive_copies(full + i % STAGES * 8);
        }
        copy_wait_all();
        return;
    }
    wait_read<FORM, false>(d, ring, full, empty);
}

#endif

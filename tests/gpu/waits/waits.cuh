/* Planted missing waits: for each way in which the kernels here hand data from one to another, a tiny kernel in forms that differ
 * in one wait. Its faults are real: what is read may not be there yet, or may be gone already.
 *
 * A fault is put so that nothing hangs or leaves its memory: a wait that barriers count on comes too late instead of never, a stage
 * is given back too early. Who writes or reads lingers, in all forms alike, so that the fault shows as wrong results where the
 * hardware lets it.
 */
#ifndef KBENCH_WAITS_CUH
#define KBENCH_WAITS_CUH

#include "indexer/hopper.cuh"

enum wait_form {
    RIGHT,
    EARLY,  /* read before it is there */
    REUSED  /* replaced while it is still read */
};

/* A tile is 64 rows of 128 bytes, as the tensor maps of kernels/indexer/hopper.cuh copy them. */
static constexpr int TILES = 8, STAGES = 3, READERS = 128, TILE_ROWS = 64, TILE_PIECES = TILE_ROWS * 8;
static constexpr int TILE_BYTES = TILE_PIECES * 16;
static constexpr int PIECES = TILE_PIECES / READERS, WORDS = READERS * 32;

/* A kernel parameter. in: uint4 [TILES][TILE_PIECES], each 8 small whole numbers as bf16; out: [WORDS], of which a style sets what
 * its expectation speaks of; work: as many, never written before; count: a zero. */
struct wait_data {
    const uint4 *in;
    uint32_t    *out, *work, *count;
};

/* One link of a chain that depends on the order, the same on both sides. */
static __host__ __device__ __forceinline__ uint32_t wait_fold(uint32_t sum, uint32_t x, uint32_t y) {
    return (sum * 31 + x) * 31 + y;
}

/* Which piece of a tile a thread reads as its k-th: one that another warp has copied. */
static __host__ __device__ __forceinline__ int wait_piece(int thread, int k) {
    return (thread + WARP) % READERS + k * READERS;
}

/* Some 10 us. */
static __device__ __forceinline__ void wait_linger(void) {
    for (const long long begin = clock64(); clock64() - begin < 15000;) {}
}

/* Where piece i of a tile lies: in order, or swizzled. */
template <bool SWIZZLED> static __device__ __forceinline__ uint32_t wait_place(uint32_t tile, int i) {
    return tile + (uint32_t)(SWIZZLED ? i ^ i / 8 % 8 : i) * 16;
}

template <bool SWIZZLED> static __device__ __forceinline__ uint32_t wait_take(uint32_t sum, uint32_t tile) {
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        const uint4 v = load16_shared(wait_place<SWIZZLED>(tile, wait_piece((int)threadIdx.x, k)));
        sum = wait_fold(sum, v.x, v.w);
    }
    return sum;
}

/* What warps do that read a ring of tiles with an mbarrier for full and one for empty a stage. */
template <int FORM, bool SWIZZLED>
static __device__ __forceinline__ void wait_read(const wait_data &d, uint32_t ring, uint32_t full, uint32_t empty) {
    uint32_t sum = 0;
    for (int i = 0; i < TILES; i++) {
        const uint32_t tile = ring + i % STAGES * TILE_BYTES;
        if (FORM == EARLY)
            sum = wait_take<SWIZZLED>(sum, tile);
        barrier_wait(full + i % STAGES * 8, i / STAGES & 1);
        if (FORM == REUSED && lane_id() == 0)
            barrier_arrive(empty + i % STAGES * 8);
        if (warp_id() == 3 && FORM != EARLY)
            wait_linger();
        if (FORM != EARLY)
            sum = wait_take<SWIZZLED>(sum, tile);
        __syncwarp();
        if (FORM != REUSED && lane_id() == 0)
            barrier_arrive(empty + i % STAGES * 8);
    }
    d.out[threadIdx.x] = sum;
}

#endif

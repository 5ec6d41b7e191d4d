/* Device memory that the copy engine writes from shared memory, for the kernel that follows. */
#ifndef KBENCH_WAITS_STORED_CUH
#define KBENCH_WAITS_STORED_CUH

#include "waits.cuh"

static constexpr int STORED_TILES = WORDS * 4 / TILE_BYTES;   /* what the workspace has room for */
static constexpr int STORED_STEP = 16 * READERS;   /* words between those that are read: a report each takes initcheck a while */

template <bool TENSOR> static __device__ __forceinline__ void stored_put(const wait_data &d, const CUtensorMap *map, uint32_t tile,
                                                                         int i) {
#if HAS_BULK
    if (TENSOR)
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(0),
                     "r"(i * TILE_ROWS), "r"(tile) : "memory");
    else
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"((uint4 *)d.work + i * TILE_PIECES),
                     "r"(tile), "n"(TILE_BYTES) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

/* One stage of shared memory for all tiles. REUSED: it is filled anew while the copy before may still read it. EARLY: who reads
 * the workspace may begin at once. */
template <int FORM, bool TENSOR>
static __global__ void __launch_bounds__(READERS) wait_stored(wait_data d, const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) uint4 tile[TILE_PIECES];
    const int thread = (int)threadIdx.x;
#if HAS_BULK
    if (FORM == EARLY)
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
    if (FORM == EARLY)
        wait_linger(), wait_linger();
    for (int i = 0; i < STORED_TILES; i++) {
        for (int at = thread; at < TILE_PIECES; at += READERS)
            tile[TENSOR ? at ^ at / 8 % 8 : at] = d.in[i * TILE_PIECES + at];
#if HAS_BULK
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        __syncthreads();
        if (thread == 0) {
            stored_put<TENSOR>(d, &map, shared_address(tile), i);
#if HAS_BULK
            if (FORM != REUSED)
                asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
        }
        __syncthreads();
    }
#if HAS_BULK
    if (thread == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

/* Words of the workspace. */
static __global__ void __launch_bounds__(READERS) wait_load(wait_data d) {
    uint32_t sum = 0;
    for (int i = 0; i < STORED_TILES * TILE_PIECES * 4; i += STORED_STEP)
        sum = wait_fold(sum, __ldcg(d.work + i + threadIdx.x), 0);
    d.out[threadIdx.x] = sum;
}

#endif

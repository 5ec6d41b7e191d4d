/* Words that threads hand to each other through shared memory, of a warp, some warps, a block, a cluster. */
#ifndef KBENCH_WAITS_BLOCK_CUH
#define KBENCH_WAITS_BLOCK_CUH

#include "topk/peers.cuh"
#include "waits.cuh"

static __device__ __forceinline__ uint32_t load4_shared(uint32_t shared) {
    uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared) : "memory");
    return v;
}

/* The word that a thread has to give in a round. */
static __device__ __forceinline__ uint32_t block_word(const wait_data &d, int round, int thread) {
    return d.in[round * TILE_PIECES + thread].x;
}

/* Each round a thread gives a word and takes that of the next warp; without a wait before (EARLY) or after (REUSED). NAMED: the
 * first four warps meet at a barrier of their own, a fifth has other things to do. */
template <int FORM, bool NAMED> static __global__ void wait_block(wait_data d) {
    __shared__ uint32_t words[READERS];
    const auto meet = [] {
        if (NAMED)
            asm volatile("bar.sync 1, %0;" ::"n"(READERS) : "memory");
        else
            __syncthreads();
    };
    const int thread = (int)threadIdx.x;
    if (thread >= READERS)
        return;
    uint32_t sum = 0;
    for (int i = 0; i < TILES; i++) {
        if (warp_id() == 0)
            wait_linger();
        store4_shared(shared_address(&words[thread]), block_word(d, i, thread));
        if (FORM != EARLY)
            meet();
        if (warp_id() == 3 && FORM == REUSED)
            wait_linger(), wait_linger();
        sum = wait_fold(sum, load4_shared(shared_address(&words[wait_piece(thread, 0)])), 0);
        if (FORM != REUSED)
            meet();
    }
    d.out[thread] = sum;
}

/* Lanes exchange with those of the warp's other half, which comes by another way. */
template <int FORM> static __global__ void __launch_bounds__(WARP) wait_warp(wait_data d) {
    __shared__ uint32_t words[TILES][WARP];
    const int lane = lane_id();
    uint32_t  sum = 0;
    for (int i = 0; i < TILES; i++) {
        const uint32_t give = shared_address(&words[i][lane]), take = shared_address(&words[i][lane ^ 16]);
        uint32_t v;
        if (lane < 16) {
            wait_linger();
            store4_shared(give, block_word(d, i, lane));
            if (FORM != EARLY)
                __syncwarp();
            asm volatile("ld.shared.u32 %0, [%1];  // of the lower half" : "=r"(v) : "r"(take) : "memory");
        } else {
            store4_shared(give, block_word(d, i, lane));
            if (FORM != EARLY)
                __syncwarp();
            asm volatile("ld.shared.u32 %0, [%1];  // of the upper half" : "=r"(v) : "r"(take) : "memory");
        }
        sum = wait_fold(sum, v, 0);
    }
    d.out[lane] = sum;
}

/* Two blocks of a cluster, a word of the other's shared memory each round. They begin and end together in all forms, so that the
 * memory is there. */
template <int FORM> static __global__ void __launch_bounds__(READERS) wait_cluster(wait_data d) {
    __shared__ uint32_t words[READERS];
    const peers_cluster peers = peers_cluster::here();
    const int thread = (int)threadIdx.x;
    uint32_t  sum = 0;
    peers.sync();
    for (int i = 0; i < TILES; i++) {
        if (peers.rank() == 1)
            wait_linger();
        store4_shared(shared_address(&words[thread]), block_word(d, i, thread + (int)peers.rank() * READERS));
        if (FORM != EARLY)
            peers.sync();
        else
            __syncthreads();
        if (FORM == REUSED && peers.rank() == 0)
            wait_linger(), wait_linger();
        sum = wait_fold(sum, peers.load4(&words[thread], peers.rank() ^ 1), 0);
        if (FORM != REUSED)
            peers.sync();
        else
            __syncthreads();
    }
    peers.sync();
    d.out[peers.rank() * READERS + thread] = sum;
}

#endif

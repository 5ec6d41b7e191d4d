/* Words that four warps hand to four others through shared memory and mbarriers, at which a warp arrives by one lane or by all; and
 * the barriers themselves, made by some threads or by one. */
#ifndef KBENCH_WAITS_LANE_CUH
#define KBENCH_WAITS_LANE_CUH

#include "block.cuh"

/* LANES: how many of a warp arrive; one does so for all of it, behind __syncwarp. */
template <int LANES> static __device__ __forceinline__ void lane_arrive(uint32_t barrier) {
    if (LANES == 1)
        __syncwarp();
    if (lane_id() < LANES)
        barrier_arrive(barrier);
}

template <int FORM, int LANES> static __device__ __forceinline__ void lane_read(const wait_data &d, uint32_t words, uint32_t full,
                                                                                uint32_t empty) {
    const int thread = (int)threadIdx.x - READERS;
    uint32_t  sum = 0;
    for (int i = 0; i < TILES; i++) {
        const uint32_t at = words + (i % STAGES * READERS + wait_piece(thread, 0)) * 4;
        uint32_t v = 0;
        if (FORM == EARLY)
            v = load4_shared(at);
        barrier_wait(full + i % STAGES * 8, i / STAGES & 1);
        if (FORM == REUSED)
            lane_arrive<LANES>(empty + i % STAGES * 8);
        if (warp_id() == 7 && FORM != EARLY)
            wait_linger();
        if (FORM != EARLY)
            v = load4_shared(at);
        sum = wait_fold(sum, v, 0);
        if (FORM != REUSED)
            lane_arrive<LANES>(empty + i % STAGES * 8);
    }
    d.out[thread] = sum;
}

template <int FORM, int LANES> static __global__ void __launch_bounds__(2 * READERS) wait_lane(wait_data d) {
    __shared__ uint32_t words[STAGES][READERS];
    __shared__ uint64_t barriers[2][STAGES];
    const uint32_t full = shared_address(barriers[0]), empty = shared_address(barriers[1]);
    const int thread = (int)threadIdx.x;
    if (warp_id() == 0) {   /* behind a branch, which the style init is about */
        if (lane_id() == 0)
            for (int i = 0; i < STAGES; i++) {
                barrier_init(full + i * 8, READERS / WARP * LANES);
                barrier_init(empty + i * 8, READERS / WARP * LANES);
            }
        __syncwarp();
    }
    __syncthreads();
    if (thread >= READERS)
        return lane_read<FORM, LANES>(d, shared_address(words), full, empty);
    for (int i = 0; i < TILES; i++) {
        if (i >= STAGES)
            barrier_wait(empty + i % STAGES * 8, (i / STAGES - 1) & 1);
        if (warp_id() == 0)
            wait_linger();
        store4_shared(shared_address(&words[i % STAGES][thread]), block_word(d, i, thread));
        lane_arrive<LANES>(full + i % STAGES * 8);
    }
}

/* Whether a barrier's phase ends in some 30 ms: what a barrier lost that was made too late shows as wrong results. */
static __device__ __forceinline__ uint32_t init_wait(uint32_t barrier) {
    uint32_t done = 0;
#if HAS_BULK
    for (const long long begin = clock64(); !done && clock64() - begin < 60000000;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier) : "memory");
#endif
    return done;
}

/* A phase of each barrier. SOME: as many threads as there are barriers make one each, by instructions under a predicate; else one
 * thread makes all of them, behind a branch. EARLY: not waited for before they are used; REUSED: made once more after that, with
 * nothing that ends them. */
template <int FORM, bool SOME> static __global__ void __launch_bounds__(READERS) wait_init(wait_data d) {
    __shared__ uint64_t barriers[TILES];
    const uint32_t all = shared_address(barriers);
    const auto make = [&] {
        if (SOME) {
            if (threadIdx.x < TILES)
                barrier_init(all + threadIdx.x * 8, READERS);
        } else if (warp_id() == 0) {
            if (lane_id() == 0)
                for (int i = 0; i < TILES; i++)
                    barrier_init(all + i * 8, READERS);
            __syncwarp();
        }
    };
    if (FORM == EARLY && warp_id() == 0)
        wait_linger();
    make();
    if (FORM != EARLY)
        __syncthreads();
    uint32_t sum = 0;
    for (int i = 0; i < TILES; i++) {
        barrier_arrive(all + i * 8);
        sum = wait_fold(sum, init_wait(all + i * 8), 0);
    }
    __syncthreads();
    if (FORM == REUSED) {
        make();
        __syncthreads();
    }
    d.out[threadIdx.x] = sum;
}

#endif

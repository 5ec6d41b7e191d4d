/* A barrier of a block that its halves meet at from two places of the code. */
#ifndef KBENCH_WAITS_PLACES_CUH
#define KBENCH_WAITS_PLACES_CUH

#include "block.cuh"

/* HALF: whose place it is. COUNTED: bar.sync of so many threads, else of the block. */
template <int HALF, bool COUNTED> static __device__ __forceinline__ void places_meet(void) {
    if (COUNTED)
        asm volatile("bar.sync 1, %0;  // place %1" ::"n"(READERS), "n"(HALF) : "memory");
    else
        asm volatile("bar.sync 0;  // place %0" ::"n"(HALF) : "memory");
}

/* As wait_block has it, by one half. What the upper half does besides keeps the two from becoming one code. */
template <int FORM, int HALF, bool COUNTED>
static __device__ __forceinline__ uint32_t places_run(const wait_data &d, uint32_t words, int thread) {
    uint32_t sum = 0;
#pragma unroll 1
    for (int i = 0; i < TILES; i++) {
        if (HALF == 0 && warp_id() == 0)
            wait_linger();
        store4_shared(words + thread * 4, block_word(d, i, thread));
        if (FORM != EARLY)
            places_meet<HALF, COUNTED>();
        if (HALF == 1 && FORM == REUSED && warp_id() == 3)
            wait_linger(), wait_linger();
        sum = wait_fold(sum, load4_shared(words + wait_piece(thread, 0) * 4), 0);
        if (FORM != REUSED)
            places_meet<HALF, COUNTED>();
    }
    return sum;
}

template <int FORM, bool COUNTED> static __global__ void __launch_bounds__(READERS) wait_places(wait_data d) {
    __shared__ uint32_t words[READERS];
    const int      thread = (int)threadIdx.x;
    const uint32_t at = shared_address(words);
    if (warp_id() < 2) {
        d.out[thread] = places_run<FORM, 0, COUNTED>(d, at, thread);
        return;
    }
    d.out[thread] = places_run<FORM, 1, COUNTED>(d, at, thread);
}

#endif

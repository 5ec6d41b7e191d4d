/* bf16 keys straight to registers, as live_direct.cuh and direct_block.cuh want them. Chunk 4i + t of a row, thread t's, has
 * columns 2t, 2t + 1, 2t + 8, 2t + 9 of k-steps 2i, 2i + 1. */
#ifndef KBENCH_INDEXER_DIRECT_BF16_CUH
#define KBENCH_INDEXER_DIRECT_BF16_CUH

#include "hopper.cuh"
#include "score.cuh"

struct direct_bf16 : score_bf16 {
    static constexpr int LOADS = 4;

    static __device__ __forceinline__ void fragments(const uint4 (&low)[LOADS], const uint4 (&high)[LOADS],
                                                     uint32_t (&k)[SCORE_STEPS][4]) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            k[i * 2][0] = low[i].x, k[i * 2][1] = high[i].x, k[i * 2][2] = low[i].y, k[i * 2][3] = high[i].y;
            k[i * 2 + 1][0] = low[i].z, k[i * 2 + 1][1] = high[i].z, k[i * 2 + 1][2] = low[i].w, k[i * 2 + 1][3] = high[i].w;
        }
    }

    /* Chunk `chunk` of q, counted over all rows, where wgmma finds it in that order. */
    static __device__ __forceinline__ void place(uint32_t q, int chunk, uint4 v) {
        const int row = chunk / 16, i = chunk % 16 / 4, t = chunk % 4;
        const uint32_t word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int n = 0; n < 4; n++)
            store4_shared(q + i / 2 * SCORE_HALF + score_place(row, i % 2 * 4 + n) + t * 4, word[n]);
    }

    using score_bf16::multiply;

    static __device__ __forceinline__ void multiply(float (&c)[INDEXER_HEADS / 2], const uint32_t (&keys)[SCORE_STEPS][4],
                                                    uint64_t q) {
#pragma unroll
        for (int step = 0; step < SCORE_STEPS; step++)
            wgmma_bf16(c, keys[step], q + step % 4 * 2 + step / 4 * (SCORE_HALF >> 4), step > 0);
    }
};

#endif

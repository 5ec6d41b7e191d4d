/* Scores of e4m3 entries by mma.sync on halves, which hold every e4m3 and sum in fp32: products are exact, unlike those of the fp8
 * instructions. The k dimension is taken in another order than memory's, the same for keys and q: columns 2t, 2t + 1, 2t + 8,
 * 2t + 9 of k-step j are dims 32 t + 4 j .. + 3, so that a thread reads 32 bytes in a row and converts what it reads.
 */
#ifndef KBENCH_INDEXER_SCORE_FP8_CUH
#define KBENCH_INDEXER_SCORE_FP8_CUH

#include "attn_fp8/fp8.cuh"
#include "indexer/score.cuh"
#include "indexer_fp8.h"

/* As mma_bf16, of halves. */
static __device__ __forceinline__ void mma_half(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

struct score_fp8 {
    static constexpr int HALVES = 1, BYTES = SCORE_HALF, SCALES = INDEXER_PAGE * 4;
    static constexpr int AHEAD = 3;

    static __device__ __forceinline__ const char *page(const indexer_args &a, int32_t slot) {
        return (const char *)a.t[INDEXER_KEYS].p + (int64_t)slot * INDEXER_FP8_PAGE_BYTES;
    }
    static __device__ __forceinline__ const char *key(const indexer_args &a, int32_t slot, int row) {
        return page(a, slot) + row * INDEXER_D;
    }
    static __device__ __forceinline__ const char *scales(const indexer_args &a, int32_t slot) {
        return page(a, slot) + INDEXER_FP8_SCALES;
    }

    /* The thread's 32 bytes of a row: word j belongs to k-step j. */
    static __device__ __forceinline__ void words(uint32_t shared, int row, uint32_t (&ret)[SCORE_STEPS]) {
        const int chunk = lane_id() % 4 * 2;
        const uint4 x = load16_shared(shared + score_place(row, chunk)), y = load16_shared(shared + score_place(row, chunk + 1));
        ret[0] = x.x, ret[1] = x.y, ret[2] = x.z, ret[3] = x.w;
        ret[4] = y.x, ret[5] = y.y, ret[6] = y.z, ret[7] = y.w;
    }

    static __device__ __forceinline__ void keys(uint32_t shared, int first, uint32_t (&a)[SCORE_STEPS][4]) {
        uint32_t w[2][SCORE_STEPS];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            words(shared, first + half * 8 + lane_id() / 4, w[half]);
#pragma unroll
            for (int step = 0; step < SCORE_STEPS; step++) {
                a[step][half] = fp8_half2(w[half][step]);
                a[step][half + 2] = fp8_half2(w[half][step] >> 16);
            }
        }
    }

    struct heads {
        uint32_t w[2][SCORE_STEPS];

        __device__ __forceinline__ heads(uint32_t shared, int first) {
            words(shared, first + lane_id() / 4, w[0]);
            words(shared, first + 8 + lane_id() / 4, w[1]);
        }
        __device__ __forceinline__ void step(int step, uint32_t (&b)[4]) const {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                b[i * 2] = fp8_half2(w[i][step]);
                b[i * 2 + 1] = fp8_half2(w[i][step] >> 16);
            }
        }
    };

    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
        mma_half(c, a, b0, b1);
    }
};

#endif

/* Scores of a few entries of a page by mma.sync, entries on the M side and heads on the N side, so that the sum over heads stays
 * in a thread but for two shuffles.
 *
 * In shared memory keys of a page and q of a request look alike: halves of 64 rows of 128 bytes (two for bf16, one for e4m3), with
 * 16-byte chunk c of row r at c ^ r % 8, which is how the copy engine swizzles rows of 128 bytes, too. So eight rows of one chunk
 * lie in different banks.
 *
 * A format F says how fragments come from there: F::keys all of an m-tile of 16 entries, F::heads those of two n-tiles of 8
 * heads, F::multiply the instruction.
 */
#ifndef KBENCH_INDEXER_SCORE_CUH
#define KBENCH_INDEXER_SCORE_CUH

#include "indexer.cuh"

static constexpr int SCORE_STEPS = INDEXER_D / 16, SCORE_ROW = 128, SCORE_HALF = INDEXER_PAGE * SCORE_ROW;

static __device__ __forceinline__ uint32_t load4_shared(uint32_t shared) {
    uint32_t x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(shared));
    return x;
}

static __device__ __forceinline__ void store16_shared(uint32_t shared, uint4 v) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

/* Byte of chunk c of row r in its half. */
static __host__ __device__ __forceinline__ int score_place(int row, int chunk) {
    return row * SCORE_ROW + (chunk ^ row % 8) * 16;
}

/* bf16: a page is 16 KB, k-steps are those of memory. */
struct score_bf16 {
    static constexpr int HALVES = 2, BYTES = HALVES * SCORE_HALF, SCALES = 0;
    static constexpr int AHEAD = 2;  /* pages of a block for live_ahead: more take too long where shares are long */

    /* Rows and chunks of 16 bytes in memory: of entry `row` of a page, of head `row` of a request. */
    static __device__ __forceinline__ const char *key(const indexer_args &a, int32_t slot, int row) {
        return indexer_row<INDEXER_KEYS>(a, (int64_t)slot * INDEXER_PAGE + row);
    }
    static __device__ __forceinline__ const char *scales(const indexer_args &, int32_t) {
        return nullptr;
    }

    /* first: of the 16 entries. a[step]: fragment of k-step `step`. */
    static __device__ __forceinline__ void keys(uint32_t shared, int first, uint32_t (&a)[SCORE_STEPS][4]) {
        const int lane = lane_id();
        const uint32_t at = shared + score_place(first + lane % 16, lane / 16);
#pragma unroll
        for (int step = 0; step < SCORE_STEPS; step++)
            load_matrix4(a[step], (at ^ step % 4 * 32) + step / 4 * SCORE_HALF);
    }

    struct heads {
        uint32_t at;

        __device__ __forceinline__ heads(uint32_t shared, int first) {
            const int lane = lane_id();
            at = shared + score_place(first + lane / 16 * 8 + lane % 8, lane / 8 % 2);
        }
        /* b[0..1]: of heads first .. first + 7, b[2..3]: of the next eight. */
        __device__ __forceinline__ void step(int step, uint32_t (&b)[4]) const {
            load_matrix4(b, (at ^ step % 4 * 32) + step / 4 * SCORE_HALF);
        }
    };

    static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
        mma_bf16(c, a, b0, b1);
    }
};

/* c[m-tile][n-tile of 8 heads][..] of `first` .. of 16 heads become part of the sums over heads: sum[m-tile][0] of entry g, [1] of
 * entry g + 8, each over the 4 heads that this lane has of the 16. w: 64 floats in shared memory. */
template <int MT>
static __device__ __forceinline__ void score_fold(const float (&c)[MT][2][4], uint32_t w, int first, float (&sum)[MT][2]) {
#pragma unroll
    for (int nt = 0; nt < 2; nt++) {
        const uint2 pair = load8_shared(w + (first + nt * 8 + lane_id() % 4 * 2) * 4);
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                sum[mt][half] = fmaf(fmaxf(c[mt][nt][half * 2], 0.f), __uint_as_float(pair.x), sum[mt][half]);
                sum[mt][half] = fmaf(fmaxf(c[mt][nt][half * 2 + 1], 0.f), __uint_as_float(pair.y), sum[mt][half]);
            }
    }
}

/* Weights of the heads that a lane has of all 64: 2t and 2t + 1 of each eight. */
static __device__ __forceinline__ void score_weights(uint32_t w, float (&weight)[INDEXER_HEADS / 4]) {
#pragma unroll
    for (int n = 0; n < INDEXER_HEADS / 8; n++) {
        const uint2 pair = load8_shared(w + (n * 8 + lane_id() % 4 * 2) * 4);
        weight[n * 2] = __uint_as_float(pair.x), weight[n * 2 + 1] = __uint_as_float(pair.y);
    }
}

/* c: products of the warp's 16 entries and all 64 heads; sum: of entries g and g + 8. */
static __device__ __forceinline__ void score_fold_row(const float (&c)[INDEXER_HEADS / 2], const float (&weight)[INDEXER_HEADS / 4],
                                                      float (&sum)[2]) {
    sum[0] = sum[1] = 0;
#pragma unroll
    for (int n = 0; n < INDEXER_HEADS / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i / 2] = fmaf(fmaxf(c[n * 4 + i], 0.f), weight[n * 2 + i % 2], sum[i / 2]);
}

/* Of the four lanes t of entry g (and g + 8): lanes 0 and 2 get the whole sum of entry g, 1 and 3 that of entry g + 8. */
static __device__ __forceinline__ float score_join(const float (&sum)[2]) {
    const bool odd = threadIdx.x & 1;
    float mine = odd ? sum[1] : sum[0];
    mine += __shfl_xor_sync(ALL_LANES, odd ? sum[0] : sum[1], 1);
    return mine + __shfl_xor_sync(ALL_LANES, mine, 2);
}

/* The entry of a page whose score score_join gives this lane, of 16 from `first` on. */
static __device__ __forceinline__ int score_entry(int first) {
    return first + lane_id() / 4 + lane_id() % 2 * 8;
}

/* Its factor. scales: 64 floats in shared memory. */
template <class F> static __device__ __forceinline__ float score_scale(uint32_t scales, int first) {
    return F::SCALES ? __uint_as_float(load4_shared(scales + score_entry(first) * 4)) : 1.f;
}

/* Writes the scores of 16 entries from `first` on of a page whose first `live` entries live. */
static __device__ __forceinline__ void score_write(float *logits, int first, int live, float scale, const float (&sum)[2]) {
    const float score = score_join(sum) * scale;
    if (lane_id() % 4 < 2 && score_entry(first) < live)
        logits[score_entry(first)] = score;
}

/* All of it, by one warp, for 16 MT entries from `first` on. */
template <class F, int MT>
static __device__ __forceinline__ void score_entries(uint32_t keys, uint32_t q, uint32_t w, int first, float (&sum)[MT][2]) {
    uint32_t k[MT][SCORE_STEPS][4];
#pragma unroll
    for (int mt = 0; mt < MT; mt++) {
        F::keys(keys, first + mt * 16, k[mt]);
        sum[mt][0] = sum[mt][1] = 0;
    }
#pragma unroll 2  /* not all: q of later heads would be loaded early and spill */
    for (int head = 0; head < INDEXER_HEADS; head += 16) {
        const typename F::heads heads(q, head);
        float c[MT][2][4] = {};
#pragma unroll
        for (int step = 0; step < SCORE_STEPS; step++) {
            uint32_t b[4];
            heads.step(step, b);
#pragma unroll
            for (int mt = 0; mt < MT; mt++) {
                F::multiply(c[mt][0], k[mt][step], b[0], b[1]);
                F::multiply(c[mt][1], k[mt][step], b[2], b[3]);
            }
        }
        score_fold<MT>(c, w, head, sum);
    }
}

/* Rows [row, row + rows) of a page of keys to shared memory by one warp, asynchronously; `of` gives the address of a row. rows: a
 * multiple of 4. */
template <class F, class R> static __device__ __forceinline__ void score_copy(uint32_t shared, int row, int rows, const R &of) {
    constexpr int CHUNKS = F::HALVES * 8, ROWS = WARP / CHUNKS;
    const int lane = lane_id(), chunk = lane % CHUNKS;
#pragma unroll
    for (int i = 0; i < rows; i += ROWS) {
        const int r = row + i + lane / CHUNKS;
        copy16_async(shared + chunk / 8 * SCORE_HALF + score_place(r, chunk % 8), (const char *)of(r) + chunk * 16, true);
    }
}

/* 256 bytes by the lower half of a warp: w of a request, scales of a page. */
static __device__ __forceinline__ void score_copy_line(uint32_t shared, const char *from) {
    if (lane_id() < 16)
        copy16_async(shared + lane_id() * 16, from + lane_id() * 16, true);
}

#endif

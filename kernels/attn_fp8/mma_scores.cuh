/* Of mma.cuh: q in registers, and the scores of a tile. */
#ifndef KBENCH_ATTN_FP8_MMA_SCORES_CUH
#define KBENCH_ATTN_FP8_MMA_SCORES_CUH

#include "attn/combine.cuh"
#include "ring.cuh"

/* As mma_bf16, of halves. */
static __device__ __forceinline__ void mma_half(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ uint32_t half_pack(float lo, float hi) {
    uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(hi), "f"(lo));
    return word;
}

static __device__ __forceinline__ uint32_t half_times(uint32_t x, uint32_t y) {
    uint32_t word;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(word) : "r"(x), "r"(y));
    return word;
}

/* Shared-memory addresses of a thread, for stage 0 and buffer 0: constants lead from them to everything it touches. */
template <class S> struct fp8_places {
    uint32_t key, give, take, put, weight, value;  /* give: ^ 32 for the second n-tile */

    __device__ __forceinline__ fp8_places(const fp8_shared<S> &sh) {
        const int warp = warp_id(), lane = lane_id(), g = lane / 4, t = lane % 4, kw = warp / S::DIM_WARPS,
            dw = warp % S::DIM_WARPS;
        const int h = (int)(threadIdx.x / S::LPH), i = (int)(threadIdx.x % S::LPH) * S::VEC;
        key = shared_address(sh.data[0][kw * S::NT * 8 + lane % 8]) + dw * S::GROUPS * ATTN_FP8_GROUP + lane / 8 * 16;
        give = shared_address(&sh.score[0][dw][g][(kw * S::NT * 8 + t * 2) ^ g % 4 * 8]);
        take = shared_address(&sh.score[0][0][h][i ^ h % 4 * 8]);
        put = shared_address(sh.p[0][0][h]) + i * 2;
        weight = shared_address(sh.p[0][warp >= S::CODED][lane % 16]) + lane / 16 * 16;
        value = shared_address(sh.data[0][lane % 16]) + (warp + max(warp - S::CODED, 0)) * S::SUM_D + lane / 16 * 16;
    }
};

/* The warp's part of q as A fragments of q * 2^-e, e of head and warp: halves, of the rope bf16. Fragment k of a thread meets the
 * order in which ldmatrix gives codes: elements 16 k + 4 t .. + 3. Heads past the end are 0. */
template <class S> struct fp8_query {
    uint32_t f[S::MT][S::GROUPS][4][4];

    static __device__ __forceinline__ bool roped(int group) {
        return group == S::GROUPS - 1 && warp_id() % S::DIM_WARPS == S::DIM_WARPS - 1;
    }

    /* Begins the loads. */
    __device__ __forceinline__ void fetch(const fp8_args &a, int64_t b, int32_t first) {
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int group = 0; group < S::GROUPS; group++)
                    load_group(a, b, first, mt, half, group);
    }

    /* All scores of the item before have been made. */
    __device__ __forceinline__ void arrange(fp8_shared<S> &sh) {
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                fit(sh, mt, half);
    }

private:
    __device__ __forceinline__ void load_group(const fp8_args &a, int64_t b, int32_t first, int mt, int half, int group) {
        const int     lane = lane_id(), dw = warp_id() % S::DIM_WARPS;
        const int     t = (int)pinned(lane % 4);  /* else an offset would wait in a register for the next item */
        const int32_t head = first + mt * 16 + half * 8 + lane / 4;
        const bool    live = head < a.heads, rope = roped(group);
        const char   *q = attn_row<ATTN_Q>(a, b * a.heads + min(head, a.heads - 1)) + (dw * S::GROUPS + group) * 128;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            uint2 v;
            if (rope)
                v = make_uint2(__ldg((const uint32_t *)(q + k * 32 + t * 4)), __ldg((const uint32_t *)(q + k * 32 + t * 4 + 16)));
            else
                v = __ldg((const uint2 *)(q + k * 32 + t * 8));
            f[mt][group][k][half] = live ? v.x : 0;
            f[mt][group][k][half + 2] = live ? v.y : 0;
        }
    }

    /* The warp's largest element of a head to 2^14 .. 2^15. */
    __device__ __forceinline__ void fit(fp8_shared<S> &sh, int mt, int half) {
        uint32_t top = 0;
#pragma unroll
        for (int group = 0; group < S::GROUPS; group++)
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int r = half; r < 4; r += 2)
                    top = max(top, max(f[mt][group][k][r] & 0x7fffu, f[mt][group][k][r] >> 16 & 0x7fffu));
        top = max(top, __shfl_xor_sync(ALL_LANES, top, 1));
        top = max(top, __shfl_xor_sync(ALL_LANES, top, 2));
        const uint32_t exponent = max(top >> 7, 15u);
        const float    down = __uint_as_float((268 - exponent) << 23);
        if (warp_id() < S::DIM_WARPS && lane_id() % 4 == 0)
            sh.q_scale[warp_id()][mt * 16 + half * 8 + lane_id() / 4] = __uint_as_float((exponent - 14) << 23);
#pragma unroll
        for (int group = 0; group < S::GROUPS; group++)
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int r = half; r < 4; r += 2) {
                    const float x = bf16_lo(f[mt][group][k][r]) * down, y = bf16_hi(f[mt][group][k][r]) * down;
                    f[mt][group][k][r] = roped(group) ? bf16_pack(x, y) : half_pack(x, y);
                }
    }
};

/* Products of one group: c[m-tile][n-tile]. key: of the thread's row for ldmatrix, its first 16 bytes. */
template <class S>
static __device__ __forceinline__ void fp8_products(const fp8_query<S> &q, int group, uint32_t key, float (&c)[S::MT][S::NT][4]) {
    uint32_t k[S::NT][4];
#pragma unroll
    for (int nt = 0; nt < S::NT; nt++)
        load_matrix4(k[nt], key + nt * 8 * S::PITCH);
#pragma unroll
    for (int step = 0; step < 4; step++)
#pragma unroll
        for (int nt = 0; nt < S::NT; nt++) {
            uint32_t b[2];
            fp8_half4(k[nt][step], b);
#pragma unroll
            for (int mt = 0; mt < S::MT; mt++)
                mma_half(c[mt][nt], q.f[mt][group][step], b[0], b[1]);
        }
}

/* The same of the rope. */
template <class S>
static __device__ __forceinline__ void fp8_products_rope(const fp8_query<S> &q, uint32_t key, float (&c)[S::MT][S::NT][4]) {
#pragma unroll
    for (int part = 0; part < 2; part++) {
        uint32_t k[S::NT][4];
#pragma unroll
        for (int nt = 0; nt < S::NT; nt++)
            load_matrix4(k[nt], key + part * 64 + nt * 8 * S::PITCH);
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
            for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
                for (int mt = 0; mt < S::MT; mt++)
                    mma_bf16(c[mt][nt], q.f[mt][S::GROUPS - 1][part * 2 + step], k[nt][step * 2], k[nt][step * 2 + 1]);
    }
}

/* The warp's partial scores of one tile, to shared memory. */
template <class S>
static __device__ __forceinline__ void fp8_scores(const fp8_shared<S> &sh, const fp8_query<S> &q, const fp8_places<S> &at,
                                                  int stage, int buffer) {
    const int kw = warp_id() / S::DIM_WARPS, dw = warp_id() % S::DIM_WARPS;
    const uint8_t *scales = &sh.scales[stage][kw * S::NT * 8 + lane_id() % 4 * 2][dw * S::GROUPS];
    float    s[S::MT][S::NT][4] = {};
    uint32_t bytes[S::NT][2];   /* of both groups, of the thread's two keys */
#pragma unroll
    for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++)
            bytes[nt][e] = *(const uint16_t *)(scales + (nt * 8 + e) * ATTN_FP8_SCALES);
#pragma unroll
    for (int group = 0; group < S::GROUPS; group++) {
        const uint32_t key = at.key + stage * S::STAGE_BYTES + group * ATTN_FP8_GROUP;
        const bool     rope = q.roped(group);
        float c[S::MT][S::NT][4] = {};
        if (rope)
            fp8_products_rope<S>(q, key, c);
        else
            fp8_products<S>(q, group, key, c);
#pragma unroll
        for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const uint32_t byte = group == 0 ? bytes[nt][e] & 0xff : bytes[nt][e] >> 8;
                /* no NaN: an entry that is named has none */
                const float scale = __uint_as_float(rope ? 0x3f800000 : max(byte << 23, 0x00400000u));
#pragma unroll
                for (int mt = 0; mt < S::MT; mt++) {
                    s[mt][nt][e] = fmaf(c[mt][nt][e], scale, s[mt][nt][e]);
                    s[mt][nt][e + 2] = fmaf(c[mt][nt][e + 2], scale, s[mt][nt][e + 2]);
                }
            }
    }
    const uint32_t give = at.give + buffer * S::SCORE_BYTES;
#pragma unroll
    for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                store8_shared((give ^ nt * 32) + (mt * 16 + half * 8) * S::SCORE_PITCH, s[mt][nt][half * 2],
                              s[mt][nt][half * 2 + 1]);
}

#endif

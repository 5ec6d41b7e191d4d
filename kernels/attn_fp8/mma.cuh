/* Tiled attention over entries in fp8 by mma.sync: entries are copied as they are into a ring in shared memory and become operands
 * in registers. No tile in 16 bits is ever written, because e4m3 is exact in half and its scale can wait:
 *
 *   scores   the 64 products of a group are summed by themselves and then multiplied by the scale, a float. q is brought into
 *            half's range by a power of two per head and warp, which loses nothing above 2^-28 of the warp's largest element.
 *   sum      the scale goes to the weight: half(weight) * 2^(scale - unit), where unit is the warp's own for its group and grows
 *            with the scales it meets. An entry whose scale is far below takes a pass of its own: see fp8_sums.
 *
 * A warp that takes elements of one group for the sum has one scale an entry; half has three more bits of mantissa than bf16, which
 * is what a row of few different values needs. Roped elements are bf16 as they come, and so are their weights.
 *
 * The warps of a block share out the work three times:
 *   scores   S[heads][tile]: warp (kw, dw) of KEY_WARPS x DIM_WARPS takes NT * 8 keys and one or two groups of d, so that its part
 *            of q lives in registers for good. The DIM_WARPS partial sums of a score meet in shared memory.
 *   weights  P[heads][tile]: warp w takes heads w * HPW .. and all keys, so that maximum and sum stay inside a warp.
 *   sum      O[heads][512] += P * KV: warp w takes a group of d, or half of one (the last: the rope), all heads and keys.
 */
#ifndef KBENCH_ATTN_FP8_MMA_CUH
#define KBENCH_ATTN_FP8_MMA_CUH

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

/* LPH lanes share a head: the base of its weights and the lane's own part of its running sum. The base follows the maximum only
 * where that has left it by more than LAG (base 2), so that hardly any tile after the first has sums to scale. Weights of 2^LAG are
 * as exact in half as 1. */
template <class S> struct fp8_softmax {
    static constexpr float LAG = FP8_LAG;
    float m, sum, sink, unit[S::DIM_WARPS];  /* unit: of the partial scores, with the factor that makes them exponents of 2 */

    static __device__ __forceinline__ int head() {
        return (int)(threadIdx.x / S::LPH);
    }

    /* After a barrier behind q's arrangement. */
    __device__ __forceinline__ void take_units(const fp8_shared<S> &sh) {
#pragma unroll
        for (int dw = 0; dw < S::DIM_WARPS; dw++)
            unit[dw] = sh.q_scale[dw][head()] * SCALE_LOG2;
    }

    __device__ __forceinline__ void clear(const fp8_args &a, int32_t first) {
        m = -INFINITY;
        sum = 0;
        sink = attn_sink_log2(a, min(first + head(), a.heads - 1));
    }

    /* After a barrier: all partial scores in, in a fixed order; weights P of the tile and the factor for the older sums out. */
    __device__ __forceinline__ void tile(fp8_shared<S> &sh, const fp8_places<S> &at, int stage, int buffer) {
        const int lane = (int)(threadIdx.x % S::LPH);
        float s[S::VEC], top = m;
#pragma unroll
        for (int e = 0; e < S::VEC; e++)
            s[e] = sh.bias[stage][lane * S::VEC + e];
#pragma unroll
        for (int dw = 0; dw < S::DIM_WARPS; dw++) {
            float x[S::VEC];
            load_vec(at.take + buffer * S::SCORE_BYTES + dw * S::PLANE_BYTES, x);
#pragma unroll
            for (int e = 0; e < S::VEC; e++)
                s[e] = fmaf(x[e], unit[dw], s[e]);
        }
#pragma unroll
        for (int e = 0; e < S::VEC; e++)
            top = fmaxf(top, s[e]);
#pragma unroll
        for (int step = S::LPH / 2; step > 0; step /= 2)
            top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, step));
        top = top > m + LAG ? top : m;
        const float base = top == -INFINITY ? 0.f : top, old = exp2_fast(m - base);
        m = top;
        sum *= old;
        if (lane == 0)
            sh.old[buffer][head()] = old;
        const bool grew = __any_sync(ALL_LANES, old != 1);
        if (lane_id() == 0)
            sh.grew[buffer][warp_id()] = grew;
        const uint32_t put = at.put + buffer * 2 * S::P_BYTES;
#pragma unroll
        for (int e = 0; e < S::VEC; e++) {
            s[e] = exp2_fast(s[e] - base);
            sum += s[e];
        }
        if constexpr (S::VEC == 4) {
            store8_shared(put, __uint_as_float(half_pack(s[0], s[1])), __uint_as_float(half_pack(s[2], s[3])));
            store8_shared(put + S::P_BYTES, __uint_as_float(bf16_pack(s[0], s[1])), __uint_as_float(bf16_pack(s[2], s[3])));
        } else {
            store4_shared(put, half_pack(s[0], s[1]));
            store4_shared(put + S::P_BYTES, bf16_pack(s[0], s[1]));
        }
    }

    /* The head's whole sum, in all its lanes. */
    __device__ __forceinline__ float total() const {
        float all = sum;
#pragma unroll
        for (int step = S::LPH / 2; step > 0; step /= 2)
            all += __shfl_xor_sync(ALL_LANES, all, step);
        return all;
    }

    /* The factor that ends the sums to sh.factor, and the lse. */
    __device__ __forceinline__ void finish(const fp8_args &a, fp8_shared<S> &sh, int64_t b, int32_t first) const {
        const float all = total();
        if (threadIdx.x % S::LPH == 0) {
            sh.factor[head()] = attn_finish(m, all, sink);
            if (first + head() < a.heads)
                *attn_lse(a, b, first + head()) = all > 0 ? m * LN2 + logf(all) : -INFINITY;
        }
    }

    /* The same for a part: nothing is divided yet. */
    __device__ __forceinline__ void leave(const fp8_args &a, const partials &parts, int64_t b, int32_t first, int32_t split) const {
        const float all = total();
        if (threadIdx.x % S::LPH == 0 && first + head() < a.heads)
            *partial_ml(parts, b * a.heads + first + head(), split) = make_float2(m, all);
    }

private:
    static __device__ __forceinline__ void load_vec(uint32_t from, float (&ret)[S::VEC]) {
        if constexpr (S::VEC == 4) {
            const uint4 v = load16_shared(from);
            ret[0] = __uint_as_float(v.x), ret[1] = __uint_as_float(v.y);
            ret[2] = __uint_as_float(v.z), ret[3] = __uint_as_float(v.w);
        } else {
            const uint2 v = load8_shared(from);
            ret[0] = __uint_as_float(v.x), ret[1] = __uint_as_float(v.y);
        }
    }
};

/* The warp's SUM_D elements of d of the weighted sums, in units of 2^(unit - 127 - HEADROOM). The thread has, of heads 16 mt + g
 * and 16 mt + g + 8 and of chunks c of 16 elements, o[mt][2c] and o[mt][2c + 1]: of codes elements 4t, 4t + 2 and 4t + 1, 4t + 3;
 * of the rope 2t, 2t + 1 and 2t + 8, 2t + 9. */
template <class S> struct fp8_sums {
    /* weights <= 2^LAG times 2^HEADROOM are halves; scales down to 2^-25 of the unit keep the factor a normal one */
    static constexpr int HEADROOM = 15 - FP8_LAG, SPAN = 15 + HEADROOM;
    /* a unit is chosen above the scale that asks for it, so that hardly any tile after the first asks for another */
    static constexpr int ROOM = 2;
    /* what is smaller by this than the largest scale is dropped: the sums would overflow in its unit */
    static constexpr int REACH = 80;
    float o[S::MT][S::CHUNKS * 2][4];
    int   unit, largest;                            /* bytes of scales; largest: no scale seen was above it */

    static __device__ __forceinline__ bool coded() {
        return warp_id() < S::CODED;
    }

    __device__ __forceinline__ void clear() {
        unit = largest = 0;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int j = 0; j < S::CHUNKS * 2; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    o[mt][j][e] = 0;
    }

    /* A tile's older sums: by sh.old where one of those is not 1 and that is not done, and to unit `to`. Most tiles bring neither a
     * new base nor a larger scale: then nothing is done. */
    __device__ __forceinline__ void scale(const fp8_shared<S> &sh, int buffer, bool done, int to) {
        const uint2 grew = *(const uint2 *)sh.grew[buffer];
        const bool  move = !done && (grew.x | grew.y) != 0;
        if (!move && to == unit)
            return;
        const float step = __uint_as_float((uint32_t)max(unit - to + 127, 0) << 23);
        unit = to;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const float f = (move ? sh.old[buffer][mt * 16 + half * 8 + lane_id() / 4] : 1.f) * step;
#pragma unroll
                for (int j = 0; j < S::CHUNKS * 2; j++)
#pragma unroll
                    for (int e = half * 2; e < half * 2 + 2; e++)
                        o[mt][j][e] *= f;
            }
    }

    /* After a barrier. Entries of far smaller scale than the largest, which no quantiser leaves beside it, matter where the weight
     * of the others vanishes: each further pass takes those near the largest left, in their own unit. */
    __device__ __forceinline__ void tile(const fp8_shared<S> &sh, const fp8_places<S> &at, int stage, int buffer) {
        if (!coded()) {
            scale(sh, buffer, false, unit);
            add_rope(at, stage, buffer);
            return;
        }
        const bool hole = sh.bias[stage][lane_id()] < 0;
        const int  mine = hole ? -1 : sh.scales[stage][lane_id()][warp_id() * S::SUM_D / ATTN_FP8_GROUP];
        if (__any_sync(ALL_LANES, mine > unit || (mine >= 0 && mine <= unit - SPAN))) {
            tile_in_passes(sh, at, stage, buffer, mine);
        } else {
            scale(sh, buffer, false, unit);
            add(at, stage, buffer, mine >= 0 ? factor_of(mine) : 0);
        }
    }

    /* factor[h]: what head first + h is multiplied by. */
    __device__ __forceinline__ void write_bf16(const fp8_args &a, int64_t b, int32_t first, const float *factor) const {
        const float whole = true_unit();
        each([&](int head, int d, float x, float y, float z, float w, bool four) {
            if (first + head >= a.heads)
                return;
            char *out = attn_row<ATTN_OUT>(a, b * a.heads + first + head) + d * 2;
            const float f = factor[head];
            const uint32_t low = bf16_pack(x * whole * f, y * whole * f), high = bf16_pack(z * whole * f, w * whole * f);
            if (four)
                *(uint2 *)out = make_uint2(low, high);
            else {
                *(uint32_t *)out = low;
                *(uint32_t *)(out + 16) = high;
            }
        });
    }

    /* As a part's sums. */
    __device__ __forceinline__ void leave(const fp8_args &a, const partials &parts, int64_t b, int32_t first, int32_t split) const {
        const float whole = true_unit();
        each([&](int head, int d, float x, float y, float z, float w, bool four) {
            if (first + head >= a.heads)
                return;
            float *out = partial_o(parts, b * a.heads + first + head, split) + d;
            if (four)
                __stcg((float4 *)out, make_float4(x * whole, y * whole, z * whole, w * whole));
            else {
                __stcg((float2 *)out, make_float2(x * whole, y * whole));
                __stcg((float2 *)(out + 8), make_float2(z * whole, w * whole));
            }
        });
    }

private:
    /* left: byte of the lane's scale; negative: no entry. */
    __device__ __forceinline__ void tile_in_passes(const fp8_shared<S> &sh, const fp8_places<S> &at, int stage, int buffer,
        int left) {
        int to = __reduce_max_sync(ALL_LANES, left);
        to = to > max(unit, largest) ? min(to + ROOM, 254) : max(unit, largest);
        largest = to;
#pragma unroll 1
        for (bool again = false;; again = true) {
            scale(sh, buffer, again, to);
            add(at, stage, buffer, left > unit - SPAN && left >= 0 ? factor_of(left) : 0);
            left = left > unit - SPAN || left < largest - REACH ? -1 : left;
            if (!__any_sync(ALL_LANES, left >= 0))
                break;
            to = __reduce_max_sync(ALL_LANES, left);
        }
    }

    __device__ __forceinline__ float true_unit() const {
        return coded() ? fp8_scale(unit) * (1.f / (1 << HEADROOM)) : 1.f;
    }

    /* 2^(byte - unit + HEADROOM), within SPAN a normal half's bits. */
    __device__ __forceinline__ uint32_t factor_of(int byte) const {
        return (uint32_t)(byte - unit + HEADROOM + 15) << 10;
    }

    /* mine: factor of the lane's entry. */
    __device__ __forceinline__ void add(const fp8_places<S> &at, int stage, int buffer, uint32_t mine) {
        const uint32_t two = mine | __shfl_down_sync(ALL_LANES, mine, 1) << 16;
#pragma unroll
        for (int k = 0; k < S::TILE / 16; k++) {
            const int      entry = k * 16 + lane_id() % 4 * 2;
            const uint32_t low = __shfl_sync(ALL_LANES, two, entry), high = __shfl_sync(ALL_LANES, two, entry + 8);
            uint32_t w[S::MT][4], v[S::CHUNKS / 2][4];
#pragma unroll
            for (int j = 0; j < S::CHUNKS / 2; j++)
                load_matrix4_transposed(v[j], at.value + stage * S::STAGE_BYTES + k * 16 * S::PITCH + j * 32);
#pragma unroll
            for (int mt = 0; mt < S::MT; mt++) {
                load_matrix4(w[mt], at.weight + buffer * 2 * S::P_BYTES + mt * 16 * S::P_PITCH + k * 32);
#pragma unroll
                for (int r = 0; r < 4; r++)
                    w[mt][r] = half_times(w[mt][r], r < 2 ? low : high);
            }
#pragma unroll
            for (int c = 0; c < S::CHUNKS; c++) {
                /* Codes of two entries by two elements, to two elements by two entries: an operand each. */
                const uint32_t x = __byte_perm(v[c / 2][c % 2 * 2], 0, 0x3120), y = __byte_perm(v[c / 2][c % 2 * 2 + 1], 0, 0x3120);
                uint32_t first[2], second[2];
                fp8_half4(x, first);
                fp8_half4(y, second);
#pragma unroll
                for (int odd = 0; odd < 2; odd++)
#pragma unroll
                    for (int mt = 0; mt < S::MT; mt++)
                        mma_half(o[mt][c * 2 + odd], w[mt], first[odd], second[odd]);
            }
        }
    }

    __device__ __forceinline__ void add_rope(const fp8_places<S> &at, int stage, int buffer) {
#pragma unroll
        for (int k = 0; k < S::TILE / 16; k++) {
            uint32_t w[S::MT][4];
#pragma unroll
            for (int mt = 0; mt < S::MT; mt++)
                load_matrix4(w[mt], at.weight + buffer * 2 * S::P_BYTES + mt * 16 * S::P_PITCH + k * 32);
#pragma unroll
            for (int c = 0; c < S::CHUNKS; c++) {
                uint32_t v[4];
                load_matrix4_transposed(v, at.value + stage * S::STAGE_BYTES + k * 16 * S::PITCH + c * 32);
#pragma unroll
                for (int odd = 0; odd < 2; odd++)
#pragma unroll
                    for (int mt = 0; mt < S::MT; mt++)
                        mma_bf16(o[mt][c * 2 + odd], w[mt], v[odd * 2], v[odd * 2 + 1]);
            }
        }
    }

    /* put(head, d, x, y, z, w, four): elements d .. d + 3 if four, else d, d + 1, d + 8, d + 9. */
    template <class F> __device__ __forceinline__ void each(F put) const {
        const int  g = lane_id() / 4, t = lane_id() % 4;
        const bool four = coded();
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int c = 0; c < S::CHUNKS; c++) {
                    const float (&a)[4] = o[mt][c * 2], (&b)[4] = o[mt][c * 2 + 1];
                    put(mt * 16 + half * 8 + g, warp_id() * S::SUM_D + c * 16 + t * (four ? 4 : 2), a[half * 2],
                        four ? b[half * 2] : a[half * 2 + 1], four ? a[half * 2 + 1] : b[half * 2], b[half * 2 + 1], four);
                }
    }
};

/* A named barrier among the warps that compute: scores of a tile and weights of the one before are there. */
template <class S> static __device__ __forceinline__ void fp8_meet(void) {
    asm volatile("bar.sync 1, %0;" ::"n"(S::COMPUTE) : "memory");
}

/* What the warps that compute do: all items of a block. SPLIT: results go to `parts`, else to out and lse.
 *
 * One barrier a tile: between two of them the weights of a tile, the products of the tile before it and the scores of the one after
 * it are made. Half of the warps on each quarter of an SM begin with the weights and half end with them, so that the tensor cores
 * are busy meanwhile: all run weights, products, scores in turn, and only the barrier stands at another place. */
template <class S, bool SPLIT>
static __device__ __forceinline__ void fp8_compute(const fp8_args &a, const fp8_work &work, const partials &parts,
                                                   fp8_shared<S> &sh) {
    const bool early = warp_id() < S::WARPS / 2;
    const fp8_places<S> at(sh);
    fp8_query<S> q;
    fp8_softmax<S> softmax;
    fp8_sums<S> sums;
    fp8_position<S> front = {0, 0}, middle = front, back = front;  /* tiles k + 1, k and k - 1 of the loop below */
    q.fetch(a, fp8_request_of(work, (int32_t)blockIdx.x), (int32_t)blockIdx.x % work.groups * S::HEADS);

#pragma unroll 1
    for (int32_t item = (int32_t)blockIdx.x; item < work.items; item += (int32_t)gridDim.x) {
        const int32_t b = fp8_request_of(work, item), first = item % work.groups * S::HEADS;
        const int32_t split = item / work.groups % work.splits;
        const fp8_range range = fp8_range_of<S>(work, item, attn_length_of(a, b).n);
        const int32_t tiles = max(range.hi - range.lo + S::TILE - 1, 0) / S::TILE;
        softmax.clear(a, first);
        sums.clear();
        q.arrange(sh);
        /* k: the tile whose scores are there after the barrier. The first round only makes scores, the last only products. */
#pragma unroll 1
        for (int32_t k = -1; k <= tiles; k++) {
            if (early)
                fp8_meet<S>();
            const int32_t weighted = early ? k : k - 1;
            if (weighted == 0)
                softmax.take_units(sh);
            if (weighted >= 0 && weighted < tiles)
                softmax.tile(sh, at, early ? middle.stage : back.stage, weighted & 1);
            if (!early)
                fp8_meet<S>();
            if (k > 0) {
                sums.tile(sh, at, back.stage, (k - 1) & 1);
                __syncwarp();
                if (lane_id() == 0)
                    barrier_arrive(shared_address(&sh.empty[back.stage]));
            }
            back = middle;
            middle = front;
            if (k + 1 < tiles) {
                barrier_wait(shared_address(&sh.full[front.stage]), front.parity);
                fp8_scores<S>(sh, q, at, front.stage, (k + 1) & 1);
                front = front.next();
            } else if (k + 1 == tiles && item + (int32_t)gridDim.x < work.items) {
                const int32_t next = item + (int32_t)gridDim.x;  /* the last scores are made: q of the next item, behind the sums */
                q.fetch(a, fp8_request_of(work, next), next % work.groups * S::HEADS);
            }
        }
        if constexpr (SPLIT) {
            softmax.leave(a, parts, b, first, split);
            if (tiles > 0)
                sums.leave(a, parts, b, first, split);
        } else {
            softmax.finish(a, sh, b, first);
            fp8_meet<S>();
            sums.write_bf16(a, b, first, sh.factor);
        }
    }
}

/* 32 heads need more registers than 12 warps share out evenly: there has to be a way to move them. Without it the body is empty. */
template <class S> static constexpr bool fp8_fits_registers = S::MT == 1 || MOVES_REGISTERS;

/* Body of the kernels. */
template <class S, bool SPLIT>
static __device__ __forceinline__ void fp8_run(const fp8_args &a, const fp8_work &work, const partials &parts, fp8_shared<S> &sh) {
    if constexpr (fp8_fits_registers<S>) {
        fp8_init(sh);
        if (warp_id() >= S::WARPS) {
            registers_give<S::FOR_COPIES>();
            fp8_producer<S> producer(a, work);
            producer.run(sh);
        } else {
            registers_take<S::FOR_ARITHMETIC>();
            fp8_compute<S, SPLIT>(a, work, parts, sh);
        }
    }
}

/* Host: makes room for a kernel in shared memory. ret_there: whether there is code in it for this device. */
static inline int fp8_open(const void *kernel, int64_t shared, bool *ret_there) {
    cudaFuncAttributes code;
    int error = cudaFuncGetAttributes(&code, kernel);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    *ret_there = error == cudaSuccess && code.numRegs > 64;
    return error;
}

#endif

/* Of mma.cuh: the weighted sums of a warp. */
#ifndef KBENCH_ATTN_FP8_MMA_SUMS_CUH
#define KBENCH_ATTN_FP8_MMA_SUMS_CUH

#include "mma_scores.cuh"

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
        const int  lane = (int)pinned((uint32_t)lane_id());  /* else offsets would wait in registers through all tiles */
        const int  g = lane / 4, t = lane % 4;
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

#endif

/* The pieces of tiled attention by mma.sync: a ring of KV rows filled by asynchronous copies, scores, weights and weighted sum
 * of one tile for one group of heads. attn/mma strings them together; a kernel that splits the KV dimension uses the same
 * pieces.
 *
 * A block is 8 warps that compute and 4 that copy. The 8 share out the work three times:
 *   scores   S[heads][tile]: warp (kw, dw) of 2 x 4 takes half of the keys and 128 elements of d, so that its part of q lives in
 *            registers for good. The four partial sums of a score meet in shared memory.
 *   weights  P[heads][tile]: warp w takes heads w * HPW .. and all keys, so that maximum and sum stay inside a warp.
 *   sum      O[heads][512] += P * KV: warp w takes 64 elements of d, all heads and keys.
 *
 * The ring consists of tiles of 32 rows. Chunk c of 16 bytes of row r lies at c ^ r % 8 of its line of 128 bytes, so that the 8
 * rows of an ldmatrix lie in different banks, and what 8 lanes copy is an aligned line: rows 1040 bytes apart did the one without
 * the other, and L2 then sends half as many bytes again. Two mbarriers a stage say when it is full and when it is empty again.
 * Bulk copies of whole rows were tried: the copy engine takes 1 KB at a time more slowly than a warp issues 64 copies of 16 bytes.
 */
#ifndef KBENCH_ATTN_MMA_WS_CUH
#define KBENCH_ATTN_MMA_WS_CUH

#include "mma_ws_ring.cuh"

/* The warp's part of q, as A fragments of m16n8k16. Heads past the end are 0. */
template <class S> struct mma_query {
    uint32_t fragment[S::MT][S::CHUNKS][2][4];

    /* Begins the loads: row g, then row g + 8 of each m-tile, 16 bytes a thread. */
    __device__ __forceinline__ void fetch(const attn_args &a, int64_t b, int32_t first) {
        const int lane = lane_id(), dw = warp_id() % S::DIM_WARPS;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int32_t head = first + mt * 16 + half * 8 + lane / 4;
                const char *q = attn_row<ATTN_Q>(a, b * a.heads + min(head, a.heads - 1)) + dw * S::CHUNKS * 64 + lane % 4 * 16;
#pragma unroll
                for (int c = 0; c < S::CHUNKS; c++) {
                    const uint4 v = head < a.heads ? __ldg((const uint4 *)(q + c * 64)) : make_uint4(0, 0, 0, 0);
                    uint32_t (&f)[4] = fragment[mt][c][half];
                    f[0] = v.x, f[1] = v.y, f[2] = v.z, f[3] = v.w;
                }
            }
    }

    /* From a chunk of 8 elements a thread to two elements of 4 chunks: fragment[..][c][step] is that of a k-step. */
    __device__ __forceinline__ void arrange() {
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int c = 0; c < S::CHUNKS; c++) {
                uint32_t (&x)[4] = fragment[mt][c][0], (&y)[4] = fragment[mt][c][1];
                const uint4 low = quad_transpose(x[0], x[1], x[2], x[3]), high = quad_transpose(y[0], y[1], y[2], y[3]);
                x[0] = low.x, x[1] = high.x, x[2] = low.y, x[3] = high.y;
                y[0] = low.z, y[1] = high.z, y[2] = low.w, y[3] = high.w;
            }
    }
};

/* The warp's partial scores of one tile, to shared memory. */
template <class S> static __device__ __forceinline__ void mma_scores(const mma_query<S> &q, const mma_places<S> &at,
    mma_position<S> from, int buffer) {
    const uint32_t key = at.key + from.stage * S::STAGE_BYTES;
    float s[S::MT][S::NT][4] = {};
#pragma unroll
    for (int c = 0; c < S::CHUNKS; c++) {
        uint32_t k[S::NT][4];
#pragma unroll
        for (int nt = 0; nt < S::NT; nt++)
            load_matrix4(k[nt], (key ^ c % 2 * 64) + nt * 8 * ROW_BYTES + c / 2 * 128);
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
            for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
                for (int mt = 0; mt < S::MT; mt++)
                    mma_bf16(s[mt][nt], q.fragment[mt][c][step], k[nt][step * 2], k[nt][step * 2 + 1]);
    }
#pragma unroll
    for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                store8_shared((at.give ^ nt * 32) + buffer * S::SCORE_BYTES + (mt * 16 + half * 8) * S::SCORE_PITCH,
                    s[mt][nt][half * 2], s[mt][nt][half * 2 + 1]);
}

/* LPH lanes share a head: its running maximum and the lane's own part of its running sum. Every weight of the largest score so
 * far is exactly 1: a base that lags behind the maximum saves work, but rounds the heaviest weight to bf16, and that alone is
 * 2e-3 of a result. */
template <class S> struct mma_softmax {
    float m, sum, sink;

    static __device__ __forceinline__ int head() {
        return (int)(threadIdx.x / S::LPH);
    }

    __device__ __forceinline__ void clear(const attn_args &a, int32_t first) {
        m = -INFINITY;
        sum = 0;
        sink = attn_sink_log2(a, min(first + head(), a.heads - 1));
    }

    /* After a barrier: all partial scores in, in a fixed order; weights P of the tile and the factor for the older sums out. */
    __device__ __forceinline__ void tile(mma_shared<S> &sh, const mma_places<S> &at, mma_position<S> from, int buffer) {
        const int lane = (int)(threadIdx.x % S::LPH);
        float s[S::WEIGHTS], top = m;
#pragma unroll
        for (int v = 0; v < S::WEIGHTS; v += S::VEC) {
            float x[S::DIM_WARPS][S::VEC];
            const float *bias = sh.bias[from.stage] + v * S::LPH + lane * S::VEC;
#pragma unroll
            for (int dw = 0; dw < S::DIM_WARPS; dw++)
                load_vec(at.take + buffer * S::SCORE_BYTES + dw * S::PLANE_BYTES + v * S::LPH * 4, x[dw]);
#pragma unroll
            for (int e = 0; e < S::VEC; e++) {
                s[v + e] = x[0][e];
#pragma unroll
                for (int dw = 1; dw < S::DIM_WARPS; dw++)
                    s[v + e] += x[dw][e];
                s[v + e] = s[v + e] * SCALE_LOG2 + bias[e];
                top = fmaxf(top, s[v + e]);
            }
        }
#pragma unroll
        for (int step = S::LPH / 2; step > 0; step /= 2)
            top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, step));
        const float base = top == -INFINITY ? 0.f : top, old = exp2_fast(m - base);
        m = top;
        sum *= old;
        if (lane == 0)
            sh.old[buffer][head()] = old;
#pragma unroll
        for (int v = 0; v < S::WEIGHTS; v += S::VEC) {
            uint32_t w[S::VEC / 2];
#pragma unroll
            for (int e = 0; e < S::VEC; e += 2) {
                const float p0 = exp2_fast(s[v + e] - base), p1 = exp2_fast(s[v + e + 1] - base);
                sum += p0 + p1;
                w[e / 2] = bf16_pack(p0, p1);
            }
            if constexpr (S::VEC == 4)
                store8_shared(at.put + buffer * S::P_BYTES + v * S::LPH * 2, __uint_as_float(w[0]), __uint_as_float(w[1]));
            else
                store4_shared(at.put + buffer * S::P_BYTES + v * S::LPH * 2, w[0]);
        }
    }

    /* The factor that ends the sums to sh.factor, and the lse. */
    __device__ __forceinline__ void finish(const attn_args &a, mma_shared<S> &sh, int64_t b, int32_t first) {
        float all = sum;
#pragma unroll
        for (int step = S::LPH / 2; step > 0; step /= 2)
            all += __shfl_xor_sync(ALL_LANES, all, step);
        if (threadIdx.x % S::LPH == 0) {
            sh.factor[head()] = attn_finish(m, all, sink);
            if (first + head() < a.heads)
                *attn_lse(a, b, first + head()) = all > 0 ? m * LN2 + logf(all) : -INFINITY;
        }
    }

private:
    static __device__ __forceinline__ void load_vec(uint32_t from, float (&ret)[S::VEC]) {
        if constexpr (S::VEC == 4) {
            const uint4 v = load16_shared(from);
            ret[0] = __uint_as_float(v.x), ret[1] = __uint_as_float(v.y), ret[2] = __uint_as_float(v.z),
                ret[3] = __uint_as_float(v.w);
        } else {
            const uint2 v = load8_shared(from);
            ret[0] = __uint_as_float(v.x), ret[1] = __uint_as_float(v.y);
        }
    }
};

/* The warp's 64 elements of d of the weighted sums: o[mt][j] is heads 16 mt + .., elements warp * 64 + j * 8 + .. */
template <class S> struct mma_sums {
    float o[S::MT][8][4];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    o[mt][j][e] = 0;
    }

    /* Multiplies heads g and g + 8 of each m-tile by factor[head]; most tiles bring no new maximum and then nothing is done. */
    __device__ __forceinline__ void scale(const float *factor) {
        const int g = lane_id() / 4;
        float f[S::MT][2];
        bool any = false;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                f[mt][half] = factor[mt * 16 + half * 8 + g];
                any |= f[mt][half] != 1;
            }
        if (!__any_sync(ALL_LANES, any))
            return;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    o[mt][j][e] *= f[mt][e / 2];
    }

    /* V fragments of k-step k, for all 64 elements. */
    static __device__ __forceinline__ void load_v(const mma_places<S> &at, mma_position<S> from, int k, uint32_t (&v)[4][4]) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            load_matrix4_transposed(v[j], (at.value + from.stage * S::STAGE_BYTES + k * 16 * ROW_BYTES) ^ j * 32);
    }

    /* After a barrier. v: the fragments of k-step 0, loaded before P was ready. */
    __device__ __forceinline__ void tile(const mma_places<S> &at, mma_position<S> from, int buffer, uint32_t (&v)[4][4]) {
#pragma unroll
        for (int k = 0; k < S::TILE / 16; k++) {
            uint32_t w[S::MT][4];
#pragma unroll
            for (int mt = 0; mt < S::MT; mt++)
                load_matrix4(w[mt], at.weight + buffer * S::P_BYTES + mt * 16 * S::P_PITCH + k * 32);
            if (k > 0)
                load_v(at, from, k, v);
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int mt = 0; mt < S::MT; mt++)
                    mma_bf16(o[mt][j], w[mt], v[j / 2][j % 2 * 2], v[j / 2][j % 2 * 2 + 1]);
        }
    }

    /* factor[h]: what head first + h is multiplied by. 64 bytes a quad and store. */
    __device__ __forceinline__ void write_bf16(const attn_args &a, int64_t b, int32_t first, const float *factor) const {
        const int warp = warp_id(), lane = lane_id();
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int32_t head = first + mt * 16 + half * 8 + lane / 4;
                const float f = factor[mt * 16 + half * 8 + lane / 4];
                uint32_t w[8];
#pragma unroll
                for (int j = 0; j < 8; j++)
                    w[j] = bf16_pack(o[mt][j][half * 2] * f, o[mt][j][half * 2 + 1] * f);
                const uint4 left = quad_transpose(w[0], w[1], w[2], w[3]), right = quad_transpose(w[4], w[5], w[6], w[7]);
                if (head < a.heads) {
                    uint4 *out = (uint4 *)(attn_row<ATTN_OUT>(a, b * a.heads + head) + warp * 128) + lane % 4;
                    out[0] = left;
                    out[4] = right;
                }
            }
    }
};

#endif

/* The pieces of tiled attention by mma.sync: a ring of KV tiles filled by asynchronous copies, scores, softmax and weighted sum
 * of one tile for one group of heads. attn/mma strings them together; a kernel that splits the KV dimension uses the same
 * pieces.
 *
 * A block is 8 warps. They share out the work three times:
 *   scores   S[heads][tile]: warp (kw, dw) of KEY_WARPS x DIM_WARPS takes NT * 8 keys and 512 / DIM_WARPS elements of d, so that
 *            its part of q lives in registers for good. The DIM_WARPS partial sums of a score meet in shared memory.
 *   weights  P[heads][tile]: warp w takes heads w * HPW .. and all keys, so that maximum and sum stay inside a warp.
 *   sum      O[heads][512] += P * KV: warp w takes 64 elements of d, all heads and keys.
 *
 * Shared memory holds KV rows of 1 KB whose 16-byte chunks are permuted within groups of 8 by swizzle(row).
 *
 * Where two groups of heads share a request, a pair of blocks can gather its list once: each fetches half of a tile's rows, and
 * when they are there gives them to the other, from shared memory to shared memory.
 */
#ifndef KBENCH_ATTN_MMA_CUH
#define KBENCH_ATTN_MMA_CUH

#include "mma_gather.cuh"

/* The warp's part of q, as A fragments of m16n8k16. The order of d within a chunk of 32 is free as long as q and kv agree:
 * thread t of a quad takes the 8 elements at 8t, one 16-byte load, words 0 and 1 for the first k-step and 2 and 3 for the
 * second. Heads past the end are 0. */
template <class S> struct mma_query {
    uint32_t a[S::MT][S::CHUNKS][2][4];

    __device__ __forceinline__ void load(const attn_args &args, int64_t b, int32_t first) {
        const int warp = warp_id(), lane = lane_id(), dw = warp % S::DIM_WARPS;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int32_t head = first + mt * 16 + half * 8 + lane / 4;
                /* a real operation, so that the four words of a fragment end up side by side */
                const uint32_t keep = head < args.heads ? ~0u : 0;
                const char *q = attn_row<ATTN_Q>(args, b * args.heads + min(head,
                    args.heads - 1)) + dw * S::CHUNKS * 64 + lane % 4 * 16;
#pragma unroll
                for (int c = 0; c < S::CHUNKS; c++) {
                    const uint4 v = __ldg((const uint4 *)(q + c * 64));
                    a[mt][c][0][half] = v.x & keep;
                    a[mt][c][0][half + 2] = v.y & keep;
                    a[mt][c][1][half] = v.z & keep;
                    a[mt][c][1][half + 2] = v.w & keep;
                }
            }
    }
};

/* The warp's partial scores of one tile, to shared memory. between(c): called between the products of chunks c and c + 1. */
template <class S, class F>
static __device__ __forceinline__ void mma_scores(const mma_query<S> &q, const mma_places<S> &at, int stage, F between) {
    const uint32_t even = at.key + stage * mma_shared<S>::STAGE_BYTES, odd = (at.key ^ 64) + stage * mma_shared<S>::STAGE_BYTES;
    float s[S::MT][S::NT][4] = {};
    uint4 k[2][S::NT];
#pragma unroll
    for (int nt = 0; nt < S::NT; nt++)
        k[0][nt] = load16_shared(even + nt * 8 * ROW_BYTES);
#pragma unroll
    for (int c = 0; c < S::CHUNKS; c++) {
        if (c + 1 < S::CHUNKS)
#pragma unroll
            for (int nt = 0; nt < S::NT; nt++)
                k[(c + 1) & 1][nt] = load16_shared((c & 1 ? even : odd) + (c + 1) / 2 * 128 + nt * 8 * ROW_BYTES);
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
            for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
                for (int mt = 0; mt < S::MT; mt++)
                    mma_bf16(s[mt][nt], q.a[mt][c][step], step ? k[c & 1][nt].z : k[c & 1][nt].x, step ? k[c & 1][nt].w
                        : k[c & 1][nt].y);
        between(c);
    }
#pragma unroll
    for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                store8_shared((at.give ^ nt * 32) + (mt * 16 + half * 8) * mma_shared<S>::SCORE_BYTES, s[mt][nt][half * 2],
                    s[mt][nt][half * 2 + 1]);
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
    __device__ __forceinline__ void tile(mma_shared<S> &sh, const mma_places<S> &at, int stage) {
        const int lane = (int)(threadIdx.x % S::LPH);
        float s[S::WEIGHTS], top = m;
#pragma unroll
        for (int v = 0; v < S::WEIGHTS; v += S::VEC) {
            float x[S::DIM_WARPS][S::VEC];
#pragma unroll
            for (int dw = 0; dw < S::DIM_WARPS; dw++)
                load_vec(at.take + dw * mma_shared<S>::PLANE_BYTES + v * S::LPH * 4, x[dw]);
#pragma unroll
            for (int e = 0; e < S::VEC; e++) {
                s[v + e] = x[0][e];
#pragma unroll
                for (int dw = 1; dw < S::DIM_WARPS; dw++)
                    s[v + e] += x[dw][e];
                s[v + e] = s[v + e] * SCALE_LOG2 + sh.bias[stage][(lane + v / S::VEC * S::LPH) * S::VEC + e];
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
            sh.old[head()] = old;
        __syncwarp();  /* the warp has read the scores that the weights now replace */
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
                store8_shared(at.put ^ v * S::LPH * 2, __uint_as_float(w[0]), __uint_as_float(w[1]));
            else
                store4_shared(at.put ^ v * S::LPH * 2, w[0]);
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
    static __device__ __forceinline__ void load_v(const mma_places<S> &at, int stage, int k, uint32_t (&v)[4][4]) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            load_matrix4_transposed(v[j], (at.value ^ j * 32) + k * 16 * ROW_BYTES + stage * mma_shared<S>::STAGE_BYTES);
    }

    static __device__ __forceinline__ void load_p(const mma_places<S> &at, int k, uint32_t (&w)[S::MT][4]) {
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
            load_matrix4(w[mt], (at.weight ^ k * 32) + mt * 16 * mma_shared<S>::SCORE_BYTES);
    }

    /* v[0]: the first fragments, loaded before P was ready. between(k): called between the products of k-steps k and k + 1. */
    template <class F> __device__ __forceinline__ void tile(const mma_places<S> &at, int stage, uint32_t (&v)[2][4][4], F between) {
        uint32_t w[2][S::MT][4];
        load_p(at, 0, w[0]);
#pragma unroll
        for (int k = 0; k < S::TILE / 16; k++) {
            if (k + 1 < S::TILE / 16) {
                load_p(at, k + 1, w[(k + 1) & 1]);
                load_v(at, stage, k + 1, v[(k + 1) & 1]);
            }
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int mt = 0; mt < S::MT; mt++)
                    mma_bf16(o[mt][j], w[k & 1][mt], v[k & 1][j / 2][j % 2 * 2], v[k & 1][j / 2][j % 2 * 2 + 1]);
            between(k);
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

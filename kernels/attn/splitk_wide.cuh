/* 64 heads a block: KV is gathered once where blocks of 32 do it twice. attn/splitk uses it where requests are many.
 *
 * Three kinds of warps work on three tiles at a time, so that what one waits for another covers:
 *   4 copy     a ring of tiles of 32 rows, as in mma_ws.cuh.
 *   4 score    S[64][32]: a warp takes 128 elements of d and all heads and keys; half of its part of q lives in registers, half in
 *              shared memory. Partial sums meet in shared memory; two lanes a head make its weights.
 *   8 sum      O[64][512] += P * KV: a warp takes 64 elements of d, 128 registers of a thread.
 * Weights go through two buffers with a barrier for full and one for empty; what passes is called a token. After an item's last
 * tile one more token brings the factors that end the sums. Registers are moved to those who need them.
 */
#ifndef KBENCH_ATTN_SPLITK_WIDE_CUH
#define KBENCH_ATTN_SPLITK_WIDE_CUH

#include "splitk.cuh"

template <int STAGES_> struct wide_shape : mma_shape<4, STAGES_, 2> {
    using base = mma_shape<4, STAGES_, 2>;
    static constexpr bool WIDE = true;
    static constexpr int  SCORERS = 4, COMPUTE = base::COMPUTE + SCORERS * WARP, THREADS = COMPUTE + base::COPY_WARPS * WARP;
    static constexpr int  QMT = 4, KEPT = 2, SPARE = base::CHUNKS - KEPT, QUERY = SCORERS * WARP;
    static constexpr int  FOR_SUMS = 168, FOR_SCORES = 144, FOR_COPIES = 32;
    static_assert(FOR_SUMS * 2 + FOR_SCORES + FOR_COPIES == 128 * 4, "a block has 128 registers a thread to share out");
};

template <int STAGES> struct __align__(1024) mma_shared<wide_shape<STAGES>> {
    using S = wide_shape<STAGES>;
    char     kv[STAGES][S::TILE][ROW_BYTES];
    float    score[S::DIM_WARPS][S::HEADS][S::TILE];  /* partial sums; key k of head h at k ^ (h % 4) * 8 */
    uint4    q[S::SPARE * 2 * S::QMT][S::QUERY];
    char     p[2][S::HEADS][S::P_PITCH];              /* weights, bf16 */
    float    bias[STAGES][S::TILE];
    float    old[2][S::HEADS];                        /* what the sums so far are to be multiplied by */
    uint64_t full[STAGES], empty[STAGES], given[2], taken[2];  /* mbarriers: of the ring, and of tokens */
};

/* Of a warp that sums. */
template <int STAGES> struct mma_places<wide_shape<STAGES>> {
    uint32_t weight, value;

    __device__ __forceinline__ mma_places(const mma_shared<wide_shape<STAGES>> &sh) {
        const int lane = lane_id();
        weight = pinned(shared_address(sh.p[0][lane % 16]) + lane / 16 * 16);
        value = pinned(shared_address(sh.kv[0][lane % 16]) + ring_chunk(lane, warp_id() * 8 + lane / 16));
    }
};

struct wide_token {
    int      buffer;
    uint32_t parity;

    __device__ __forceinline__ void next() {
        parity ^= (uint32_t)buffer;
        buffer ^= 1;
    }
};

/* By a warp whose lanes are all done with what the barrier guards. */
static __device__ __forceinline__ void warp_arrive(uint32_t barrier) {
    __syncwarp();
    if (lane_id() == 0)
        barrier_arrive(barrier);
}

/* Each lane that scores arrives for `given`: sh.old is read by ordinary loads, and a checker of races follows that without knowing
 * of warps. It takes no longer. */
template <class S> static __device__ __forceinline__ void wide_init(mma_shared<S> &sh) {
    if (threadIdx.x == 0)
#pragma unroll 1
        for (int buffer = 0; buffer < 2; buffer++) {
            barrier_init(shared_address(&sh.given[buffer]), S::QUERY);
            barrier_init(shared_address(&sh.taken[buffer]), S::WARPS);
        }
    mma_init(sh);
}

/* Warps 8 to 11. */
template <class S> struct wide_scorer {
    const attn_args &a;
    mma_shared<S>   &sh;
    split_query<S>   q;
    float            m, sum;
    uint32_t         key, give, take, put;

    __device__ __forceinline__ wide_scorer(const attn_args &args, mma_shared<S> &shared) : a(args), sh(shared), q(shared.q[0]) {
        const int lane = lane_id(), g = lane / 4, t = lane % 4, dw = warp_id() % S::DIM_WARPS;
        key = pinned(shared_address(sh.kv[0][lane % 8]) + ring_chunk(lane, dw * 16 + lane / 8));
        give = pinned(shared_address(&sh.score[dw][g][(t * 2) ^ g % 4 * 8]));
        take = pinned(shared_address(&sh.score[0][head()][half() * 4 ^ head() % 4 * 8]));
        put = pinned(shared_address(sh.p[0][head()]) + half() * 8);
    }

    static __device__ __forceinline__ int head() {
        return (int)(threadIdx.x % S::QUERY / 2);
    }
    static __device__ __forceinline__ int half() {
        return (int)(threadIdx.x % 2);
    }
    static __device__ __forceinline__ void sync() {
        asm volatile("bar.sync 1, %0;" ::"n"(S::QUERY) : "memory");
    }

    /* The warp's partial scores, 16 keys at a time. */
    __device__ __forceinline__ void scores(mma_position<S> from) const {
#pragma unroll
        for (int pass = 0; pass < 2; pass++) {
            float s[S::QMT][2][4] = {};
#pragma unroll
            for (int c = 0; c < S::CHUNKS; c++) {
                uint32_t k[2][4];
#pragma unroll
                for (int nt = 0; nt < 2; nt++)
                    load_matrix4(k[nt], ((key + from.stage * S::STAGE_BYTES) ^ c % 2 * 64) + (pass * 2 + nt) * 8 * ROW_BYTES
                        + c / 2 * 128);
#pragma unroll
                for (int step = 0; step < 2; step++)
#pragma unroll
                    for (int mt = 0; mt < S::QMT; mt++) {
                        uint32_t f[4];
                        q.get(mt, c, step, f);
#pragma unroll
                        for (int nt = 0; nt < 2; nt++)
                            mma_bf16(s[mt][nt], f, k[nt][step * 2], k[nt][step * 2 + 1]);
                    }
            }
            if (pass == 0)
                sync();  /* all have read the scores of the tile before */
#pragma unroll
            for (int nt = 0; nt < 2; nt++)
#pragma unroll
                for (int mt = 0; mt < S::QMT; mt++)
#pragma unroll
                    for (int low = 0; low < 2; low++)
                        store8_shared((give ^ (pass * 2 + nt) * 32) + (mt * 16 + low * 8) * S::SCORE_PITCH, s[mt][nt][low * 2],
                                      s[mt][nt][low * 2 + 1]);
        }
        sync();
    }

    /* A lane's keys: 4 of each 8. Every weight of the largest score so far is exactly 1. */
    __device__ __forceinline__ void weights(mma_position<S> from, wide_token token) {
        float s[4][4], top = m;
#pragma unroll
        for (int v = 0; v < 4; v++) {
            const float *bias = sh.bias[from.stage] + v * 8 + half() * 4;
            float x[4];
            floats(take ^ v * 32, s[v]);
#pragma unroll
            for (int dw = 1; dw < S::DIM_WARPS; dw++) {
                floats((take ^ v * 32) + dw * S::PLANE_BYTES, x);
#pragma unroll
                for (int e = 0; e < 4; e++)
                    s[v][e] += x[e];
            }
#pragma unroll
            for (int e = 0; e < 4; e++) {
                s[v][e] = s[v][e] * SCALE_LOG2 + bias[e];
                top = fmaxf(top, s[v][e]);
            }
        }
        top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, 1));
        const float base = top == -INFINITY ? 0.f : top, old = exp2_fast(m - base);
        m = top;
        sum *= old;
        barrier_wait(shared_address(&sh.taken[token.buffer]), token.parity ^ 1);
        if (half() == 0)
            sh.old[token.buffer][head()] = old;
#pragma unroll
        for (int v = 0; v < 4; v++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                s[v][e] = exp2_fast(s[v][e] - base);
                sum += s[v][e];
            }
            store8_shared(put + token.buffer * S::P_BYTES + v * 16, __uint_as_float(bf16_pack(s[v][0], s[v][1])),
                          __uint_as_float(bf16_pack(s[v][2], s[v][3])));
        }
        barrier_arrive(shared_address(&sh.given[token.buffer]));  /* each lane: see wide_init */
    }

    /* m and l, or lse and the factor that ends the sums. */
    __device__ __forceinline__ void finish(const partials &p, int64_t b, int32_t first, int32_t split, wide_token token) const {
        const float all = sum + __shfl_xor_sync(ALL_LANES, sum, 1);
        const int32_t h = first + head();
        float factor = 1;
        if (p.splits == 1)
            factor = attn_finish(m, all, attn_sink_log2(a, min(h, a.heads - 1)));
        barrier_wait(shared_address(&sh.taken[token.buffer]), token.parity ^ 1);
        if (half() == 0) {
            sh.old[token.buffer][head()] = factor;
            if (h < a.heads && p.splits == 1)
                *attn_lse(a, b, h) = all > 0 ? m * LN2 + logf(all) : -INFINITY;
            else if (h < a.heads)
                *partial_ml(p, b * a.heads + h, split) = make_float2(m, all);
        }
        barrier_arrive(shared_address(&sh.given[token.buffer]));
    }

    __device__ __forceinline__ void run(const split_counts &counts, const partials &p) {
        mma_position<S> from = {0, 0};
        wide_token token = {0, 0};
        for (int32_t item = (int32_t)blockIdx.x; item < counts.items; item += (int32_t)gridDim.x) {
            const int32_t split = item % counts.splits, group = item / counts.splits;
            const int32_t first = group % counts.groups * S::HEADS;
            const int64_t b = group / counts.groups;
            const split_range range = range_of<S>(attn_length_of(a, b).n, split, counts.splits);
            m = -INFINITY;
            sum = 0;
            q.load(a, b, first);
            for (int32_t i = range.begin; i < range.end; i += S::TILE) {
                mma_wait(sh, from);
                scores(from);
                weights(from, token);
                from = from.next();
                token.next();
            }
            finish(p, b, first, split, token);
            token.next();
        }
    }

private:
    static __device__ __forceinline__ void floats(uint32_t from, float (&ret)[4]) {
        const uint4 v = load16_shared(from);
        ret[0] = __uint_as_float(v.x), ret[1] = __uint_as_float(v.y), ret[2] = __uint_as_float(v.z), ret[3] = __uint_as_float(v.w);
    }
};

/* Warps 0 to 7. */
template <class S>
static __device__ __forceinline__ void wide_sum(const attn_args &a, mma_shared<S> &sh, const split_counts &counts,
    const partials &p) {
    const mma_places<S> at(sh);
    mma_sums<S> sums;
    mma_position<S> from = {0, 0};
    wide_token token = {0, 0};
    for (int32_t item = (int32_t)blockIdx.x; item < counts.items; item += (int32_t)gridDim.x) {
        const int32_t split = item % counts.splits, group = item / counts.splits;
        const int32_t first = group % counts.groups * S::HEADS;
        const int64_t b = group / counts.groups;
        const split_range range = range_of<S>(attn_length_of(a, b).n, split, counts.splits);
        sums.clear();
        for (int32_t i = range.begin; i < range.end; i += S::TILE) {
            uint32_t v[4][4];
            mma_wait(sh, from);
            sums.load_v(at, from, 0, v);
            barrier_wait(shared_address(&sh.given[token.buffer]), token.parity);
            sums.scale(sh.old[token.buffer]);
            sums.tile(at, from, token.buffer, v);
            mma_release(sh, from);
            if (lane_id() == 0)
                barrier_arrive(shared_address(&sh.taken[token.buffer]));
            from = from.next();
            token.next();
        }
        barrier_wait(shared_address(&sh.given[token.buffer]), token.parity);
        if (p.splits == 1)
            sums.write_bf16(a, b, first, sh.old[token.buffer]);
        else
            split_write(a, p, sums, b, first, split);
        warp_arrive(shared_address(&sh.taken[token.buffer]));
        token.next();
    }
}

#endif

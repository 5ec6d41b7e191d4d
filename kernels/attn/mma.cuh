/* The pieces of tiled attention by mma.sync: a ring of KV tiles filled by asynchronous copies, scores, softmax and weighted sum of one
 * tile for one group of heads. attn/mma strings them together; a kernel that splits the KV dimension uses the same pieces.
 *
 * A block is 8 warps. They share out the work twice:
 *   scores   S[heads][tile]: warp (kw, dw) of KEY_WARPS x DIM_WARPS takes NT*8 keys and 512 / DIM_WARPS elements of d, so that its part of q
 *            lives in registers for good. The DIM_WARPS partial sums of a score are exchanged through shared memory; then each warp owns
 *            an equal share of the finished scores of its keys.
 *   sum      O[heads][512] += P[heads][tile] * KV: warp w takes 64 elements of d, all heads and keys. P goes through shared memory in bf16.
 *
 * Shared memory holds KV rows of 1 KB whose 16-byte chunks are permuted within groups of 8 by swizzle(row).
 */
#ifndef KBENCH_ATTN_MMA_CUH
#define KBENCH_ATTN_MMA_CUH

#include "attn.cuh"

/* MT: m-tiles of 16 heads. TILE: keys a tile. KEY_WARPS: see above. STAGES: tiles in the ring. */
template <int MT_, int TILE_, int KEY_WARPS_, int STAGES_> struct mma_shape {
    static constexpr int MT = MT_, HEADS = MT * 16, TILE = TILE_, STAGES = STAGES_;
    static constexpr int WARPS = 8, THREADS = WARPS * WARP;
    static constexpr int KEY_WARPS = KEY_WARPS_, DIM_WARPS = WARPS / KEY_WARPS;
    static constexpr int NT = TILE / KEY_WARPS / 8;                 /* n-tiles of 8 keys a warp scores */
    static constexpr int CHUNKS = ATTN_D / DIM_WARPS / 32;          /* of 32 elements of d, two k-steps */
    static constexpr int SCORES = MT * NT * 4;                      /* a thread's partial scores, in order (mt, half, nt, e) */
    static constexpr int OWNED = SCORES / DIM_WARPS;                /* of them its own in the end */
    static constexpr int ROWS = OWNED > 2 * NT ? OWNED / (2 * NT) : 1;  /* heads that they belong to */
    static constexpr int COLS = OWNED / ROWS;                       /* keys of each */
    static constexpr int PARTS = KEY_WARPS * (2 * NT / COLS);       /* warps that own scores of one head */
    static constexpr int P_STRIDE = TILE * 2 + 16;                  /* bytes; the 16 spread the rows over the banks */
    static constexpr int TILE_ROWS = TILE / WARPS;                  /* rows that a warp copies */
    static_assert(SCORES % DIM_WARPS == 0 && OWNED % 2 == 0 && TILE_ROWS <= WARP && TILE % 16 == 0, "no such shape");
};

template <class S> struct __align__(128) mma_shared {
    char  kv[S::STAGES][S::TILE][ROW_BYTES];
    float exchange[S::WARPS][S::DIM_WARPS > 1 ? S::DIM_WARPS - 1 : 1][S::OWNED / 2][WARP][2];
    char  p[S::HEADS][S::P_STRIDE];
    float bias[S::STAGES][S::TILE];         /* 0, or -inf where a hole or the end is */
    float top[S::PARTS][S::HEADS];          /* per part: largest score of the tile; at the end: sum */
    float old[S::HEADS];                    /* what the sums so far are to be multiplied by */
    float best[S::HEADS];                   /* at the end: largest score of all */
};

/* A bijection of row % 8: the 8 rows of an ldmatrix land in 8 different chunks, and so do 2 rows x 4 chunks of a 16-byte load. */
static __device__ __forceinline__ int swizzle(int row) {
    return (row & 1) << 2 | (row >> 1 & 3);
}

/* What is next to be copied. Items are (request, group of heads), shared out over the blocks; the copies run ahead of the arithmetic, also
 * into the next item. */
template <class S> struct mma_cursor {
    int32_t     item, items, groups, i;
    attn_length len, next_len;  /* of this item and of the block's next */
    int32_t     slot;           /* lane l < TILE_ROWS: slot of the warp's row l of the tile that is next */

    __device__ __forceinline__ void enter(const attn_args &a) {
        while (item < items && i >= len.n) {
            item += (int32_t)gridDim.x;
            i = 0;
            len = next_len;
            const int64_t after = (int64_t)item + gridDim.x;
            if (after < items)
                next_len = attn_length_of(a, after / groups);
        }
        const int row = (int)threadIdx.x / WARP * S::TILE_ROWS + (int)threadIdx.x % WARP;
        slot = -1;
        if (item < items && threadIdx.x % WARP < S::TILE_ROWS)
            slot = attn_slot(a, item / groups, len, i + row);
    }

    __device__ __forceinline__ void start(const attn_args &a, int32_t items_, int32_t groups_) {
        item = (int32_t)blockIdx.x;
        items = items_;
        groups = groups_;
        i = 0;
        len = next_len = {0, 0};
        if (item < items)
            len = attn_length_of(a, item / groups);
        if ((int64_t)item + gridDim.x < items)
            next_len = attn_length_of(a, (item + (int32_t)gridDim.x) / groups);
        enter(a);
    }

    /* Starts the copies of the next tile, if there is one, into stage `stage`; always closes one group of copies. */
    __device__ __forceinline__ void copy(const attn_args &a, mma_shared<S> &sh, int stage) {
        if (item < items) {
            const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
            if (lane < S::TILE_ROWS)
                sh.bias[stage][warp * S::TILE_ROWS + lane] = slot < 0 ? -INFINITY : 0.f;
#pragma unroll
            for (int r = 0; r < S::TILE_ROWS; r++) {
                const int row = warp * S::TILE_ROWS + r;
                const int32_t s = __shfl_sync(ALL_LANES, slot, r);
                const char *from = attn_kv(a, len, i + row, max(s, 0)) + lane * 16;
                const uint32_t to = shared_address(sh.kv[stage][row]) + ((lane ^ swizzle(row)) << 4);
                copy16_async(to, from, s >= 0);
                copy16_async(to + ROW_BYTES / 2, from + ROW_BYTES / 2, s >= 0);
            }
            i += S::TILE;
            enter(a);
        }
        copy_commit();
    }
};

/* The warp's part of q, as A fragments of m16n8k16. The order of d within a chunk of 32 is free as long as q and kv agree: thread t of a quad
 * takes the 8 elements at 8t, one 16-byte load, words 0 and 1 for the first k-step and 2 and 3 for the second. Heads past the end are 0. */
template <class S> struct mma_query {
    uint4 row[S::MT][S::CHUNKS][2];

    __device__ __forceinline__ void load(const attn_args &a, int64_t b, int32_t head) {
        const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, dw = warp % S::DIM_WARPS;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int32_t h = head + mt * 16 + half * 8 + lane / 4;
                const char *q = attn_row<ATTN_Q>(a, b * a.heads + min(h, a.heads - 1)) + dw * S::CHUNKS * 64 + lane % 4 * 16;
#pragma unroll
                for (int c = 0; c < S::CHUNKS; c++)
                    row[mt][c][half] = h < a.heads ? __ldg((const uint4 *)(q + c * 64)) : make_uint4(0, 0, 0, 0);
            }
    }
};

/* Scores of one tile: each warp's finished share, in units of log 2, holes -inf. Ends before the exchange of maxima. */
template <class S>
static __device__ __forceinline__ void mma_scores(const mma_query<S> &q, mma_shared<S> &sh, int stage, float (&own)[S::OWNED]) {
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, kw = warp / S::DIM_WARPS, dw = warp % S::DIM_WARPS;
    const int g = lane / 4, t = lane % 4;
    float s[S::MT][S::NT][4] = {};
    /* Rows g + 8 * nt share g's swizzle. The chunk's bit 2 is c's parity, so two addresses and constants reach everything. */
    const uint32_t kv = shared_address(sh.kv[stage][kw * S::NT * 8 + g]) + dw * S::CHUNKS * 64;
    const uint32_t even = kv + ((t ^ swizzle(g)) << 4), odd = kv + (((t | 4) ^ swizzle(g)) << 4);
#pragma unroll
    for (int c = 0; c < S::CHUNKS; c++)
#pragma unroll
        for (int nt = 0; nt < S::NT; nt++) {
            uint4 k;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(k.x), "=r"(k.y), "=r"(k.z), "=r"(k.w)
                         : "r"((c & 1 ? odd : even) + c / 2 * 128 + nt * 8 * ROW_BYTES) : "memory");
#pragma unroll
            for (int mt = 0; mt < S::MT; mt++) {
                const uint4 lo = q.row[mt][c][0], hi = q.row[mt][c][1];
                mma_bf16(s[mt][nt], lo.x, hi.x, lo.y, hi.y, k.x, k.y);
                mma_bf16(s[mt][nt], lo.z, hi.z, lo.w, hi.w, k.z, k.w);
            }
        }

    float flat[S::SCORES];
#pragma unroll
    for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
        for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                flat[((mt * 2 + e / 2) * S::NT + nt) * 2 + e % 2] = s[mt][nt][e];

    /* Give the others theirs, take mine from them; in a fixed order of dw, so that the sum is the same in every run. */
#pragma unroll
    for (int o = 0; o < S::DIM_WARPS; o++)
        if (o != dw)
#pragma unroll
            for (int j = 0; j < S::OWNED; j += 2)
                *(float2 *)sh.exchange[kw * S::DIM_WARPS + o][(dw - o - 1) & (S::DIM_WARPS - 1)][j / 2][lane] =
                    make_float2(flat[o * S::OWNED + j], flat[o * S::OWNED + j + 1]);
    if (S::DIM_WARPS > 1)
        asm volatile("bar.sync %0, %1;" ::"r"(kw + 1), "n"(S::DIM_WARPS * WARP) : "memory");
#pragma unroll
    for (int o = 0; o < S::DIM_WARPS; o++)
        if (o == dw)
#pragma unroll
            for (int j = 0; j < S::OWNED; j++)
                own[j] = flat[o * S::OWNED + j];
#pragma unroll
    for (int from = 0; from < S::DIM_WARPS - 1; from++)
#pragma unroll
        for (int j = 0; j < S::OWNED; j += 2) {
            const float2 part = *(const float2 *)sh.exchange[warp][from][j / 2][lane];
            own[j] += part.x;
            own[j + 1] += part.y;
        }
}

/* Which head and key an owned score belongs to: row r < ROWS, column c < COLS of the warp's share. */
template <class S> struct mma_owner {
    int head, key, part;  /* of row 0 and column 0; row r is head + 8 * r, column c is key + c / 2 * 8 + c % 2 */

    __device__ __forceinline__ mma_owner() {
        const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, kw = warp / S::DIM_WARPS, dw = warp % S::DIM_WARPS;
        const int first = dw * S::OWNED, row = first / (2 * S::NT), nt = first % (2 * S::NT) / 2;
        head = row * 8 + lane / 4;
        key = (kw * S::NT + nt) * 8 + lane % 4 * 2;
        part = kw * (2 * S::NT / S::COLS) + nt * 2 / S::COLS;
    }
};

static __device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 2));
}
static __device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(ALL_LANES, x, 1);
    return x + __shfl_xor_sync(ALL_LANES, x, 2);
}

/* Running maximum and the thread's own part of the running sum, of the heads it owns scores of. */
template <class S> struct mma_softmax {
    float m[S::ROWS], sum[S::ROWS];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int r = 0; r < S::ROWS; r++) {
            m[r] = -INFINITY;
            sum[r] = 0;
        }
    }

    /* Scores in, weights P of the tile to shared memory, factor for the older sums to sh.old. Two block barriers. */
    __device__ __forceinline__ void tile(mma_shared<S> &sh, int stage, const mma_owner<S> &at, float (&s)[S::OWNED]) {
        float top[S::ROWS];
#pragma unroll
        for (int r = 0; r < S::ROWS; r++) {
            top[r] = -INFINITY;
#pragma unroll
            for (int c = 0; c < S::COLS; c++) {
                float &x = s[r * S::COLS + c];
                x = x * SCALE_LOG2 + sh.bias[stage][at.key + c / 2 * 8 + c % 2];
                top[r] = fmaxf(top[r], x);
            }
            top[r] = quad_max(top[r]);
            if (threadIdx.x % 4 == 0)
                sh.top[at.part][at.head + 8 * r] = top[r];
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < S::ROWS; r++) {
            float now = m[r];
#pragma unroll
            for (int part = 0; part < S::PARTS; part++)
                now = fmaxf(now, sh.top[part][at.head + 8 * r]);
            const float base = now == -INFINITY ? 0.f : now, old = exp2f(m[r] - base);
            m[r] = now;
            sum[r] *= old;
            if (at.part == 0 && threadIdx.x % 4 == 0)
                sh.old[at.head + 8 * r] = old;
#pragma unroll
            for (int c = 0; c < S::COLS; c += 2) {
                const float p0 = exp2f(s[r * S::COLS + c] - base), p1 = exp2f(s[r * S::COLS + c + 1] - base);
                sum[r] += p0 + p1;
                *(uint32_t *)&sh.p[at.head + 8 * r][(at.key + c / 2 * 8) * 2] = bf16_pack(p0, p1);
            }
        }
        __syncthreads();
    }

    /* Every head's maximum to sh.best, and its sum, per part, to sh.top. One block barrier. */
    __device__ __forceinline__ void publish(mma_shared<S> &sh, const mma_owner<S> &at) {
#pragma unroll
        for (int r = 0; r < S::ROWS; r++) {
            const float all = quad_sum(sum[r]);
            if (threadIdx.x % 4 == 0) {
                sh.top[at.part][at.head + 8 * r] = all;
                if (at.part == 0)
                    sh.best[at.head + 8 * r] = m[r];
            }
        }
        __syncthreads();
    }
};

/* Sum of one head, after publish, the same in every thread that asks. */
template <class S> static __device__ __forceinline__ float mma_total(const mma_shared<S> &sh, int head) {
    float sum = 0;
#pragma unroll
    for (int part = 0; part < S::PARTS; part++)
        sum += sh.top[part][head];
    return sum;
}

/* Lane t of each quad gives word t of 4 chunks and gets the 4 words of chunk t. */
static __device__ __forceinline__ uint4 quad_transpose(uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3) {
    const bool upper = threadIdx.x & 2, odd = threadIdx.x & 1;
    const uint32_t x = __shfl_xor_sync(ALL_LANES, upper ? w0 : w2, 2), y = __shfl_xor_sync(ALL_LANES, upper ? w1 : w3, 2);
    if (upper)
        w0 = x, w1 = y;
    else
        w2 = x, w3 = y;
    const uint32_t z = __shfl_xor_sync(ALL_LANES, odd ? w0 : w1, 1), u = __shfl_xor_sync(ALL_LANES, odd ? w2 : w3, 1);
    return odd ? make_uint4(z, w1, u, w3) : make_uint4(w0, z, w2, u);
}

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
        const int g = (int)threadIdx.x % WARP / 4;
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

    __device__ __forceinline__ void tile(const mma_shared<S> &sh, int stage) {
        const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, row = lane % 16;
        const uint32_t kv = shared_address(sh.kv[stage][row]) + warp * 128, p = shared_address(sh.p[row]) + lane / 16 * 16;
        const int mix = swizzle(row) ^ lane / 16;
#pragma unroll
        for (int k = 0; k < S::TILE / 16; k++) {
            uint32_t w[S::MT][4];
#pragma unroll
            for (int mt = 0; mt < S::MT; mt++)
                load_matrix4(w[mt], p + mt * 16 * S::P_STRIDE + k * 32);
#pragma unroll
            for (int j = 0; j < 8; j += 2) {
                uint32_t v[4];
                load_matrix4_transposed(v, kv + k * 16 * ROW_BYTES + ((j ^ mix) << 4));
#pragma unroll
                for (int mt = 0; mt < S::MT; mt++) {
                    mma_bf16(o[mt][j], w[mt][0], w[mt][1], w[mt][2], w[mt][3], v[0], v[1]);
                    mma_bf16(o[mt][j + 1], w[mt][0], w[mt][1], w[mt][2], w[mt][3], v[2], v[3]);
                }
            }
        }
    }

    /* factor(mt, half): what heads mt * 16 + half * 8 + g are multiplied by. 64 bytes a quad and store. */
    template <class F> __device__ __forceinline__ void write_bf16(const attn_args &a, int64_t b, int32_t first, F factor) const {
        const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int32_t head = first + mt * 16 + half * 8 + lane / 4;
                const float f = factor(mt * 16 + half * 8 + lane / 4);
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

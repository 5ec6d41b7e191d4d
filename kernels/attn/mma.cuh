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

#include "attn.cuh"
#include "pair.cuh"

/* MT: m-tiles of 16 heads. TILE: keys a tile. KEY_WARPS: see above. STAGES: tiles in the ring. BLOCKS: 2: a pair gathers. */
template <int MT_, int TILE_, int KEY_WARPS_, int STAGES_, int BLOCKS_ = 1> struct mma_shape {
    static constexpr int MT = MT_, HEADS = MT * 16, TILE = TILE_, STAGES = STAGES_, BLOCKS = BLOCKS_;
    static constexpr int WARPS = 8, THREADS = WARPS * WARP;
    static constexpr int KEY_WARPS = KEY_WARPS_, DIM_WARPS = WARPS / KEY_WARPS;
    static constexpr int NT = TILE / KEY_WARPS / 8;          /* n-tiles of 8 keys a warp scores */
    static constexpr int CHUNKS = ATTN_D / DIM_WARPS / 32;   /* of 32 elements of d, two k-steps */
    static constexpr int HPW = HEADS / WARPS;                /* heads whose weights a warp makes */
    static constexpr int LPH = WARP / HPW;                   /* lanes a head */
    static constexpr int WEIGHTS = TILE / LPH;               /* weights a lane makes */
    static constexpr int VEC = WEIGHTS < 4 ? WEIGHTS : 4;    /* of them side by side */
    static constexpr int OWN = TILE / BLOCKS;                /* rows of a tile that a block gathers */
    static constexpr int TILE_ROWS = OWN / WARPS;            /* rows that a warp copies, */
    static constexpr int PASSES = TILE_ROWS / 4;             /* four at a time, 128 bytes of each */
    static_assert(TILE_ROWS % 4 == 0 && WEIGHTS % VEC == 0 && VEC % 2 == 0 && CHUNKS % 2 == 0 && TILE >= 32, "no such shape");
    static_assert(BLOCKS == 1 || STAGES >= 3, "no time to give rows away");

    /* Of a pair, which works on one item at a time; 0 in a block alone. */
    static __device__ __forceinline__ int32_t rank() {
        return BLOCKS == 1 ? 0 : (int32_t)blockIdx.x % BLOCKS;
    }
    /* An item is a request and a group of heads, or a pair of groups; the first head of this block's. */
    static __device__ __forceinline__ int32_t first_head(int32_t item, int32_t groups) {
        return (item % groups * BLOCKS + rank()) * HEADS;
    }
    static __device__ __forceinline__ int32_t first_item() {
        return (int32_t)blockIdx.x / BLOCKS;  /* there are no more blocks than work for them */
    }
    static __device__ __forceinline__ int32_t item_step() {
        return (int32_t)gridDim.x / BLOCKS;
    }
};

template <class S> struct __align__(1024) mma_shared {
    char  kv[S::STAGES][S::TILE][ROW_BYTES];
    /* partial sums, key k of head h at k ^ (h % 4) * 8; the weights of head h in bf16 then take the first 128 bytes of
     * score[0][h], chunk c at c ^ h % 8 */
    float score[S::DIM_WARPS][S::HEADS][S::TILE];
    float bias[S::STAGES][S::TILE];                /* 0, or -inf where a hole or the end is */
    float old[S::HEADS];                           /* what the sums so far are to be multiplied by */
    float factor[S::HEADS];                        /* and in the end */
    uint64_t full[S::STAGES];                      /* mbarriers of a pair: the other's rows are there */

    static constexpr int STAGE_BYTES = S::TILE * ROW_BYTES, SCORE_BYTES = S::TILE * 4, PLANE_BYTES = S::HEADS * S::TILE * 4;
};

/* A bijection of row % 8: the 8 rows of an ldmatrix land in 8 different chunks, and so do 2 rows x 4 chunks of a 16-byte load. */
static __device__ __forceinline__ int swizzle(int row) {
    return (row & 1) << 2 | (row >> 1 & 3);
}

/* Shared-memory addresses of a thread, for stage 0; constants and XOR with constants lead from them to everything it touches. */
template <class S> struct mma_places {
    uint32_t key;     /* rows g + 8 * nt of the warp's keys, its first chunk; ^ 64 for odd chunks, as g fixes the swizzle */
    uint32_t give;    /* its partial scores; ^ 32 * nt */
    uint32_t take;    /* the scores whose weights it makes */
    uint32_t put;     /* those weights; ^ 64 for the second half */
    uint32_t weight;  /* rows of P for ldmatrix; ^ 32 * k-step */
    uint32_t value;   /* rows of V for ldmatrix.trans; ^ 32 * pair of n-tiles */
    uint32_t copy;    /* the 16 bytes of its first row to be copied; its second row is 4 further, hence ^ 32 */

    __device__ __forceinline__ mma_places(const mma_shared<S> &sh) {
        const int warp = warp_id(), lane = lane_id(), g = lane / 4, t = lane % 4, kw = warp / S::DIM_WARPS,
            dw = warp % S::DIM_WARPS;
        const int h = (int)(threadIdx.x / S::LPH), i = (int)(threadIdx.x % S::LPH) * S::VEC,
            row = S::rank() * S::OWN + warp * S::TILE_ROWS + lane / 8;
        key = pinned(shared_address(sh.kv[0][kw * S::NT * 8 + g]) + dw * S::CHUNKS * 64 + ((t ^ swizzle(g)) << 4));
        give = pinned(shared_address(&sh.score[dw][g][(kw * S::NT * 8 + t * 2) ^ g % 4 * 8]));
        take = pinned(shared_address(&sh.score[0][h][i ^ h % 4 * 8]));
        put = pinned(shared_address(sh.score[0][h]) + ((i / 8 ^ h % 8) << 4) + i % 8 * 2);
        weight = pinned(shared_address(sh.score[0][lane % 16]) + ((lane / 16 ^ lane % 8) << 4));
        value = pinned(shared_address(sh.kv[0][lane % 16]) + warp * 128 + ((lane / 16 ^ swizzle(lane)) << 4));
        copy = pinned(shared_address(sh.kv[0][row]) + ((lane % 8 ^ swizzle(row)) << 4));
    }
};

/* The tiles to come. Items are (request, group of heads), shared out over the blocks; the copies run ahead of the arithmetic,
 * also into the next item, and the slots run two tiles ahead of the copies. */
template <class S> struct mma_cursor {
    struct tile {
        int32_t slot[S::PASSES];    /* of the lane's rows: row and row + 4; negative: hole or end */
        int32_t window;             /* how many rows of the tile are from the window cache */
    };
    tile        next, after;
    int32_t     row;                /* the lane's first row in a tile */
    int32_t     item, items, groups, i;
    attn_length len, next_len;      /* of item and of the block's next one */
    const char *window, *topk;      /* lists of item, so that entry i is at i * 4 in either */
    const char *from[S::PASSES];    /* of the tile begun: the lane's first 16 bytes of a row */

    /* q and slot lists of an item to L2, so that nobody waits for memory when it comes up: 128 bytes a thread and step. */
    __device__ __forceinline__ void announce(const attn_args &a, int32_t coming) const {
        if (coming >= items)
            return;
        const int64_t request = coming / groups;
        const int32_t first = S::first_head(coming, groups);
        for (int at = (int)threadIdx.x * 128; at < a.topk * 4 + 124; at += S::THREADS * 128)
            prefetch_l2(attn_row<ATTN_TOPK_SLOT>(a, request) + min(at, a.topk * 4 - 4));
        for (int at = (int)threadIdx.x * 128; at < a.window * 4 + 124; at += S::THREADS * 128)
            prefetch_l2(attn_row<ATTN_WINDOW_SLOT>(a, request) + min(at, a.window * 4 - 4));
        for (int at = (int)threadIdx.x * 128; at < S::HEADS * ROW_BYTES; at += S::THREADS * 128)
            if (first + at / ROW_BYTES < a.heads)
                prefetch_l2(attn_row<ATTN_Q>(a, request * a.heads + first + at / ROW_BYTES) + at % ROW_BYTES);
    }

    __device__ __forceinline__ void enter(const attn_args &a, attn_length length) {
        const int64_t b = item / groups;
        i = 0;
        len = length;
        window = attn_row<ATTN_WINDOW_SLOT>(a, b);
        topk = attn_row<ATTN_TOPK_SLOT>(a, b) - (int64_t)len.window * 4;
        announce(a, item + S::item_step());
        next_len = attn_length_of(a, min(item + S::item_step(), items - 1) / groups);
    }

    /* After the last item every entry is past the end. */
    __device__ __forceinline__ tile look(const attn_args &a) {
        while (i >= len.n && item < items) {
            item += S::item_step();
            if (item < items)
                enter(a, next_len);
        }
        tile t;
        t.window = len.window - i;
#pragma unroll
        for (int p = 0; p < S::PASSES; p++) {
            const int32_t entry = i + row + p * 4;
            t.slot[p] = -1;
            if (entry < len.n)
                t.slot[p] = __ldg((const int32_t *)(entry < len.window ? window : topk) + entry);
        }
        i += S::TILE;
        return t;
    }

    /* Returns the other block's rows of the first tile. */
    __device__ __forceinline__ tile start(const attn_args &a, int32_t items_, int32_t groups_) {
        items = items_;
        groups = groups_;
        item = S::first_item();
        row = (int32_t)pinned(S::rank() * S::OWN + warp_id() * S::TILE_ROWS + lane_id() / 8);
        announce(a, item);
        enter(a, attn_length_of(a, item / groups));
        tile other = {};
        if constexpr (S::BLOCKS == 2) {
            row ^= S::OWN;
            other = look(a);
            row ^= S::OWN;
            i -= S::TILE;
        }
        next = look(a);
        after = look(a);
        return other;
    }

    /* The copies of the next tile into stage `stage`: begin, every part of 0..7 once, end, which closes one group of copies.
     * Part by part so that they can be issued between products. After the last tile: zeros that nobody reads. */
    __device__ __forceinline__ void begin(const attn_args &a, mma_shared<S> &sh, int stage) {
#pragma unroll
        for (int p = 0; p < S::PASSES; p++) {
            const bool first = row + p * 4 < next.window;
            const char *base = (const char *)a.t[first ? ATTN_WINDOW_KV : ATTN_TOPK_KV].p + lane_id() % 8 * 16;
            const uint64_t stride = (uint64_t)(first ? a.t[ATTN_WINDOW_KV].stride : a.t[ATTN_TOPK_KV].stride);
            from[p] = base + (uint32_t)max(next.slot[p], 0) * stride;
            if (lane_id() % 8 == 0)
                sh.bias[stage][row + p * 4] = next.slot[p] < 0 ? -INFINITY : 0.f;
        }
    }
    __device__ __forceinline__ void part(const mma_places<S> &at, int stage, int j) const {
#pragma unroll
        for (int p = 0; p < S::PASSES; p++)
            copy16_async((at.copy ^ p * 32) + p * 4 * ROW_BYTES + j * 128 + stage * mma_shared<S>::STAGE_BYTES, from[p] + j * 128,
                         next.slot[p] >= 0);
    }
    __device__ __forceinline__ void end(const attn_args &a) {
        copy_commit();
        next = after;
        after = look(a);
    }
    __device__ __forceinline__ void copy(const attn_args &a, mma_shared<S> &sh, const mma_places<S> &at, int stage) {
        begin(a, sh, stage);
#pragma unroll
        for (int j = 0; j < 8; j++)
            part(at, stage, j);
        end(a);
    }

    /* The other block's rows of the first tile, into stage 0, beside one's own. */
    __device__ __forceinline__ void copy_other(const attn_args &a, mma_shared<S> &sh, mma_places<S> at, const tile &other) {
        const tile own = next;
        at.copy += (S::rank() == 0 ? S::OWN : -S::OWN) * ROW_BYTES;
        next = other;
        row ^= S::OWN;
        begin(a, sh, 0);
#pragma unroll
        for (int j = 0; j < 8; j++)
            part(at, 0, j);
        next = own;
        row ^= S::OWN;
    }
};

/* The other block of a pair; of a block alone nothing is left of it. Both run through the same tiles in the same order. The first
 * tile both fetch whole, since there is nothing yet to be done while rows pass over; of each further one a half is given while the
 * tile before it is worked on. That the other's half of tile t has come says that it has its whole tile t - 1 and is done with tile
 * t - 2: a place in the ring needs no word that it is free, neither for rows that come nor for one's own that have gone. */
template <class S> struct mma_partner {
    static constexpr bool HERE = S::BLOCKS == 2;
    uint32_t parity;  /* of full[stage] for the next tile to be taken */

    __device__ __forceinline__ void begin(mma_shared<S> &sh) {
        parity = 0;
        if constexpr (HERE) {
            if (threadIdx.x < S::STAGES)
                barrier_init(shared_address(&sh.full[threadIdx.x]), 1);
            if (threadIdx.x == 0)
                barrier_arrive(shared_address(&sh.full[0]));
            __syncwarp();
            pair_arrive();
        }
    }

    /* The other has begun, too. */
    static __device__ __forceinline__ void meet() {
        if constexpr (HERE)
            pair_wait();
    }

    /* Before a __syncthreads(): this thread's copies of the tile to be given are there. */
    static __device__ __forceinline__ void publish() {
        if constexpr (HERE)
            pair_publish();
    }

    /* After it; as much is to come. */
    __device__ __forceinline__ void give(mma_shared<S> &sh, int stage) const {
        if constexpr (HERE)
            if (threadIdx.x == 0) {
                const uint32_t full = shared_address(&sh.full[stage]), other = (uint32_t)S::rank() ^ 1;
                pair_expect(full, S::OWN * (ROW_BYTES + 4));
                pair_give(shared_address(sh.kv[stage][S::rank() * S::OWN]), S::OWN * ROW_BYTES, full, other);
                pair_give(shared_address(&sh.bias[stage][S::rank() * S::OWN]), S::OWN * 4, full, other);
            }
    }

    /* The other's rows of the tile are there. */
    __device__ __forceinline__ void take(const mma_shared<S> &sh, int stage) {
        if constexpr (HERE) {
            barrier_wait(shared_address(&sh.full[stage]), parity);
            parity ^= stage == S::STAGES - 1;
        }
    }

    /* A tile was given that nobody works on. */
    __device__ __forceinline__ void end(const mma_shared<S> &sh, int stage) {
        if constexpr (HERE) {
            take(sh, stage);
            pair_arrive();
            pair_wait();
        }
    }
};

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

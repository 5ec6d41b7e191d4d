/* What attn/mma gathers, and where: the shape of a block, its shared memory, and the ring of KV tiles, filled by one block alone or
 * by two for each other. */
#ifndef KBENCH_ATTN_MMA_GATHER_CUH
#define KBENCH_ATTN_MMA_GATHER_CUH

#include "attn.cuh"
#include "pair.cuh"

/* MT: m-tiles of 16 heads. TILE: keys a tile. KEY_WARPS: see mma.cuh. STAGES: tiles in the ring. BLOCKS: 2: a pair gathers. */
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
    attn_lists  lists;              /* of item */
    const char *from[S::PASSES];    /* of the tile begun: the lane's first 16 bytes of a row */

    /* q and slot lists of an item to L2. */
    __device__ __forceinline__ void announce(const attn_args &a, int32_t coming) const {
        if (coming < items)
            attn_announce<S::THREADS, S::HEADS>(a, coming / groups, S::first_head(coming, groups), (int32_t)threadIdx.x);
    }

    __device__ __forceinline__ void enter(const attn_args &a, attn_length length) {
        const int64_t b = item / groups;
        i = 0;
        len = length;
        lists = attn_lists_of(a, b, len.window);
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
                t.slot[p] = lists.slot(entry, entry < len.window);
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
            if (threadIdx.x == 0) {  /* one for all, behind a branch: see mma_init of mma_ws_ring.cuh */
#pragma unroll 1
                for (int stage = 0; stage < S::STAGES; stage++)
                    barrier_init(shared_address(&sh.full[stage]), 1);
                barrier_arrive(shared_address(&sh.full[0]));
            }
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

#endif

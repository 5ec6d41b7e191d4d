/* What attn/mma_ws gathers, and where: the shape of a block, its shared memory, and the ring of KV tiles with the warps that fill
 * it. */
#ifndef KBENCH_ATTN_MMA_WS_RING_CUH
#define KBENCH_ATTN_MMA_WS_RING_CUH

#include "attn.cuh"

/* MT: m-tiles of 16 heads. STAGES: tiles in the ring. BUFFERS: of scores and weights; with two the arithmetic of three tiles
 * overlaps. */
template <int MT_, int STAGES_, int BUFFERS_> struct mma_shape {
    static constexpr int MT = MT_, HEADS = MT * 16, STAGES = STAGES_, BUFFERS = BUFFERS_, TILE = 32;
    static constexpr int WARPS = 8, COMPUTE = WARPS * WARP, COPY_WARPS = 4, THREADS = COMPUTE + COPY_WARPS * WARP, KEY_WARPS = 2,
        DIM_WARPS = 4;
    static constexpr int NT = TILE / KEY_WARPS / 8;          /* n-tiles of 8 keys a warp scores */
    static constexpr int CHUNKS = ATTN_D / DIM_WARPS / 32;   /* of 32 elements of d, two k-steps */
    static constexpr int HPW = HEADS / WARPS;                /* heads whose weights a warp makes */
    static constexpr int LPH = WARP / HPW;                   /* lanes a head */
    static constexpr int WEIGHTS = TILE / LPH;               /* weights a lane makes */
    static constexpr int VEC = WEIGHTS < 4 ? WEIGHTS : 4;    /* of them side by side */
    static constexpr int COPIED = TILE / COPY_WARPS, PASSES = COPIED / 4;  /* rows of a tile a copying warp; four at a time */
    static constexpr int STAGE_BYTES = TILE * ROW_BYTES;
    static constexpr int SCORE_PITCH = TILE * 4, PLANE_BYTES = HEADS * SCORE_PITCH, P_PITCH = TILE * 2 + 16;
    static constexpr int SCORE_BYTES = DIM_WARPS * PLANE_BYTES, P_BYTES = HEADS * P_PITCH;
    static_assert(STAGES >= 2 * BUFFERS - 1 && WEIGHTS % VEC == 0 && VEC % 2 == 0, "no such shape");
};

template <class S> struct __align__(1024) mma_shared {
    char     kv[S::STAGES][S::TILE][ROW_BYTES];
    float    score[S::BUFFERS][S::DIM_WARPS][S::HEADS][S::TILE];  /* partial sums; key k of head h at k ^ (h % 4) * 8 */
    char     p[S::BUFFERS][S::HEADS][S::P_PITCH];                 /* weights, bf16 */
    float    bias[S::STAGES][S::TILE];               /* 0, or -inf where a hole or the end is */
    float    old[S::BUFFERS][S::HEADS];                           /* what the sums so far are to be multiplied by */
    float    factor[S::HEADS];                        /* and in the end */
    uint64_t full[S::STAGES], empty[S::STAGES];       /* mbarriers */
};

/* Where chunk `chunk` of row `row` of a tile lies, from the row's begin on. */
static __device__ __forceinline__ uint32_t ring_chunk(int row, int chunk) {
    return (uint32_t)(chunk ^ row % 8) * 16;
}

/* Shared-memory addresses of a thread, for stage 0: constants, and XOR with constants, lead from them to everything it touches.
 * 8 rows further on chunks lie in the same order; within a line XOR with 64 leads from chunks 0..3 to 4..7. */
template <class S> struct mma_places {
    uint32_t key;     /* rows of K for ldmatrix; ^ 64 for odd chunks of 32 elements */
    uint32_t give;    /* its partial scores; ^ 32 * nt */
    uint32_t take;    /* the scores whose weights it makes */
    uint32_t put;     /* those weights */
    uint32_t weight;  /* rows of P for ldmatrix */
    uint32_t value;   /* rows of V for ldmatrix.trans; ^ 32 * pair of n-tiles */

    __device__ __forceinline__ mma_places(const mma_shared<S> &sh) {
        const int warp = warp_id(), lane = lane_id(), g = lane / 4, t = lane % 4, kw = warp / S::DIM_WARPS,
            dw = warp % S::DIM_WARPS;
        const int h = (int)(threadIdx.x / S::LPH), i = (int)(threadIdx.x % S::LPH) * S::VEC;
        key = pinned(shared_address(sh.kv[0][kw * 16 + lane % 8]) + ring_chunk(lane, dw * 16 + lane / 8));
        give = pinned(shared_address(&sh.score[0][dw][g][(kw * S::NT * 8 + t * 2) ^ g % 4 * 8]));
        take = pinned(shared_address(&sh.score[0][0][h][i ^ h % 4 * 8]));
        put = pinned(shared_address(sh.p[0][h]) + i * 2);
        weight = pinned(shared_address(sh.p[0][lane % 16]) + lane / 16 * 16);
        value = pinned(shared_address(sh.kv[0][lane % 16]) + ring_chunk(lane, warp * 8 + lane / 16));
    }
};

/* Where in the ring a tile is. Parity: of the mbarrier phase that fills it. */
template <class S> struct mma_position {
    int32_t  stage;
    uint32_t parity;

    __device__ __forceinline__ mma_position next() const {
        return stage == S::STAGES - 1 ? mma_position{0, parity ^ 1} : mma_position{stage + 1, parity};
    }
};

/* A named barrier among the warps that compute. */
template <class S> static __device__ __forceinline__ void mma_sync(void) {
    asm volatile("bar.sync 1, %0;" ::"n"(S::COMPUTE) : "memory");
}

/* By all threads of the block, before anything else. One initialises all barriers, since what several threads do under a
 * predicate and not behind a branch synccheck takes for the whole warp's. */
template <class S> static __device__ __forceinline__ void mma_init(mma_shared<S> &sh) {
    if (threadIdx.x == 0)
#pragma unroll
        for (int stage = 0; stage < S::STAGES; stage++) {
            /* each copying lane's copies, and each warp's bias */
            barrier_init(shared_address(&sh.full[stage]), S::COPY_WARPS * (WARP + 1));
            barrier_init(shared_address(&sh.empty[stage]), S::WARPS);
        }
    __syncthreads();
}

/* Until the tile at `from` is there. */
template <class S> static __device__ __forceinline__ void mma_wait(const mma_shared<S> &sh, mma_position<S> from) {
    barrier_wait(shared_address(&sh.full[from.stage]), from.parity);
}

/* The warp is done with the tile at `from`. */
template <class S> static __device__ __forceinline__ void mma_release(mma_shared<S> &sh, mma_position<S> from) {
    __syncwarp();
    if (lane_id() == 0)
        barrier_arrive(shared_address(&sh.empty[from.stage]));
}

/* A copying warp. Items are (request, group of heads), shared out over the blocks; it runs through its share of all rows of the
 * block's items as fast as stages become empty, and loads slots two tiles before it needs them. */
template <class S> struct mma_producer {
    struct tile {
        int32_t slot[S::PASSES];    /* of the lane's rows: row and row + 4; negative: hole or end */
        int32_t window;             /* how many rows of the tile are from the window cache */
        bool    live;               /* false: there is no such tile */
    };
    int32_t     item, items, groups, i, row;
    attn_length len, next_len;      /* of item and of the block's next one */
    attn_lists  lists;              /* of item */

    /* q and slot lists of an item to L2. */
    __device__ __forceinline__ void announce(const attn_args &a, int32_t coming) const {
        attn_announce<S::COPY_WARPS * WARP, S::HEADS>(a, coming / groups, coming % groups * S::HEADS,
                                                      (int32_t)threadIdx.x - S::COMPUTE);
    }

    __device__ __forceinline__ void enter(const attn_args &a, attn_length length) {
        const int64_t b = item / groups;
        i = 0;
        len = length;
        lists = attn_lists_of(a, b, len.window);
        if (item + (int32_t)gridDim.x < items) {
            announce(a, item + (int32_t)gridDim.x);
            next_len = attn_length_of(a, (item + (int32_t)gridDim.x) / groups);
        }
    }

    __device__ __forceinline__ tile look(const attn_args &a) {
        while (i >= len.n && item < items) {
            item += (int32_t)gridDim.x;
            if (item < items)
                enter(a, next_len);
        }
        tile t;
        t.window = len.window - i;
        t.live = item < items;
#pragma unroll
        for (int p = 0; p < S::PASSES; p++) {
            const int32_t entry = i + row + p * 4;
            t.slot[p] = -1;
            if (t.live && entry < len.n)
                t.slot[p] = lists.slot(entry, entry < len.window);
        }
        i += S::TILE;
        return t;
    }

    /* The first two tiles' slots are loaded beside the lengths on the guess that the window is full; where it's not, once more.
     * A slot past a length may be loaded then, but nobody looks at it. */
    __device__ __forceinline__ void start(const attn_args &a, tile (&ret)[2]) {
        const int64_t b = item / groups;
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int p = 0; p < S::PASSES; p++) {
                const int32_t entry = t * S::TILE + row + p * 4;
                ret[t].slot[p] = -1;
                if (entry < a.window + a.topk)
                    ret[t].slot[p] = entry < a.window ? __ldg((const int32_t *)attn_row<ATTN_WINDOW_SLOT>(a, b) + entry)
                                                      : __ldg((const int32_t *)attn_row<ATTN_TOPK_SLOT>(a, b) + entry - a.window);
            }
        const attn_length length = attn_length_of(a, b);
        announce(a, item);
        enter(a, length);
        if (len.window == a.window && len.n >= 2 * S::TILE) {
            ret[0].window = len.window;
            ret[1].window = len.window - S::TILE;
            ret[0].live = ret[1].live = true;
            i = 2 * S::TILE;
        } else {
#pragma unroll 1
            for (int t = 0; t < 2; t++) {
                ret[0] = ret[1];
                ret[1] = look(a);
            }
        }
    }

    __device__ __forceinline__ void copy(const attn_args &a, mma_shared<S> &sh, const tile &t, int to) const {
        const int part = lane_id() % 8 * 16;
        const uint32_t at = shared_address(sh.kv[to][row]) + ring_chunk(row, lane_id() % 8);  /* ^ 64: 4 rows further on */
#pragma unroll
        for (int p = 0; p < S::PASSES; p++) {
            const bool window_row = row + p * 4 < t.window;
            const char *base = (const char *)(window_row ? a.t[ATTN_WINDOW_KV].p : a.t[ATTN_TOPK_KV].p);
            const uint64_t stride = (uint64_t)(window_row ? a.t[ATTN_WINDOW_KV].stride : a.t[ATTN_TOPK_KV].stride);
            const char *from = base + (uint32_t)max(t.slot[p], 0) * stride + part;
#pragma unroll
            for (int j = 0; j < ROW_BYTES; j += 128)
                copy16_async((at ^ p % 2 * 64) + p * 4 * ROW_BYTES + j, from + j, t.slot[p] >= 0);
            if (part == 0)
                sh.bias[to][row + p * 4] = t.slot[p] < 0 ? -INFINITY : 0.f;
        }
        barrier_arrive_copies(shared_address(&sh.full[to]));
        __syncwarp();
        if (lane_id() == 0)
            barrier_arrive(shared_address(&sh.full[to]));
    }

    __device__ __forceinline__ void run(const attn_args &a, mma_shared<S> &sh, int32_t items_, int32_t groups_) {
        items = items_;
        groups = groups_;
        item = (int32_t)blockIdx.x;     /* < items: there are no more blocks than items */
        row = (warp_id() - S::WARPS) * S::COPIED + lane_id() / 8;
        tile next[2];
        mma_position<S> to = {0, 1};    /* the parity before the first: empty from the beginning */
        start(a, next);
        while (next[0].live) {
            barrier_wait(shared_address(&sh.empty[to.stage]), to.parity);
            copy(a, sh, next[0], to.stage);
            next[0] = next[1];
            next[1] = look(a);
            to = to.next();
        }
        copy_wait_all();
    }
};

#endif

/* The ring of entries in shared memory that attn_fp8/mma and attn_fp8/splitk compute on, and the warps that fill it.
 *
 * A block is 8 warps that compute and 4 that copy, tile after tile of 32 entries, as far ahead as the ring has room, also into the
 * block's next items. Entries are copied as they are: 576 bytes of data, by 4 lanes side by side, and 8 of scales. Two mbarriers a
 * stage say when it is full and when it is empty again.
 */
#ifndef KBENCH_ATTN_FP8_RING_CUH
#define KBENCH_ATTN_FP8_RING_CUH

#include "fp8.cuh"

/* How far (base 2) a maximum may run ahead of the base of the weights: see fp8_softmax. */
static constexpr int FP8_LAG = 6;

/* MT: m-tiles of 16 heads. STAGES: tiles in the ring. */
template <int MT_, int STAGES_> struct fp8_shape {
    static constexpr int MT = MT_, HEADS = MT * 16, STAGES = STAGES_, TILE = WARP;  /* a lane an entry */
    static constexpr int WARPS = 8, COMPUTE = WARPS * WARP, COPY_WARPS = 4, THREADS = COMPUTE + COPY_WARPS * WARP;
    static constexpr int SUM_D = ATTN_D / WARPS, CHUNKS = SUM_D / 16, DIM_WARPS = 4, KEY_WARPS = WARPS / DIM_WARPS;
    static constexpr int GROUPS = 8 / DIM_WARPS;             /* groups of d a warp scores */
    static constexpr int NT = TILE / KEY_WARPS / 8;          /* n-tiles of 8 keys a warp scores */
    static constexpr int CODED = ATTN_FP8_NOPE / SUM_D;      /* warps whose elements in the sum are codes */
    static constexpr int HPW = HEADS / WARPS;                /* heads whose weights a warp makes */
    static constexpr int LPH = WARP / HPW;                   /* lanes a head */
    static constexpr int VEC = TILE / LPH;                   /* weights a lane makes, side by side */
    static constexpr int PITCH = ATTN_FP8_DATA + 16, STAGE_BYTES = TILE * PITCH;  /* 8 rows of an ldmatrix lie in different banks */
    static constexpr int SCORE_PITCH = TILE * 4, PLANE_BYTES = HEADS * SCORE_PITCH, SCORE_BYTES = DIM_WARPS * PLANE_BYTES;
    static constexpr int P_PITCH = TILE * 2 + 16, P_BYTES = HEADS * P_PITCH;
    static constexpr int FOR_COPIES = 72, FOR_ARITHMETIC = 216;  /* registers of a thread, where they can be moved */
    static_assert(STAGES >= 4 && (VEC == 2 || VEC == 4), "no such shape");
};

template <class S> struct __align__(128) fp8_shared {
    char    data[S::STAGES][S::TILE][S::PITCH];
    uint8_t scales[S::STAGES][S::TILE][ATTN_FP8_SCALES];
    float   bias[S::STAGES][S::TILE];                /* 0, or -inf where a hole or the end is */
    float   score[2][S::DIM_WARPS][S::HEADS][S::TILE];  /* partial sums; key k of head h at k ^ (h % 4) * 8 */
    char    p[2][2][S::HEADS][S::P_PITCH];           /* weights as half, as bf16 */
    float   q_scale[S::DIM_WARPS][S::HEADS];         /* 2^e: see fp8_query */
    float   old[2][S::HEADS];                        /* what the sums so far are to be multiplied by */
    __align__(8) uint8_t grew[2][S::WARPS];          /* whether one of them, of the warp's heads, is not 1 */
    float   factor[S::HEADS];                        /* and in the end */
    uint64_t full[S::STAGES], empty[S::STAGES];      /* mbarriers */
};

static __device__ __forceinline__ void copy8_async(uint32_t shared, const void *global, bool valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared), "l"(global), "r"(valid ? 8 : 0) : "memory");
}

/* Work is cut into items: (request, part of its list, group of heads), the groups of a part side by side since they read the
 * same entries. */
struct fp8_work {
    int32_t items, groups, splits;
};

/* An item's entries: whole tiles, as evenly as they go. lo >= hi: none. */
struct fp8_range {
    int32_t lo, hi;
};

template <class S> static __device__ __forceinline__ fp8_range fp8_range_of(const fp8_work &work, int32_t item, int32_t n) {
    const int32_t part = item / work.groups % work.splits, tiles = (n + S::TILE - 1) / S::TILE;
    return {part * tiles / work.splits * S::TILE, min((part + 1) * tiles / work.splits * S::TILE, n)};
}

static __device__ __forceinline__ int32_t fp8_request_of(const fp8_work &work, int32_t item) {
    return item / work.groups / work.splits;
}

/* Where in the ring a tile is. Parity: of the mbarrier phase that fills it. */
template <class S> struct fp8_position {
    int32_t  stage;
    uint32_t parity;

    __device__ __forceinline__ fp8_position next() const {
        return stage == S::STAGES - 1 ? fp8_position{0, parity ^ 1} : fp8_position{stage + 1, parity};
    }
};

/* By all threads of the block, before anything else. One initialises all barriers: see mma_init of attn/mma_ws_ring.cuh. */
template <class S> static __device__ __forceinline__ void fp8_init(fp8_shared<S> &sh) {
    if (threadIdx.x == 0)
#pragma unroll
        for (int stage = 0; stage < S::STAGES; stage++) {
            barrier_init(shared_address(&sh.full[stage]), S::COPY_WARPS * (WARP + 1));  /* a lane's copies, a warp's bias */
            barrier_init(shared_address(&sh.empty[stage]), S::WARPS);
        }
    __syncthreads();
}

/* A copying warp: 8 entries of a tile, 4 lanes each. It loads slots two tiles before it needs them. */
template <class S> struct fp8_producer {
    struct tile {
        int32_t slot;      /* of the lane's entry; negative: hole or end */
        int32_t window;    /* how many rows of the tile are from the window cache */
        bool    live;      /* false: there is no such tile */
    };
    const fp8_args &a;
    const fp8_work &work;
    int32_t         item, i, hi, row;
    attn_length     len, next_len;  /* of item and of the block's next one */
    attn_lists      lists;          /* of item */

    __device__ __forceinline__ fp8_producer(const fp8_args &args, const fp8_work &w)
        : a(args), work(w), item((int32_t)blockIdx.x), row((int32_t)(threadIdx.x - S::COMPUTE) / 4) {
        enter(attn_length_of(a, fp8_request_of(work, item)));  /* item < items: there are no more blocks than items */
    }

    /* q and slot lists of an item to L2. */
    __device__ __forceinline__ void announce(int32_t coming) const {
        attn_announce<S::COPY_WARPS * WARP, S::HEADS>(a, fp8_request_of(work, coming), coming % work.groups * S::HEADS,
                                                      (int32_t)threadIdx.x - S::COMPUTE);
    }

    __device__ __forceinline__ void enter(attn_length length) {
        const int64_t   b = fp8_request_of(work, item);
        const int32_t   coming = item + (int32_t)gridDim.x;
        const fp8_range range = fp8_range_of<S>(work, item, length.n);
        len = length;
        i = range.lo;
        hi = range.hi;
        lists = attn_lists_of(a, b, length.window);
        if (coming < work.items) {
            announce(coming);
            next_len = attn_length_of(a, fp8_request_of(work, coming));
        }
    }

    __device__ __forceinline__ tile look() {
        while (i >= hi && item < work.items) {
            item += (int32_t)gridDim.x;
            if (item < work.items)
                enter(next_len);
        }
        const int32_t entry = i + row;
        tile t = {-1, len.window - i, item < work.items};
        if (t.live && entry < hi)
            t.slot = lists.slot(entry, entry < len.window);
        i += S::TILE;
        return t;
    }

    /* Begins the copies of a tile; of a hole: zeros that nobody reads. */
    __device__ __forceinline__ void copy(fp8_shared<S> &sh, const tile &t, int stage) const {
        const int       part = lane_id() % 4;
        const bool      valid = t.slot >= 0;
        const fp8_entry e = fp8_entry_of(a, row < t.window, max(t.slot, 0));
        const uint32_t  to = shared_address(sh.data[stage][row]) + part * 16;
#pragma unroll
        for (int j = 0; j < ATTN_FP8_DATA; j += 64)
            copy16_async(to + j, e.data + part * 16 + j, valid);
        if (part == 0) {
            copy8_async(shared_address(sh.scales[stage][row]), e.scales, valid);
            sh.bias[stage][row] = valid ? 0.f : -INFINITY;
        }
        barrier_arrive_copies(shared_address(&sh.full[stage]));
        __syncwarp();
        if (lane_id() == 0)
            barrier_arrive(shared_address(&sh.full[stage]));
    }

    __device__ __forceinline__ void run(fp8_shared<S> &sh) {
        fp8_position<S> to = {0, 1};  /* the parity before the first: empty from the beginning */
        tile next = look(), after = look();
        while (next.live) {
            barrier_wait(shared_address(&sh.empty[to.stage]), to.parity);
            copy(sh, next, to.stage);
            next = after;
            after = look();
            to = to.next();
        }
        copy_wait_all();
    }
};

#endif

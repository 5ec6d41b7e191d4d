/* 64 heads a block by wgmma (sm_90a): a request's part is gathered once, as bf16 tiles that serve as they lie as K and as V. What
 * the entries look like in memory is the business of the ring alone, so that ops attn and attn_fp8 share all of this.
 *
 * Four warpgroups work on up to three tiles at a time, so that what one waits for another covers:
 *   2 sum      O[64][512] += P * V: a warpgroup takes 256 elements of d, 128 registers of a thread.
 *   1 score    S[64][TILE] = q K^T, the largest score so far of each head, weights P to shared memory.
 *   1 ring     fills the stages with tiles, as far ahead as there is room, also into the block's next items.
 * Weights go through BUFFERS buffers with a barrier for full and one for empty; what passes is called a token, one a tile or two:
 * WGMMA_SHORT. After an item's last tile one more brings the factors that end the sums.
 *
 * The ring is a struct, template argument of wgmma_block, whose threads are the last 128 of the block:
 *
 *     struct some_ring {
 *         static constexpr int ARRIVALS = ...;                   arrivals that make a stage full
 *         __device__ some_ring(const Args &, const wgmma_work &);   Args: attn_args or what derives from it
 *         __device__ void run(wgmma_shared<S> &sh);              by all of its threads; FOR_RING registers each
 *     };
 *
 * For each item of the block (blockIdx.x, then + gridDim.x, while < work.items) and each tile of its range (wgmma_range_of), in
 * that order, run() waits until the next stage is empty (barrier sh.empty; the parity of a stage's first tile is 1), then leaves
 * there
 *   kv     chunk c of 16 bytes (8 elements of d) of panel p (64 elements) of key k at p * PANEL_BYTES + k * 128 + (c ^ k % 8) * 16:
 *          wgmma's 128-byte swizzle. Keys without an entry (a slot < 0, past the end): zeros, since 0 * NaN is NaN.
 *   bias   of each key 0, or -inf where there is no entry,
 * and arrives ARRIVALS times on sh.full. Tiles of an empty range don't exist. A thread that has written kv by ordinary stores must
 * wgmma_publish() between them and its arrival. For cp.async the arrival may be that of the copies themselves
 * (barrier_arrive_copies): who reads the tile by wgmma does the same fence behind the barrier, which is where the order of these
 * copies is known.
 */
#ifndef KBENCH_ATTN_WGMMA_CUH
#define KBENCH_ATTN_WGMMA_CUH

#include "combine.cuh"
#include "wgmma_ops.cuh"

/* KEPT: of the 32 k-steps of a score, for how many q is kept in registers and not read from shared memory tile after tile; what
 * registers they cost the ring has to do without. */
template <int KEPT_> struct wgmma_shape {
    static constexpr int TILE = 64, KEPT = KEPT_, STAGES = 2, BUFFERS = 2, HEADS = 64;
    static constexpr int TEAM = 128, SUMMERS = 2, SCORER = SUMMERS, RING = SCORER + 1, THREADS = (RING + 1) * TEAM;
    static constexpr int PANELS = ATTN_D / 64, PANEL_BYTES = TILE * 128, STAGE_BYTES = PANELS * PANEL_BYTES;
    static constexpr int Q_PANEL_BYTES = HEADS * 128, STEPS = ATTN_D / 16, P_BYTES = HEADS * 128;
    static constexpr int FOR_SUMS = 160, FOR_SCORES = KEPT > 0 ? 136 : 88;
    static constexpr int FOR_RING = 4 * 128 - SUMMERS * FOR_SUMS - FOR_SCORES;
    static_assert(KEPT <= 16 && FOR_RING >= 56, "no such shape");
};

/* Lists of up to so many entries get two tokens a tile: the weights, then what they lost as bf16. Where so few share a result, the
 * rounding of one may pass the tolerance alone. */
static constexpr int32_t WGMMA_SHORT = 256;

/* Aligned to 1024 in shared memory. */
template <class S> struct __align__(1024) wgmma_shared {
    char     kv[S::STAGES][S::STAGE_BYTES];
    char     q[S::PANELS][S::Q_PANEL_BYTES];      /* chunk c of head h at c ^ h % 8 */
    char     p[S::BUFFERS][S::P_BYTES];           /* weights, bf16, swizzled alike */
    float    bias[S::STAGES][S::TILE];            /* 0, or -inf where a hole or the end is */
    float    old[S::BUFFERS][S::HEADS];           /* what the sums so far are to be multiplied by */
    float2   ml[8][S::HEADS];                     /* of each block of a cluster: see wgmma_merge */
    uint64_t full[S::STAGES], empty[S::STAGES], given[S::BUFFERS], taken[S::BUFFERS];  /* mbarriers: of the ring, of tokens */
};

/* Where a lane of warp w of its team stores the first weights of heads 16 w and on, by matrices of 8 x 8: those of keys 8 n and on
 * at ^ n * 16. */
template <class S> static __device__ __forceinline__ uint32_t wgmma_weights_of(const wgmma_shared<S> &sh) {
    const int lane = lane_id();
    return shared_address(sh.p[0]) + (warp_id() % 4 * 16 + lane % 16) * 128 + (lane / 16 ^ lane % 8) * 16;
}

/* An item is (request, group of 64 heads, part of the list); parts of a group side by side. A kernel parameter. */
struct wgmma_work {
    int32_t items, groups, splits;
};

static __device__ __forceinline__ int32_t wgmma_request_of(const wgmma_work &work, int32_t item) {
    return item / work.splits / work.groups;
}

/* An item's entries of the n of its request: whole tiles, as evenly as they go; the last may be short. None: begin >= end. */
struct wgmma_range {
    int32_t begin, end;
};

template <class S> static __device__ __forceinline__ wgmma_range wgmma_range_of(const wgmma_work &work, int32_t item, int32_t n) {
    const int32_t split = item % work.splits, tiles = (n + S::TILE - 1) / S::TILE;
    return {tiles * split / work.splits * S::TILE, min(tiles * (split + 1) / work.splits * S::TILE, n)};
}

/* Where something that goes round is: a tile in the ring, a token in its buffer. Parity: of the phase that fills it. */
template <int COUNT> struct wgmma_turn {
    int32_t  at;
    uint32_t parity;

    __device__ __forceinline__ void next() {
        parity ^= (uint32_t)(at == COUNT - 1);
        at = at == COUNT - 1 ? 0 : at + 1;
    }
};

/* By all threads of the block, before anything else. */
template <class S> static __device__ __forceinline__ void wgmma_init(wgmma_shared<S> &sh, int arrivals) {
    constexpr int WARPS = S::TEAM / WARP;
    if (threadIdx.x < S::STAGES) {
        barrier_init(shared_address(&sh.full[threadIdx.x]), (uint32_t)arrivals);
        barrier_init(shared_address(&sh.empty[threadIdx.x]), S::SUMMERS * WARPS);
        barrier_init(shared_address(&sh.given[threadIdx.x]), S::TEAM);
        barrier_init(shared_address(&sh.taken[threadIdx.x]), S::SUMMERS * WARPS);
    }
    __syncthreads();
}

/* By a warp whose lanes are all done with what the barrier guards. One arrives for all: the warp's barrier orders their accesses
 * before that arrival, and so before what comes behind the wait. (It may be no instruction, where the warp runs as one.) Not where
 * values are handed on that ordinary loads read (sh.old): there each lane arrives, which takes no longer, and which a checker of
 * races can follow without knowing of warps. */
static __device__ __forceinline__ void wgmma_arrive(const uint64_t &barrier) {
    __syncwarp();
    if (lane_id() == 0)
        barrier_arrive(shared_address(&barrier));
}

/* Slot lists and q of an item to L2, by a team. */
template <class S>
static __device__ __forceinline__ void wgmma_announce(const attn_args &a, const wgmma_work &work, int32_t coming) {
    attn_announce<S::TEAM, S::HEADS>(a, wgmma_request_of(work, coming), coming / work.splits % work.groups * S::HEADS,
                                     (int32_t)threadIdx.x % S::TEAM);
}

template <class S, int CLUSTER> struct wgmma_merge;
#include "wgmma_score.cuh"
#include "wgmma_sum.cuh"
#include "wgmma_merge.cuh"

/* The whole of a block. p.splits == 1: out and lse are written, else the parts. CLUSTER > 1: 2, 4 or 8, which is work.splits and
 * the size of the clusters that blocks are launched in, one block an item: they merge the parts and write out and lse; p is not
 * looked at. */
template <class S, class Ring, int CLUSTER = 1, class Args>
static __device__ __forceinline__ void wgmma_block(const Args &a, const wgmma_work &work, const partials &p, wgmma_shared<S> &sh) {
    wgmma_init(sh, Ring::ARRIVALS);
    const int team = (int)threadIdx.x / S::TEAM;
    if constexpr (CLUSTER > 1)
        wgmma_merge<S, CLUSTER>::begin();
    if (team == S::RING) {
        registers_give<S::FOR_RING>();
        Ring ring(a, work);
        ring.run(sh);
        if constexpr (CLUSTER > 1) {
            using merge = wgmma_merge<S, CLUSTER>;
            merge::begun();
            merge::meet();
            merge::leave();
        }
    } else if (team == S::SCORER) {
        if constexpr (S::FOR_SCORES > 128)
            registers_take<S::FOR_SCORES>();
        else
            registers_give<S::FOR_SCORES>();
        wgmma_scorer<S> scorer(a, sh);
        scorer.template run<CLUSTER>(work, p);
    } else {
        registers_take<S::FOR_SUMS>();
        wgmma_sum<S, CLUSTER>(a, sh, work, p);
    }
}

#endif

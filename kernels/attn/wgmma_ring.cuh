/* The ring of wgmma.cuh for entries that are rows of 512 bf16: asynchronous copies of 16 bytes, of 8 lanes side by side whole lines
 * of 128 bytes on either side. A warp takes a quarter of each tile's rows; the rows of the tile after next are asked into L2 while
 * there is no room for them yet.
 */
#ifndef KBENCH_ATTN_WGMMA_RING_CUH
#define KBENCH_ATTN_WGMMA_RING_CUH

#include "wgmma.cuh"

template <class S> struct wgmma_bf16_ring {
    static constexpr int WARPS = S::TEAM / WARP, ROWS = S::TILE / WARPS, PASSES = ROWS / 4;
    static constexpr int ARRIVALS = S::TEAM + WARPS;  /* each lane's copies, each warp's bias */

    struct tile {
        int32_t slot;    /* of the warp's row `lane`; negative: hole, end, or no such row */
        int32_t window;  /* how many of the warp's rows are from the window cache */
        bool    live;    /* false: there is no such tile */
    };
    const attn_args  &a;
    const wgmma_work &work;
    int32_t     item, i, end, n_next, window_n;  /* i: of the warp's first row in the next tile to look at */
    attn_lists  lists;                           /* of item */
    attn_length next;

    __device__ __forceinline__ wgmma_bf16_ring(const attn_args &args, const wgmma_work &w)
        : a(args), work(w), item((int32_t)blockIdx.x) {}

    static __device__ __forceinline__ int warp() {
        return warp_id() % WARPS;
    }

    __device__ __forceinline__ void enter(attn_length length) {
        const int64_t b = wgmma_request_of(work, item);
        const int32_t coming = item + (int32_t)gridDim.x;
        const wgmma_range range = wgmma_range_of<S>(work, item, length.n);
        i = range.begin;
        end = range.end;
        window_n = length.window;
        lists = attn_lists_of(a, b, window_n);
        if (coming < work.items) {
            wgmma_announce<S>(a, work, coming);
            next = attn_length_of(a, wgmma_request_of(work, coming));
        }
    }

    __device__ __forceinline__ tile look() {
        while (i >= end && item < work.items) {
            item += (int32_t)gridDim.x;
            if (item < work.items)
                enter(next);
        }
        const int32_t row = i + warp() * ROWS, entry = row + lane_id();
        tile t = {-1, window_n - row, item < work.items};
        if (t.live && entry < end && lane_id() < ROWS)
            t.slot = lists.slot(entry, entry < window_n);
        i += S::TILE;
        return t;
    }

    /* The first two tiles' slots are loaded beside the lengths on the guess that both lists are full; where they're not, once more.
     * A slot past a length may be loaded then, but nobody looks at it. */
    __device__ __forceinline__ void start(tile &first, tile &second) {
        const int64_t b = wgmma_request_of(work, item);
        const wgmma_range guess = wgmma_range_of<S>(work, item, a.window + a.topk);
        int32_t slot[2];
#pragma unroll
        for (int t = 0; t < 2; t++) {
            const int32_t entry = guess.begin + t * S::TILE + warp() * ROWS + lane_id();
            slot[t] = -1;
            if (entry < guess.end && lane_id() < ROWS)
                slot[t] = entry < a.window ? __ldg((const int32_t *)attn_row<ATTN_WINDOW_SLOT>(a, b) + entry)
                                           : __ldg((const int32_t *)attn_row<ATTN_TOPK_SLOT>(a, b) + entry - a.window);
        }
        const attn_length length = attn_length_of(a, b);
        enter(length);
        if (length.window == a.window && length.n == a.window + a.topk && i < end) {
            first = {slot[0], window_n - i - warp() * ROWS, true};
            i += S::TILE;
            if (i < end) {
                second = {slot[1], window_n - i - warp() * ROWS, true};
                i += S::TILE;
                return;
            }
        } else
            first = look();
        second = look();
    }

    /* Where the row of entry `slot` is. */
    __device__ __forceinline__ const char *kv(bool in_window, int32_t slot) const {
        const char *base = (const char *)(in_window ? a.t[ATTN_WINDOW_KV].p : a.t[ATTN_TOPK_KV].p);
        const uint64_t stride = (uint64_t)(in_window ? a.t[ATTN_WINDOW_KV].stride : a.t[ATTN_TOPK_KV].stride);
        return base + (uint32_t)max(slot, 0) * stride;
    }

    __device__ __forceinline__ void ask(const tile &t) const {
#pragma unroll
        for (int p = 0; p < PASSES; p++) {
            const int row = p * 4 + lane_id() / 8;
            const int32_t slot = __shfl_sync(ALL_LANES, t.slot, row);
            if (slot >= 0)
                prefetch_l2(kv(row < t.window, slot) + lane_id() % 8 * 128);
        }
    }

    __device__ __forceinline__ void copy(wgmma_shared<S> &sh, const tile &t, int stage) const {
        const int lane = lane_id(), part = lane % 8;
        const uint32_t to = shared_address(sh.kv[stage]) + (warp() * ROWS + lane / 8) * 128 + (part ^ lane / 8) * 16;
#pragma unroll
        for (int p = 0; p < PASSES; p++) {
            const int row = p * 4 + lane / 8;
            __syncwarp();  /* else addresses of all passes are made first, in more registers than there are */
            const int32_t slot = __shfl_sync(ALL_LANES, t.slot, row);
            const char *from = kv(row < t.window, slot) + part * 16;
#pragma unroll
            for (int panel = 0; panel < S::PANELS; panel++)
                copy16_async((to ^ p % 2 * 64) + p * 512 + panel * S::PANEL_BYTES, from + panel * 128, slot >= 0);
        }
        if (lane < ROWS)
            sh.bias[stage][warp() * ROWS + lane] = t.slot < 0 ? -INFINITY : 0.f;
        barrier_arrive_copies(shared_address(&sh.full[stage]));
        wgmma_arrive(sh.full[stage]);
    }

    __device__ __forceinline__ void run(wgmma_shared<S> &sh) {
        wgmma_turn<S::STAGES> to = {0, 1};  /* the parity before the first: empty from the beginning */
        tile now, after;
        start(now, after);
#pragma unroll 1
        while (now.live) {
            barrier_wait(shared_address(&sh.empty[to.at]), to.parity);
            copy(sh, now, to.at);
            now = after;
            after = look();
            if (now.live)
                ask(now);
            to.next();
        }
        copy_wait_all();
    }
};

#endif

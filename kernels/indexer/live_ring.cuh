/* The rings of live.cuh: how long they are and where they lie, which pages a block takes, and the warps that copy. */
#ifndef KBENCH_INDEXER_LIVE_RING_CUH
#define KBENCH_INDEXER_LIVE_RING_CUH

#include "direct_block.cuh"

enum live_path { LIVE_BEST, LIVE_WGMMA, LIVE_BULK, LIVE_ASYNC, LIVE_DIRECT, LIVE_NARROW };

static constexpr int LIVE_TEAMS = 4, LIVE_LINE = INDEXER_HEADS * 4, LIVE_STAGES = 16;

template <int PATH> struct live_warps {
    static constexpr int TEAM = PATH == LIVE_WGMMA ? 4 : 2, COPY = PATH == LIVE_ASYNC ? 4 : 1;
    static constexpr int MOST = (LIVE_TEAMS * TEAM + COPY) * WARP;  /* threads */
    static constexpr int FILLED = PATH == LIVE_ASYNC ? COPY * WARP + COPY : 1;  /* arrivals that fill a buffer */
};

/* A kernel parameter: how long the rings are and where they lie, in bytes from the first multiple of 1,024. */
struct live_plan {
    int32_t  teams, stages, queries;
    int32_t  ahead;  /* pages that the block asks L2 for before it knows its share; 0: none */
    uint32_t q, own, w, scales, notes, barriers, bytes;  /* bytes: of dynamic shared memory, in all */
};

/* own: bytes of a team's own q. */
template <class F> static live_plan live_plan_of(int64_t room, int32_t teams, int32_t stages, int32_t own) {
    live_plan p = {};
    p.queries = room < 160 << 10 ? 2 : 3;
    const int64_t fixed = 1024 + p.queries * (F::BYTES + LIVE_LINE + 8) + teams * own + 16, each = F::BYTES + F::SCALES + 16 + 16;
    const int64_t fit = (room - fixed) / each;
    p.stages = stages && stages < fit ? stages : (int32_t)(fit < LIVE_STAGES ? fit : LIVE_STAGES);
    p.teams = teams < p.stages ? teams : p.stages;
    p.stages = p.stages / p.teams * p.teams;  /* a stage is one team's: it can't be two phases ahead of anybody */
    p.q = (uint32_t)p.stages * F::BYTES;
    p.own = p.q + (uint32_t)p.queries * F::BYTES;
    p.w = p.own + (uint32_t)(p.teams * own);
    p.scales = p.w + (uint32_t)p.queries * LIVE_LINE;
    p.notes = p.scales + (uint32_t)p.stages * F::SCALES;
    p.barriers = p.notes + (uint32_t)p.stages * 16;
    p.bytes = 1024 + p.barriers + (uint32_t)(2 * p.stages + p.queries) * 8 + 16;
    return p;
}

/* Shared addresses. */
struct live_places {
    uint32_t keys, q, own, w, scales, notes, full, empty, ready, first;  /* ready: of q; first: request of buffer 0 at the start */

    __device__ __forceinline__ live_places(const live_plan &p, const char *shared) {
        keys = (shared_address(shared) + 1023) / 1024 * 1024;
        q = keys + p.q;
        own = keys + p.own;
        w = keys + p.w;
        scales = keys + p.scales;
        notes = keys + p.notes;
        full = keys + p.barriers;
        empty = full + p.stages * 8;
        ready = empty + p.stages * 8;
        first = ready + p.queries * 8;
    }
};

/* A place in a ring; parity: of its phase. */
struct live_position {
    int32_t  stage;
    uint32_t parity;

    /* n: at most `stages`. */
    __device__ __forceinline__ void advance(int32_t n, int32_t stages) {
        stage += n;
        if (stage >= stages) {
            stage -= stages;
            parity ^= 1;
        }
    }
};

/* Pages that a block takes: `share.count` of the list from share.at on, each `step` further. Those of a single request are dealt
 * out in turn, so that a block knows which page numbers it may need before it knows the length. */
struct live_share {
    indexer_share share;
    int32_t       step;
};

static __device__ __forceinline__ live_share live_share_of(const indexer_args &a, int4 lengths, uint32_t inverse) {
    const int32_t part = (int32_t)blockIdx.x, parts = (int32_t)gridDim.x;
    if (a.batch > 1)
        return {indexer_share_of(a, part, parts, lengths, inverse), 1};
    const int32_t length = __shfl_sync(ALL_LANES, lengths.x, 0), pages = indexer_pages(length);
    return {{{0, part, length}, pages > part ? indexer_divide(pages - part - 1, parts, inverse) + 1 : 0}, parts};
}

/* What copies, one warp of it. */
template <class F, int PATH> struct live_copier {
    using warps = live_warps<PATH>;
    const indexer_args &a;
    const live_plan    &plan;
    const live_places  &at;
    const CUtensorMap  &key_map, &q_map;
    int32_t             warp;    /* of those that copy */
    int32_t             issued;  /* pages */
    live_position       to, query;
    int32_t             b;       /* the request whose q is in buffer query.stage */
    int32_t             ends;    /* lane i: pages before this one may look at buffer i */

    __device__ __forceinline__ bool leads() const {
        return warp == 0 && lane_id() == 0;
    }

    __device__ __forceinline__ void arrive(uint32_t barrier) const {
        if constexpr (PATH == LIVE_ASYNC) {
            barrier_arrive_copies(barrier);
            __syncwarp();
        }
        if (lane_id() == 0)
            barrier_arrive(barrier);
    }

    /* After q of another request went into a buffer, pages of the request before may still need it. Of each team the last page
     * before `end` tells; those that the ring has already gone past need no look. */
    __device__ __forceinline__ void wait_until_unused(int32_t end) const {
        for (int32_t i = max(end - plan.teams, issued - plan.stages + 1); i < end; i++)
            if (i >= 0)
                barrier_wait(at.empty + i % plan.stages * 8, i / plan.stages & 1);
    }

    __device__ __forceinline__ void copy_query(int32_t request) {
        if (lane_id() == query.stage)
            ends = issued;
        query.advance(1, plan.queries);
        b = request;
        wait_until_unused(__shfl_sync(ALL_LANES, ends, query.stage));
        const uint32_t q = at.q + query.stage * F::BYTES, w = at.w + query.stage * LIVE_LINE, ready = at.ready + query.stage * 8;
        const int64_t first = (int64_t)request * INDEXER_HEADS;
        const char *weights = indexer_row<INDEXER_W>(a, request);
        if constexpr (PATH == LIVE_ASYNC) {
            score_copy<F>(q, warp * 16, 16, [&](int row) { return indexer_row<INDEXER_Q>(a, first + row); });
            if (warp == 0)
                score_copy_line(w, weights);
            arrive(ready);
        } else if (lane_id() == 0) {
            barrier_arrive_expect(ready, F::BYTES + LIVE_LINE);
#pragma unroll
            for (int half = 0; half < F::HALVES; half++)
                bulk_rows(q + half * SCORE_HALF, &q_map, half * SCORE_ROW, (int32_t)first, ready);
            bulk_line(w, weights, LIVE_LINE, ready);
        }
    }

    __device__ __forceinline__ void note(int32_t page, int32_t live) const {
        if (leads())
            store16_shared(at.notes + to.stage * 16, make_uint4((uint32_t)b, (uint32_t)page, (uint32_t)live,
                                                                (uint32_t)query.stage << 1 | query.parity));
    }

    __device__ __forceinline__ void copy_page(int32_t request, int32_t page, int32_t live, int32_t slot) {
        barrier_wait(at.empty + to.stage * 8, to.parity);
        if (request != b)
            copy_query(request);
        const uint32_t keys = at.keys + to.stage * F::BYTES, scales = at.scales + to.stage * F::SCALES;
        const uint32_t full = at.full + to.stage * 8;
        note(page, live);
        if constexpr (PATH == LIVE_ASYNC) {
            score_copy<F>(keys, warp * 16, 16, [&](int row) { return F::key(a, slot, row); });
            if (F::SCALES && warp == 0)
                score_copy_line(scales, F::scales(a, slot));
            arrive(full);
        } else if (lane_id() == 0) {
            barrier_arrive_expect(full, F::BYTES + F::SCALES);
#pragma unroll
            for (int half = 0; half < F::HALVES; half++)
                bulk_rows(keys + half * SCORE_HALF, &key_map, half * SCORE_ROW, slot * F::MAP_ROWS, full);
            if (F::SCALES)
                bulk_line(scales, F::scales(a, slot), F::SCALES, full);
        }
        to.advance(1, plan.stages);
        issued++;
    }

    /* A page without entries ends a team. */
    __device__ __forceinline__ void end(void) {
        for (int32_t i = 0; i < plan.teams; i++) {
            barrier_wait(at.empty + to.stage * 8, to.parity);
            note(0, 0);
            arrive(at.full + to.stage * 8);
            to.advance(1, plan.stages);
        }
        if (issued == 0)
            barrier_wait(at.ready, 0);  /* q that nobody needs must not come to a block that has ended */
    }

    /* q of the first request comes first: teams wait for it before they wait for a page. A block without pages has none. */
    __device__ __forceinline__ void begin(int32_t request, bool any) {
        if (leads())
            store4_shared(at.first, (uint32_t)(any ? request : -1));
        if (any) {
            copy_query(request);
        } else {
            query.advance(1, plan.queries);
            arrive(at.ready);
        }
    }

    /* Lane i looks up page i of the next 32 while those before are copied. slot: for a single request, of the lane's first page;
     * loaded before the length was known. */
    __device__ __forceinline__ void run(const live_share &part, int32_t slot) {
        const int lane = lane_id();
        const indexer_share &share = part.share;
        indexer_cursor next = share.at;
        if (lane < share.count) {
            next.advance(a, lane * part.step);
            if (a.batch > 1)
                slot = indexer_slot(a, next.b, next.page);
        }
        if (a.batch > 1)
            begin(share.at.b, share.count > 0);
        for (int32_t left = share.count; left > 0; left -= WARP) {
            const indexer_cursor now = next;
            const int32_t now_slot = slot;
            if (lane + WARP < left) {
                next.advance(a, WARP * part.step);
                slot = indexer_slot(a, next.b, next.page);
            }
            for (int32_t i = 0; i < min(left, WARP); i++)
                copy_page(__shfl_sync(ALL_LANES, now.b, i), __shfl_sync(ALL_LANES, now.page, i),
                          __shfl_sync(ALL_LANES, now.live(), i), __shfl_sync(ALL_LANES, now_slot, i));
        }
        end();
        copy_wait_all();
    }
};

#endif

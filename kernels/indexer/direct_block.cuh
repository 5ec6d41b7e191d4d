/* A block's pages, of any requests, from memory to registers and on to the tensor cores: live_direct.cuh for more than one request.
 *
 * Four teams of four warps take the pages of the block's share in turn, page i team i % 4. Each warp keeps a list of the team's
 * next pages in shared memory; the page after the one that is multiplied is on its way to registers. q of up to QUERIES requests
 * lies in shared memory; where a share has more, all teams meet when the next so many are wanted. There is no ring, and nobody
 * hands anything on.
 */
#ifndef KBENCH_INDEXER_DIRECT_BLOCK_CUH
#define KBENCH_INDEXER_DIRECT_BLOCK_CUH

#include "live_ahead.cuh"
#include "live_direct.cuh"

/* From a multiple of 1,024 on: q, w ([QUERIES][INDEXER_HEADS] floats), and lists of each warp: of LOOK pages and of the LOOK before
 * or after, as request, page, live entries, number; then how many pages the block has. */
template <int QUERIES> struct direct_places {
    static constexpr int LOOK = 16;
    static constexpr uint32_t Q = 2 * SCORE_HALF, W = QUERIES * Q, LISTS = W + QUERIES * INDEXER_HEADS * 4;
    static constexpr uint32_t LIST = (2 * LOOK + 1) * 16, BYTES = LISTS + DIRECT_THREADS / WARP * LIST;
};

/* gridDim.x, not to be kept in a register. */
static __device__ __forceinline__ int32_t direct_blocks(void) {
    int32_t blocks;
    asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
    return blocks;
}

/* Products of the warp's 16 entries and all heads: where there is no wgmma, by mma.sync. q: shared. */
template <class F>
static __device__ __forceinline__ void direct_multiply(float (&c)[INDEXER_HEADS / 2], const uint32_t (&k)[SCORE_STEPS][4],
                                                       uint32_t q) {
    if constexpr (HAS_WGMMA) {
        wgmma_begin();
        F::multiply(c, k, wgmma_rows(q));
        wgmma_commit();
        wgmma_wait(c);
    } else {
#pragma unroll
        for (int head = 0; head < INDEXER_HEADS; head += 16) {
            const typename F::heads heads(q, head);
            float tile[2][4] = {};
#pragma unroll
            for (int step = 0; step < SCORE_STEPS; step++) {
                uint32_t b[4];
                heads.step(step, b);
                F::multiply(tile[0], k[step], b[0], b[1]);
                F::multiply(tile[1], k[step], b[2], b[3]);
            }
#pragma unroll
            for (int i = 0; i < 8; i++)
                c[head / 2 + i] = tile[i / 4][i % 4];
        }
    }
}

template <class F, int QUERIES> struct direct_block {
    using places = direct_places<QUERIES>;
    static constexpr int PER = F::BYTES / 16 / DIRECT_THREADS, LINE = INDEXER_HEADS / 4;  /* chunks of q a thread; of w */

    const indexer_args &a;
    uint32_t            at;     /* shared */
    int32_t             next;   /* first of the team's pages that is not scored yet */
    uint4               q[2][PER], w;  /* asked for */

    __device__ __forceinline__ direct_block(const indexer_args &args, uint32_t shared) : a(args), at(shared) {}

    /* From one of its pages to the next: those of a single request are dealt out in turn, see live_direct.cuh. */
    __device__ __forceinline__ int32_t step(void) const {
        return a.batch > 1 ? 1 : direct_blocks();
    }
    /* The team's page `n` among the block's. */
    static __device__ __forceinline__ int32_t index_of(int32_t n) {
        return warp_id() / 4 + n * DIRECT_TEAMS;
    }
    /* The list's place of the team's page `n`. */
    __device__ __forceinline__ uint32_t listed(int32_t n) const {
        return lists() + n % (2 * places::LOOK) * 16;
    }
    __device__ __forceinline__ uint32_t lists(void) const {
        return at + places::LISTS + warp_id() * places::LIST;
    }
    __device__ __forceinline__ void list(int32_t n, const indexer_cursor &c, int32_t slot) const {
        store16_shared(listed(n), make_uint4((uint32_t)c.b, (uint32_t)c.page, (uint32_t)c.live(), (uint32_t)slot));
    }

    /* early: number of the lane's page of a single request. */
    __device__ __forceinline__ void take(const indexer_share &share, int32_t early) {
        const int lane = lane_id();
        next = 0;
        store4_shared(lists() + 2 * places::LOOK * 16, (uint32_t)share.count);
        if (lane < places::LOOK && index_of(lane) < share.count) {
            indexer_cursor c = share.at;
            c.advance(a, index_of(lane) * step());
            list(lane, c, a.batch > 1 ? indexer_slot(a, c.b, c.page) : early);
        }
    }
    /* Page number of what may be the lane's page of a single request. */
    static __device__ __forceinline__ int32_t guess(const indexer_args &a) {
        const int32_t page = (int32_t)blockIdx.x + index_of(lane_id()) * (int32_t)gridDim.x;
        const bool any = lane_id() < places::LOOK && page < a.width / INDEXER_PAGE;
        return any ? (int32_t)load4_now(indexer_row<INDEXER_PAGE_TABLE>(a, 0) + (int64_t)page * 4) : 0;
    }

    /* Lists LOOK pages from the team's page `from` on. */
    __device__ __forceinline__ void look_up(int32_t from) const {
        const int32_t n = from + lane_id();
        if (lane_id() < places::LOOK && index_of(n) < (int32_t)load4_shared(lists() + 2 * places::LOOK * 16)) {
            const uint4 old = load16_shared(listed(n - places::LOOK));
            indexer_cursor c = {(int32_t)old.x, (int32_t)old.y, indexer_length(a, (int32_t)old.x)};
            c.advance(a, places::LOOK * DIRECT_TEAMS * step());
            list(n, c, indexer_slot(a, c.b, c.page));
        }
        __syncwarp();
    }

    /* Asks for q and w of request b and, up to `last`, of the next one. */
    __device__ __forceinline__ void ask(int32_t b, int32_t last) {
        const int tid = (int)pinned(threadIdx.x);  /* or addresses would wait in registers for the next time */
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int i = 0; i < PER; i++) {
                const int chunk = i * DIRECT_THREADS + tid;
                q[j][i] = make_uint4(0, 0, 0, 0);  /* or what it held before would have to be kept */
                if (b + j <= last)
                    q[j][i] = load16_now(indexer_row<INDEXER_Q>(a, (int64_t)(b + j) * INDEXER_HEADS + chunk / (F::HALVES * 8)) +
                                         chunk % (F::HALVES * 8) * 16);
            }
        w = make_uint4(0, 0, 0, 0);
        if (tid < 2 * LINE && b + tid / LINE <= last)
            w = load16_now(indexer_row<INDEXER_W>(a, b + tid / LINE) + tid % LINE * 16);
    }
    /* What has been asked for goes to buffers `buffer` and the next. */
    __device__ __forceinline__ void place(int buffer, int32_t b, int32_t last) const {
        const int tid = (int)pinned(threadIdx.x);  /* or addresses would wait in registers for the next time */
#pragma unroll
        for (int j = 0; j < 2; j++)
            if (b + j <= last)
#pragma unroll
                for (int i = 0; i < PER; i++)
                    F::place(at + (uint32_t)(buffer + j) * places::Q, i * DIRECT_THREADS + tid, q[j][i]);
        if (tid < 2 * LINE && b + tid / LINE <= last)
            store16_shared(at + places::W + (uint32_t)(buffer * LINE + tid) * 16, w);
    }
    /* All that the buffers hold from request `base` on, of which the first two have been asked for. */
    __device__ __forceinline__ void place_all(int32_t base, int32_t last) {
#pragma unroll 1
        for (int i = 0;; i += 2) {
            place(i, base + i, last);
            if (i + 2 >= QUERIES || base + i + 2 > last)
                break;
            ask(base + i + 2, last);
        }
        wgmma_publish();
        __syncthreads();
    }

    /* Scores of the block's pages from where it stands up to plan.until(), of requests base to plan.last(); q of base and the next
     * have been asked for. plan.place(b, page, i) says where scores go: of page `page` of request b, the block's page number i. To
     * be followed by a barrier before it is called again. */
    template <class PLAN> __device__ __forceinline__ void run(int32_t base, const PLAN &plan) {
        const int first = warp_id() % 4 * 16;
        direct_page<F> keys;
        const auto load = [&](int32_t n) {
            if (n > 0 && n % places::LOOK == 0)
                look_up(n);
            keys.load(a, (int32_t)load16_shared(listed(n)).w, first);
        };
        __syncwarp();
        if (index_of(next) < plan.until())
            load(next);
#pragma unroll 1
        for (;; base += QUERIES) {
            place_all(base, plan.last());
#pragma unroll 1
            while (index_of(next) < plan.until()) {
                const uint32_t buffer = load4_shared(listed(next)) - (uint32_t)base;
                if (buffer >= QUERIES)
                    break;
                uint32_t k[SCORE_STEPS][4];
                F::fragments(keys.low, keys.high, k);
                const float scale = keys.scale;
                if (HAS_WGMMA && index_of(next + 1) < plan.until())
                    load(next + 1);
                float c[INDEXER_HEADS / 2], weight[INDEXER_HEADS / 4], sum[2];
                direct_multiply<F>(c, k, at + buffer * places::Q);
                score_weights(at + places::W + buffer * (LINE * 16), weight);
                score_fold_row(c, weight, sum);
                const uint4 page = load16_shared(listed(next));
                float *const scores = plan.place((int32_t)page.x, (int32_t)page.y, index_of(next));
                score_write(scores, first, (int32_t)page.z, scale, sum);
                next++;
                if (!HAS_WGMMA && index_of(next) < plan.until())
                    load(next);  /* mma.sync has no registers for two pages */
            }
            if (base + QUERIES > plan.last())
                break;
            __syncthreads();
            ask(base + QUERIES, plan.last());
        }
    }
};

static constexpr int DIRECT_QUERIES = 4;
static constexpr size_t DIRECT_SHARED = 1024 + direct_places<DIRECT_QUERIES>::BYTES;

/* All at once, to the logits. */
struct direct_all {
    const indexer_args &a;
    int32_t             count, last_one;

    __device__ __forceinline__ int32_t until(void) const {
        return count;
    }
    __device__ __forceinline__ int32_t last(void) const {
        return last_one;
    }
    __device__ __forceinline__ float *place(int32_t b, int32_t page, int32_t) const {
        return indexer_logits(a, b, page);
    }
};

/* ahead: pages that a block asks L2 for before it knows its share; 0: none. */
template <class F>
static __global__ void __launch_bounds__(DIRECT_THREADS, 1)
    indexer_direct_many(const __grid_constant__ indexer_args a, int32_t ahead) {
    extern __shared__ __align__(1024) char shared_bytes[];
    if constexpr (HAS_WGMMA) {
        const uint4 lengths = indexer_load4(a, lane_id() * 4);
        indexer_ask(a, (int32_t)threadIdx.x);
        const bool asks = ahead > 0 && warp_id() == DIRECT_THREADS / WARP - 1;  /* of the team that has the fewest pages */
        live_ahead<F> pages;
        if (asks)
            pages.begin(a, ahead);
        const uint32_t inverse = indexer_inverse((int32_t)gridDim.x);
        if (asks)
            pages.end(a);
        const indexer_share share =
            indexer_share_of(a, (int32_t)blockIdx.x, (int32_t)gridDim.x, indexer_clamp4(a, lengths), inverse);
        if (share.count == 0)
            return;
        direct_block<F, DIRECT_QUERIES> block(a, (shared_address(shared_bytes) + 1023) / 1024 * 1024);
        block.take(share, 0);
        indexer_cursor end = share.at;
        end.advance(a, share.count - 1);
        block.ask(share.at.b, end.b);
        block.run(share.at.b, direct_all{a, share.count, end.b});
    }
}

#endif

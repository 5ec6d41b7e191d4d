/* Likewise by warpgroups, sm_90a: one warp has the copy engine bring pages into a ring, four teams take them in turn, a page from
 * memory to the tensor cores without a register in between; then the teams select. The products are those of indexer/live.
 */
#ifndef KBENCH_INDEX_SELECT_REQUEST_WGMMA_CUH
#define KBENCH_INDEX_SELECT_REQUEST_WGMMA_CUH

#include "indexer/hopper.cuh"
#include "indexer/score.cuh"
#include "request.cuh"

static constexpr int WIDE_TEAMS = 4, WIDE_THREADS = WIDE_TEAMS * 4 * WARP;  /* of the teams; one warp more copies */
static constexpr int WIDE_STAGES = 6, WIDE_ROOM = 20480, WIDE_ALIGN = 1024;

/* Aligned to WIDE_ALIGN by hand. */
struct wide_shared {
    alignas(16) char     ring[WIDE_STAGES][score_bf16::BYTES];
    alignas(16) char     q[score_bf16::BYTES];
    alignas(16) float    w[INDEXER_HEADS];
    alignas(16) uint32_t key[WIDE_ROOM];
    int32_t              pages[WIDE_ROOM / INDEXER_PAGE];
    select_shared        select;
    alignas(8) uint64_t  full[WIDE_STAGES], empty[WIDE_STAGES], ready;  /* barriers; ready: of q */
};
static constexpr size_t WIDE_BYTES = sizeof(struct wide_shared) + WIDE_ALIGN;

/* Keys and q of all requests, in rows of two times 128 bytes. */
struct wide_maps {
    CUtensorMap key, q;
};

/* Two halves of 64 rows; by one thread. */
static __device__ __forceinline__ void wide_copy(uint32_t to, const CUtensorMap &map, int32_t row, uint32_t barrier) {
#pragma unroll
    for (int half = 0; half < score_bf16::HALVES; half++)
        bulk_rows(to + half * SCORE_HALF, &map, half * SCORE_ROW, row, barrier);
}

/* What the copying warp knows before the length: page numbers, lane i's of the block's page i. */
struct wide_copier {
    const indexer_args &a;
    const wide_maps    &maps;
    wide_shared        &sh;
    const int32_t      *table;
    int32_t             b, step, room;  /* as in scorer */

    __device__ __forceinline__ int32_t number(int32_t page) const {
        return page * step < room ? __ldg(table + page * step) : 0;
    }
    __device__ __forceinline__ void copy_query(void) const {
        if (lane_id() == 0) {
            const uint32_t ready = shared_address(&sh.ready);
            barrier_arrive_expect(ready, score_bf16::BYTES + sizeof sh.w);
            wide_copy(shared_address(sh.q), maps.q, b * INDEXER_HEADS, ready);
            bulk_line(shared_address(sh.w), indexer_row<INDEXER_W>(a, b), sizeof sh.w, ready);
        }
    }
    __device__ __forceinline__ void run(int32_t pages, int32_t mine) const {
        const int lane = lane_id();
        for (int32_t first = 0; first < pages; first += WARP) {
            const int32_t now = mine, page = first + lane;
            if (page + WARP < pages)
                mine = number(page + WARP);
            if (page < pages && page < WIDE_ROOM / INDEXER_PAGE)
                sh.pages[page] = now;
            for (int32_t i = first; i < min(pages, first + WARP); i++) {
                const int32_t stage = i % WIDE_STAGES, slot = __shfl_sync(ALL_LANES, now, i - first);
                if (lane == 0) {
                    const uint32_t full = shared_address(&sh.full[stage]);
                    if (i >= WIDE_STAGES)
                        barrier_wait(shared_address(&sh.empty[stage]), (uint32_t)(i / WIDE_STAGES - 1) & 1);
                    barrier_arrive_expect(full, score_bf16::BYTES);
                    wide_copy(shared_address(sh.ring[stage]), maps.key, slot * INDEXER_PAGE, full);
                }
                __syncwarp();
            }
        }
    }
};

/* A team's pages. */
template <class PUT>
static __device__ __forceinline__ void wide_score(wide_shared &sh, const request_part &part, const PUT &put) {
    const int team = warp_id() / 4, first = warp_id() % 4 * 16;
    float weight[INDEXER_HEADS / 4];
    barrier_wait(shared_address(&sh.ready), 0);
    score_weights(shared_address(sh.w), weight);
    const uint64_t q = wgmma_rows(shared_address(sh.q));
    for (int32_t i = team; i < part.pages; i += WIDE_TEAMS) {
        const int32_t stage = i % WIDE_STAGES;
        barrier_wait(shared_address(&sh.full[stage]), (uint32_t)(i / WIDE_STAGES) & 1);
        const uint64_t keys = wgmma_rows(shared_address(sh.ring[stage]));
        float c[INDEXER_HEADS / 2], sum[2];
        wgmma_begin();
#pragma unroll
        for (int step = 0; step < SCORE_STEPS; step++) {
            const int at = step % 4 * 2 + step / 4 * (SCORE_HALF >> 4);
            wgmma_bf16(c, keys + at, q + at, step > 0);
        }
        wgmma_commit();
        wgmma_wait(c);
        if (lane_id() == 0)
            barrier_arrive(shared_address(&sh.empty[stage]));
        score_fold_row(c, weight, sum);
        const float score = score_join(sum);
        const int32_t e = i * INDEXER_PAGE + score_entry(first);
        if (lane_id() % 4 < 2 && e < part.entries)
            put(e, score);
    }
}

static __device__ __forceinline__ void wide_barriers(wide_shared &sh) {
    for (int i = 0; i < WIDE_STAGES; i++) {
        barrier_init(shared_address(&sh.full[i]), 1);
        barrier_init(shared_address(&sh.empty[i]), 4);
    }
    barrier_init(shared_address(&sh.ready), 1);
    barrier_init_done();
}

/* The copying warp takes no part in what the cluster has to say to each other, and has ended by then. */
static __device__ __forceinline__ void wide_run(const request_args &a, const wide_maps &maps, wide_shared &sh) {
    const peers_cluster peers = peers_cluster::here();
    const int32_t count = (int32_t)peers.count(), rank = (int32_t)peers.rank(), b = (int32_t)blockIdx.x / count;
    const int32_t *const table = (const int32_t *)indexer_row<INDEXER_PAGE_TABLE>(a.op, b) + rank;
    const int32_t room = a.op.width / INDEXER_PAGE - rank;
    const int32_t raw = (int32_t)load4_now((const int32_t *)a.op.t[INDEXER_LENGTH].p + b);
    request_row<WIDE_THREADS, WIDE_ROOM> row = {sh.key, a.past + (int64_t)blockIdx.x * a.each, sh.pages, sh.select, table, count,
        0};
    if (warp_id() == WIDE_THREADS / WARP) {
        const wide_copier copier = {a.op, maps, sh, table, b, count, room};
        const int32_t at = lane_id() * count;
        const int32_t mine = at < room ? (int32_t)load4_now(table + at) : 0;
        if (lane_id() == 0) {
            wide_barriers(sh);
            copier.copy_query();
        }
        __syncthreads();
        copier.run(request_part(indexer_clamp(a.op, raw), rank, count).pages, mine);
        __syncthreads();
        return;
    }
    select_clear<WIDE_THREADS>(sh.select);
    peers.arrive();
    __syncthreads();
    const request_part part(indexer_clamp(a.op, raw), rank, count);
    row.n = part.entries;
    wide_score(sh, part, [&](int32_t e, float score) { row.put(e, score); });
    __syncthreads();
    request_select(a, b, row, peers_part<WIDE_THREADS>(peers));
}

static __global__ void __launch_bounds__(WIDE_THREADS + WARP, 1)
    index_select_wide(const __grid_constant__ request_args a, const __grid_constant__ wide_maps maps) {
    extern __shared__ __align__(WIDE_ALIGN) char shared_bytes[];
    if constexpr (HAS_WGMMA) {
        const uint32_t at = shared_address(shared_bytes), off = (at + WIDE_ALIGN - 1) / WIDE_ALIGN * WIDE_ALIGN - at;
        wide_run(a, maps, *(wide_shared *)(shared_bytes + off));
    }
}

#endif

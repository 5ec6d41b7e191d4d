/* index_select/fused where a request is a cluster's: block r of it scores the pages r, r + blocks, ... and selects among them
 * together with the others, through distributed shared memory. No block waits for memory that another one writes.
 *
 * What a block knows from the start, it asks for at once: length, first page numbers, q. Scores are counted for the selection as
 * they come. Those past ROOM go to the workspace, that is L2.
 */
#ifndef KBENCH_INDEX_SELECT_REQUEST_CUH
#define KBENCH_INDEX_SELECT_REQUEST_CUH

#include "index_select.h"
#include "lists.cuh"
#include "topk/topk.cuh"

/* STAGES: tiles in a warp's ring; ROOM: scores that a block holds. */
template <int STAGES_, int ROOM_> struct request_shape {
    static constexpr int STAGES = STAGES_, ROOM = ROOM_;
};

struct request_args {
    indexer_args op;
    uint32_t    *past;  /* keys past ROOM: `each` of each block */
    int32_t      each, k;
};

template <class S> struct request_shared {
    alignas(16) uint32_t key[S::ROOM];
    int32_t                 pages[S::ROOM / INDEXER_PAGE];
    select_shared           select;
    score_ring<S::STAGES>   ring;
};

/* Of a request's pages: those of block `rank` of `count`. */
struct request_part {
    int32_t pages, entries;

    __device__ __forceinline__ request_part(int32_t length, int32_t rank, int32_t count) {
        const int32_t all = indexer_pages(length);
        pages = all > rank ? (all - rank - 1) / count + 1 : 0;
        const bool has_last = pages > 0 && (all - 1) % count == rank;
        entries = pages * INDEXER_PAGE - (has_last ? all * INDEXER_PAGE - length : 0);
    }
};

/* A block's entries, in the order of its pages, for a selection by THREADS. */
template <int THREADS, int ROOM> struct request_row {
    static constexpr int EACH = THREADS * 4;  /* entries a round */
    static_assert(ROOM % EACH == 0, "a round is in one place");

    uint32_t      *key, *past;  /* shared; the workspace */
    int32_t       *pages;       /* shared: numbers of those that have room */
    select_shared &select;
    const int32_t *table;       /* at the block's first page */
    int32_t        step, n;

    __device__ __forceinline__ int32_t entry(int round) const {
        return round * EACH + (int32_t)threadIdx.x * 4;
    }
    __device__ __forceinline__ int rounds(void) const {
        return (n + EACH - 1) / EACH;
    }
    __device__ __forceinline__ uint4 keys(int round) const {
        const int32_t e = entry(round);
        if (e >= n)
            return make_uint4(0, 0, 0, 0);
        return keys_below(e < ROOM ? *(const uint4 *)(key + e) : *(const uint4 *)(past + e - ROOM), e, n);
    }
    __device__ __forceinline__ uint32_t page(int round) const {
        const int32_t e = entry(round);
        return (uint32_t)(e < ROOM ? pages[e / INDEXER_PAGE] : __ldg(table + e / INDEXER_PAGE * step));
    }
    __device__ __forceinline__ uint32_t slot(uint32_t page, int, int i) const {
        return page * INDEXER_PAGE + (uint32_t)entry(0) % INDEXER_PAGE + (uint32_t)i;
    }
    __device__ __forceinline__ void put(int32_t e, float score) const {
        const uint32_t bits = __float_as_uint(score), k = key_of_bits(bits);
        if (e < ROOM)
            key[e] = k;
        else
            past[e - ROOM] = k;
        atomicAdd(&select.bins[0][first_bin_of_lower(first_bins(bits, 0))], 1u);
    }
    /* The page numbers of entries that have room, as far as the table goes and `to` allows; room: its pages from `table` on. */
    __device__ __forceinline__ void copy_pages(int32_t room, int32_t from, int32_t to) const {
        for (int32_t i = from + (int32_t)threadIdx.x; i < min(to, (int32_t)(ROOM / INDEXER_PAGE)); i += THREADS)
            if (i * step < room)
                copy4_async(pages + i, table + i * step);
    }
};

/* By THREADS threads of each block, when all keys are there and counted, and peers have been told to arrive(). */
template <int THREADS, int ROOM, class PEERS>
static __device__ __forceinline__ void request_select(const request_args &a, int32_t b, const request_row<THREADS, ROOM> &row,
    const PEERS &peers) {
    int32_t *const slot = (int32_t *)indexer_row<INDEX_SELECT_SLOT>(a.op, b);
    const fused_sink to = {nullptr, slot};
    selection<THREADS, 0, true, PEERS, request_row<THREADS, ROOM>, fused_sink> s = {row.select, peers, row, to};
    const uint32_t total = s.run((uint32_t)a.k, true);
    if (peers.rank() == 0)
        for (uint32_t i = total + threadIdx.x; i < (uint32_t)a.k; i += THREADS)
            slot[i] = -1;
}

template <class S>
static __device__ __forceinline__ void request_run(const request_args &a, request_shared<S> &sh) {
    constexpr int AT_ONCE = WARP;  /* page numbers */
    const peers_cluster peers = peers_cluster::here();
    const int32_t count = (int32_t)peers.count(), rank = (int32_t)peers.rank(), b = (int32_t)blockIdx.x / count;
    const int32_t raw = __ldg((const int32_t *)a.op.t[INDEXER_LENGTH].p + b);
    scorer<S::STAGES> s(a.op, sh.ring, b, rank, count);
    request_row<SCORE_THREADS, S::ROOM> row = {sh.key, a.past + (int64_t)blockIdx.x * a.each, sh.pages, sh.select, s.table, count,
        0};
    row.copy_pages(s.room, 0, AT_ONCE);
    select_clear<SCORE_THREADS>(sh.select);
    peers.arrive();
    __syncthreads();

    const request_part part(indexer_clamp(a.op, raw), rank, count);
    row.n = part.entries;
    row.copy_pages(s.room, AT_ONCE, part.pages);
    s.limit(part.entries);
    s.run(b, [&](int32_t e, float score) { row.put(e, score); });
    __syncthreads();
    request_select(a, b, row, peers);
}

template <class S>
static __global__ void __launch_bounds__(SCORE_THREADS, 1) index_select_request(const __grid_constant__ request_args a) {
    extern __shared__ __align__(16) char shared[];
    request_run<S>(a, *(request_shared<S> *)shared);
}

#endif

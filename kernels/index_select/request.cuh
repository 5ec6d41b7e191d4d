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
    static_assert(ROOM % ROUND == 0, "a round is in one place");
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

/* A block's entries, in the order of its pages. */
template <class S> struct request_row {
    request_shared<S> &sh;
    uint32_t          *past;
    const int32_t     *table;   /* at the block's first page */
    int32_t            step, n;

    __device__ __forceinline__ int32_t entry(int round) const {
        return round * ROUND + (int32_t)threadIdx.x * 4;
    }
    __device__ __forceinline__ int rounds(void) const {
        return (n + ROUND - 1) / ROUND;
    }
    __device__ __forceinline__ uint4 keys(int round) const {
        const int32_t e = entry(round);
        if (e >= n)
            return make_uint4(0, 0, 0, 0);
        return keys_below(e < S::ROOM ? *(const uint4 *)(sh.key + e) : *(const uint4 *)(past + e - S::ROOM), e, n);
    }
    __device__ __forceinline__ uint32_t page(int round) const {
        const int32_t e = entry(round);
        return (uint32_t)(e < S::ROOM ? sh.pages[e / INDEXER_PAGE] : __ldg(table + e / INDEXER_PAGE * step));
    }
    __device__ __forceinline__ uint32_t slot(uint32_t page, int, int i) const {
        return page * INDEXER_PAGE + (uint32_t)entry(0) % INDEXER_PAGE + (uint32_t)i;
    }
    __device__ __forceinline__ void put(int32_t e, float score) const {
        const uint32_t bits = __float_as_uint(score), key = key_of_bits(bits);
        if (e < S::ROOM)
            sh.key[e] = key;
        else
            past[e - S::ROOM] = key;
        atomicAdd(&sh.select.bins[0][first_bin_of_lower(first_bins(bits, 0))], 1u);
    }
};

/* The page numbers of entries that have room, as far as the table goes and `to` allows. */
template <class S>
static __device__ __forceinline__ void request_pages(const indexer_args &a, const request_row<S> &row, int32_t first, int32_t from,
    int32_t to) {
    for (int32_t i = from + (int32_t)threadIdx.x; i < min(to, S::ROOM / INDEXER_PAGE); i += SCORE_THREADS)
        if (first + i * row.step < a.width / INDEXER_PAGE)
            copy4_async(row.sh.pages + i, row.table + i * row.step);
}

template <class S>
static __device__ __forceinline__ void request_run(const request_args &a, request_shared<S> &sh) {
    constexpr int AT_ONCE = WARP;  /* page numbers */
    const peers_cluster peers = peers_cluster::here();
    const int32_t count = (int32_t)peers.count(), rank = (int32_t)peers.rank(), b = (int32_t)blockIdx.x / count;
    const int32_t raw = __ldg((const int32_t *)a.op.t[INDEXER_LENGTH].p + b);
    scorer<S::STAGES> s(a.op, sh.ring, b, rank, count);
    request_row<S> row = {sh, a.past + (int64_t)blockIdx.x * a.each, s.table, count, 0};
    request_pages(a.op, row, rank, 0, AT_ONCE);
    select_clear<SCORE_THREADS>(sh.select);
    peers.arrive();
    __syncthreads();

    const int32_t length = indexer_clamp(a.op, raw), pages = indexer_pages(length);
    const int32_t mine = pages > rank ? (pages - rank - 1) / count + 1 : 0;
    const bool has_last = mine > 0 && (pages - 1) % count == rank;
    row.n = mine * INDEXER_PAGE - (has_last ? pages * INDEXER_PAGE - length : 0);
    request_pages(a.op, row, rank, AT_ONCE, mine);
    s.limit(row.n);
    s.run(b, [&](int32_t e, float score) { row.put(e, score); });
    __syncthreads();

    const fused_sink to = {nullptr, (int32_t *)indexer_row<INDEX_SELECT_SLOT>(a.op, b)};
    selection<SCORE_THREADS, 0, true, peers_cluster, request_row<S>, fused_sink> select = {sh.select, peers, row, to};
    const uint32_t total = select.run((uint32_t)a.k, true);
    if (rank == 0)
        to.pad(total, (uint32_t)a.k);
}

template <class S>
static __global__ void __launch_bounds__(SCORE_THREADS, 1) index_select_request(const __grid_constant__ request_args a) {
    extern __shared__ __align__(16) char shared[];
    request_run<S>(a, *(request_shared<S> *)shared);
}

#endif

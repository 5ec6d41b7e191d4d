/* index_select/fused for many requests: live pages shared out evenly, lists of the best, merges. See fused.cu. */
#ifndef KBENCH_INDEX_SELECT_FUSED_CUH
#define KBENCH_INDEX_SELECT_FUSED_CUH

#include "index_select.h"
#include "lists.cuh"
#include "share.cuh"

/* STAGES: tiles in a warp's ring; CHUNK: scores that a block holds. */
template <int STAGES_, int CHUNK_> struct fused_shape {
    static constexpr int STAGES = STAGES_, CHUNK = CHUNK_;
};

/* Where a block is: in pages [page, until) of request r, at the chunk that begins with entry `from`; it has kept `kept` of the
 * chunks before, in its spare list `which`. Parked in shared memory while it scores, when registers are dear. */
struct fused_place {
    page_share    share;
    int32_t       cap;  /* keys of a list that count */
    share_request r;
    int32_t       page, until, from, kept, which;

    __device__ __forceinline__ int32_t begin(void) const {
        return (page - r.first) * INDEXER_PAGE;
    }
    __device__ __forceinline__ int32_t end(void) const {
        return min((until - r.first) * INDEXER_PAGE, r.length);
    }
};

template <class S> struct fused_shared {
    alignas(16) uint32_t key[S::CHUNK];
    union {  /* in turns */
        score_ring<S::STAGES> ring;
        select_shared         select;
    };
    fused_place parked;
    uint2       last[2];
};

struct fused_args {
    indexer_args op;
    fused_lists  lists;
    uint32_t    *arrived;  /* by request */
    int32_t      k, room;  /* room: k, to a multiple of 4 */
};

/* Lists of up to this many keys are merged by one block, at once; larger ones, where there are clusters, by a whole one. */
static constexpr int MERGE_CACHED = 4, MERGE_ALONE = MERGE_CACHED * ROUND;

/* A piece is the pages of one request in one part. */
struct fused_pieces {
    int32_t first_part, count, list;  /* of a request; number of its first list */
};

template <class S> struct fused_block {
    const fused_args &a;
    fused_shared<S>  &sh;
    fused_place       at;

    __device__ __forceinline__ fused_block(const fused_args &args, fused_shared<S> &shared)
        : a(args), sh(shared), at{page_share(share_pages(args.op), (int32_t)gridDim.x)} {
        at.cap = min(a.room, at.share.most() * INDEXER_PAGE);
    }
    static __device__ __forceinline__ int32_t part(void) {
        return (int32_t)blockIdx.x;
    }

    __device__ __forceinline__ fused_pieces pieces_of(const share_request &r) const {
        const int32_t first = at.share.part_of(r.first);
        return {first, at.share.part_of(r.end() - 1) - first + 1, first + r.b};
    }
    __device__ __forceinline__ fused_sink output(int32_t b) const {
        return {nullptr, (int32_t *)indexer_row<INDEX_SELECT_SLOT>(a.op, b)};
    }
    /* `cap` apart, so that those of a request are one row. */
    __device__ __forceinline__ fused_sink list(int32_t number) const {
        return {a.lists.key + (int64_t)number * at.cap, a.lists.slot + (int64_t)number * at.cap};
    }
    /* Two of this block's own, past all that could be pieces. */
    __device__ __forceinline__ fused_sink spare(int32_t which) const {
        const int64_t first = ((int64_t)gridDim.x + a.op.batch + blockIdx.x * 2 + which) * a.room;
        return {a.lists.key + first, a.lists.slot + first};
    }

    __device__ __forceinline__ int32_t chunk_entries(void) const {
        return min(at.end() - at.from, (int32_t)S::CHUNK);
    }

    /* Entries of the chunk become keys in shared memory. */
    __device__ __forceinline__ void score(void) {
        if (threadIdx.x == 0)
            sh.parked = at;
        scorer<S::STAGES> s(a.op, sh.ring, at.r.b, at.from / INDEXER_PAGE, 1);
        s.limit(chunk_entries());
        s.run(at.r.b, [&](int32_t i, float score) { sh.key[i] = key_of_bits(__float_as_uint(score)); });
        __syncthreads();
        at = sh.parked;
    }

    /* The best of a piece, chunk by chunk: to the output if it is all of the request, else to its list. */
    __device__ __forceinline__ void piece(void) {
        at.from = at.begin(), at.kept = 0, at.which = 0;
        do {
            score();
            const int32_t n = chunk_entries();
            const bool last = at.from + n == at.end(), whole = pieces_of(at.r).count == 1;
            const fused_sink to = whole ? output(at.r.b) : list(part() + at.r.b), sink = last ? to : spare(at.which);
            const chunk_row row = {spare(at.which ^ 1), at.kept, (at.kept + ROUND - 1) / ROUND, sh.key,
                (const int32_t *)indexer_row<INDEXER_PAGE_TABLE>(a.op, at.r.b) + at.from / INDEXER_PAGE, n};
            if (!whole && at.end() - at.begin() <= at.cap) {
                all(row, sink);
                return;
            }
            select_clear<SCORE_THREADS>(sh.select);
            __syncthreads();
            const peers_none alone;
            selection<SCORE_THREADS, 0, true, peers_none, chunk_row, fused_sink> s = {sh.select, alone, row, sink};
            const uint32_t total = s.run((uint32_t)a.k, false);
            if (last)
                sink.pad(total, whole ? (uint32_t)a.k : (uint32_t)at.cap);
            at.kept = (int32_t)total;
            at.which ^= 1;
            at.from += n;
            __syncthreads();
        } while (at.from < at.end());
    }

    /* A piece no longer than a list is one. */
    __device__ __forceinline__ void all(const chunk_row &row, const fused_sink &sink) {
        for (int32_t i = (int32_t)threadIdx.x; i < row.n; i += SCORE_THREADS)
            sink.put((uint32_t)i, sh.key[i], (uint32_t)(__ldg(row.table + i / INDEXER_PAGE) * INDEXER_PAGE + i % INDEXER_PAGE));
        sink.pad((uint32_t)row.n, (uint32_t)at.cap);
        __syncthreads();
    }

    template <class PEERS> __device__ __forceinline__ void merge(int32_t b, const fused_pieces &p, const PEERS &peers) {
        const list_row row(list(p.list), p.count * at.cap, peers);
        const fused_sink to = output(b);
        selection<SCORE_THREADS, MERGE_CACHED, true, PEERS, list_row, fused_sink> s = {sh.select, peers, row, to};
        select_clear<SCORE_THREADS>(sh.select);
        peers.arrive();
        __syncthreads();
#pragma unroll
        for (int j = 0; j < MERGE_CACHED; j++)
            if (j < row.rounds())
                s.cache[j] = row.keys(j);
        const uint32_t total = s.run((uint32_t)a.k, false);
        if (peers.rank() == 0)
            to.pad(total, (uint32_t)a.k);
        __syncthreads();
    }

    /* By one thread, once all of what its block or cluster wrote is visible to it: is this the last of `all`? */
    __device__ __forceinline__ bool arrive(int32_t b, int32_t all) {
        __threadfence();
        const bool last = atomicAdd(a.arrived + b, 1u) + 1 == (uint32_t)all;
        if (last)
            a.arrived[b] = 0;
        __threadfence();
        return last;
    }

    __device__ __forceinline__ bool big(const fused_pieces &p, const peers_cluster &peers) const {
        return peers.count() > 1 && p.count * at.cap > MERGE_ALONE;
    }

    /* This block's pieces. */
    __device__ __forceinline__ void work(void) {
        at.page = at.share.begin(part());
        at.r = share_find(a.op, at.page);
        for (;;) {
            at.until = min(at.share.begin(part() + 1), at.r.end());
            piece();
            const fused_pieces p = pieces_of(at.r);
            if (p.count > 1 && !big(p, peers_cluster::here())) {
                __threadfence();
                __syncthreads();
                if (threadIdx.x == 0)
                    sh.last[0].x = arrive(at.r.b, p.count);
                __syncthreads();
                if (sh.last[0].x)
                    merge(at.r.b, p, peers_none());
            }
            at.page = at.until;
            if (at.page >= at.share.begin(part() + 1))
                break;
            at.r.next(a.op);
        }
    }

    /* The big merges, by the last cluster to come. All of its blocks walk over the cluster's requests alike. */
    __device__ __forceinline__ void work_together(const peers_cluster &peers) {
        const int32_t count = (int32_t)peers.count(), first = part() - (int32_t)peers.rank();
        const int32_t end = at.share.begin(min(first + count, at.share.parts));
        __threadfence();
        peers.sync();
        if (first >= at.share.parts)
            return;
        int turn = 0;
        for (share_request r = share_find(a.op, at.share.begin(first));; r.next(a.op)) {
            const fused_pieces p = pieces_of(r);
            if (big(p, peers)) {
                if (peers.rank() == 0 && threadIdx.x == 0) {
                    const bool last = arrive(r.b, (p.first_part + p.count - 1) / count - p.first_part / count + 1);
                    for (int32_t q = 0; q < count; q++)
                        peers.store(&sh.last[turn], (uint32_t)q, make_uint2(last, 0));
                }
                peers.sync();
                if (sh.last[turn].x) {
                    __threadfence();
                    merge(r.b, p, peers);
                }
                turn ^= 1;
            }
            if (r.end() >= end)
                break;
        }
        peers.sync();
    }
};

template <class S> static __device__ __forceinline__ void fused_run(const fused_args &a, fused_shared<S> &sh) {
    fused_block<S> block(a, sh);
    for (int32_t b = (int32_t)blockIdx.x; b < a.op.batch; b += (int32_t)gridDim.x)
        if (indexer_length(a.op, b) == 0)
            block.output(b).pad(0, (uint32_t)a.k);
    if (block.part() < block.at.share.parts)
        block.work();
    const peers_cluster peers = peers_cluster::here();
    if (peers.count() > 1)
        block.work_together(peers);
}

template <class S>
static __global__ void __launch_bounds__(SCORE_THREADS, 1) index_select_fused(const __grid_constant__ fused_args a) {
    extern __shared__ __align__(16) char shared[];
    fused_run<S>(a, *(fused_shared<S> *)shared);
}

#endif

/* index_select/fused: live pages shared out evenly, scores of short requests sent whole, lists of the best of long ones, and the
 * last block of a request selects. See fused.cu. */
#ifndef KBENCH_INDEX_SELECT_FUSED_CUH
#define KBENCH_INDEX_SELECT_FUSED_CUH

#include "fused_place.cuh"

template <class S> struct fused_block {
    using row_of = topk_row<FUSED_THREADS>;  /* of a request that has been sent whole */

    const fused_args &a;
    uint32_t          shared;  /* where it begins, a multiple of 1,024 */
    fused_place       at;

    static __device__ __forceinline__ int32_t part(void) {
        return (int32_t)blockIdx.x;
    }
    __device__ __forceinline__ bool single(void) const {
        return a.op.batch == 1;
    }
    __device__ __forceinline__ topk_shared<FUSED_THREADS> &selecting(void) const {
        return *(topk_shared<FUSED_THREADS> *)shared_pointer(shared);
    }
    __device__ __forceinline__ float *scores(void) const {
        return (float *)shared_pointer(shared + S::SCORES);
    }
    __device__ __forceinline__ uint32_t *last(void) const {
        return (uint32_t *)shared_pointer(shared + S::LAST);
    }
    __device__ __forceinline__ fused_place &parked(void) const {
        return *(fused_place *)shared_pointer(shared + S::PARKED);
    }
    /* A barrier before unpark(). */
    __device__ __forceinline__ void park(void) const {
        if (threadIdx.x == 0)
            parked() = at;
    }
    /* What depends on `shared` is computed anew, not kept in registers all the while. */
    __device__ __forceinline__ void unpark(uint32_t from) {
        shared = pinned(from);
        at = parked();
    }

    __device__ __forceinline__ bool whole(const share_request &r) const {
        return r.length <= a.whole;
    }
    /* The block's page that is the first past request r, or past them all. */
    __device__ __forceinline__ int32_t until(const share_request &r) const {
        return single() ? at.count : min(r.end() - at.begin, at.count);
    }
    __device__ __forceinline__ fused_pieces pieces_of(const share_request &r) const {
        if (single())
            return {0, at.share.parts, 0};
        const int32_t first = at.share.part_of(r.first);
        return {first, at.share.part_of(r.end() - 1) - first + 1, first + r.b};
    }

    __device__ __forceinline__ const int32_t *table(int32_t b) const {
        return (const int32_t *)indexer_row<INDEXER_PAGE_TABLE>(a.op, b);
    }
    __device__ __forceinline__ fused_sink output(int32_t b) const {
        return {nullptr, (int32_t *)indexer_row<INDEX_SELECT_SLOT>(a.op, b)};
    }
    /* Those of a request are one row. */
    __device__ __forceinline__ fused_sink list(int32_t number) const {
        return {a.lists.key + (int64_t)number * a.room, a.lists.slot + (int64_t)number * a.room};
    }
    /* Two of this block's own, past all that could be pieces. */
    __device__ __forceinline__ fused_sink spare(int32_t which) const {
        return list(direct_blocks() + a.op.batch + part() * 2 + which);
    }

    /* A chunk of a piece is scored: the best of it and of those before go to a spare list, or if it is the last one of the piece to
     * the piece's list, or to the output if the piece is all of the request. */
    __device__ __forceinline__ void choose(void) {
        const fused_pieces p = pieces_of(at.r);
        const bool done = at.end == until(at.r);
        const int32_t step = single() ? direct_blocks() : 1;
        const int32_t first = single() ? part() + at.from * step : at.begin + at.from - at.r.first;
        const int32_t last_page = first + (at.end - at.from - 1) * step;
        const int32_t n = (at.end - at.from) * INDEXER_PAGE - max((last_page + 1) * INDEXER_PAGE - at.r.length, 0);
        const fused_sink sink = !done ? spare(at.which) : p.count == 1 ? output(at.r.b) : list(part() + at.r.b);
        const chunk_row row = {spare(at.which ^ 1), at.kept, (at.kept + ROUND - 1) / ROUND, scores(), table(at.r.b) + first,
                               step, n};
        if (done && at.kept == 0 && p.count > 1 && n <= a.room) {
            all(row, sink);
            return;
        }
        at.kept = best(row, sink);
        if (done)
            sink.pad((uint32_t)at.kept, (uint32_t)(p.count == 1 ? a.k : a.room));
        at.which ^= 1;
    }
    __device__ __forceinline__ int32_t best(const chunk_row &row, const fused_sink &sink) const {
        select_shared &sh = selecting().select;
        select_clear<FUSED_THREADS>(sh);
        __syncthreads();
        const peers_none alone;
        selection<FUSED_THREADS, 0, true, peers_none, chunk_row, fused_sink> s = {{sh, alone}, row, sink};
        return (int32_t)s.run((uint32_t)a.k, false);
    }
    /* A piece no longer than a list is one. */
    __device__ __forceinline__ void all(const chunk_row &row, const fused_sink &sink) const {
        for (int32_t i = (int32_t)threadIdx.x; i < row.n; i += FUSED_THREADS)
            sink.put((uint32_t)i, key_of_bits(__float_as_uint(row.score[i])),
                     row.page_of(i) * INDEXER_PAGE + (uint32_t)i % INDEXER_PAGE);
        sink.pad((uint32_t)row.n, (uint32_t)a.room);
    }

    /* What to score next: requests that are sent whole, or a chunk of one that is not. Returns the first of these requests. */
    __device__ __forceinline__ int32_t plan(void) {
        const int32_t base = at.r.b, end = until(at.r);
        at.chunk = !whole(at.r);
        at.end = at.chunk ? min(at.from + S::CHUNK / INDEXER_PAGE, end) : end;
        while (!at.chunk && at.end < at.count) {
            share_request other = at.r;
            other.next(a.op);
            if (!whole(other))
                break;
            at.r = other;
            at.end = until(other);
        }
        return base;
    }

    /* All pages of the block. q of a single request has been asked for. */
    template <class D> __device__ __forceinline__ void score(D &direct) {
        at.from = at.kept = at.which = 0;
        int32_t base = plan();
        if (!single())
            direct.ask(base, at.r.b);
        for (;;) {
            park();
            __syncthreads();
            direct.run(base, fused_plan<S>{a, direct.at});
            __syncthreads();
            unpark(direct.at);
            if (at.chunk)
                choose();
            __syncthreads();  /* before anybody parks again */
            at.from = at.end;
            if (at.from == at.count)
                return;
            if (at.from == until(at.r)) {
                at.r.next(a.op);
                at.kept = 0;
            }
            base = plan();
            direct.ask(base, at.r.b);
        }
    }

    /* Of a request that has been sent whole. */
    template <int CACHED, bool MORE> __device__ __forceinline__ void finish(const row_of &row, int32_t b) const {
        const topk_args op = {a.scores, a.op.t[INDEXER_PAGE_TABLE], a.op.t[INDEXER_LENGTH], a.op.t[INDEX_SELECT_SLOT],
                              a.whole, a.k};
        topk_finish<FUSED_THREADS, CACHED, MORE>(op, row, peers_none(), selecting(), make_uint4(0, 0, 0, 0), false,
                                                 {output(b).slot});
    }
    __device__ __forceinline__ void merge_whole(int32_t b, int32_t length) const {
        const row_of from = {fused_row(a, b), (const char *)table(b), selecting().pages, length,
                                              (int32_t)threadIdx.x * 4, ROUND, (length + ROUND - 1) / ROUND};
        from.write_end();
        if (length <= ROUND)
            finish<1, false>(from, b);
        else if (length <= 4 * ROUND)
            finish<4, false>(from, b);
        else
            finish<row_of::CACHED, true>(from, b);
    }
    __device__ __forceinline__ void merge_lists(int32_t b, const fused_pieces &p) const {
        const list_row row(list(p.list), p.count * a.room);
        const fused_sink to = output(b);
        const peers_none alone;
        selection<FUSED_THREADS, MERGE_CACHED, true, peers_none, list_row, fused_sink> s = {{selecting().select, alone}, row, to};
#pragma unroll
        for (int j = 0; j < MERGE_CACHED; j++)
            if (j < row.rounds())
                s.cache[j] = row.keys(j);
        to.pad(s.run((uint32_t)a.k, false), (uint32_t)a.k);
    }

    /* By one thread, once all that its block wrote is visible to it: is this the last of `all`? Releases and acquires in one; two
     * __threadfence(), which order more than that, would each wait for memory as long. */
    __device__ __forceinline__ bool arrive(int32_t b, int32_t all) const {
        uint32_t before;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(a.arrived + b) : "memory");
        const bool is_last = before + 1 == (uint32_t)all;
        if (is_last)
            a.arrived[b] = 0;
        return is_last;
    }

    /* Requests whose last block this is, or the only one. Only the first and the last of a block can be those of others, too. */
    __device__ __forceinline__ void merge(void) {
        const int32_t end = at.r.b;
        if (threadIdx.x < 2) {
            const share_request mine = threadIdx.x ? at.r : at.first;
            const int32_t all = pieces_of(mine).count;
            if (all > 1 && (threadIdx.x == 0 || at.first.b != end))
                last()[threadIdx.x] = arrive(mine.b, all);
        }
        at.r = at.first;
        for (;;) {
            park();
            select_clear<FUSED_THREADS>(selecting().select);
            __syncthreads();
            const fused_pieces p = pieces_of(at.r);
            if (p.count == 1 ? whole(at.r) : last()[at.r.b != at.first.b]) {
                if (whole(at.r))
                    merge_whole(at.r.b, at.r.length);
                else
                    merge_lists(at.r.b, p);
            }
            unpark(shared);
            if (at.r.b == end)
                break;
            at.r.next(a.op);
            __syncthreads();
        }
    }
};

template <class S> static __device__ __forceinline__ void fused_run(const fused_args &a, uint32_t shared) {
    direct_block<direct_bf16, S::QUERIES> direct(a.op, shared);
    int32_t early = 0;
    if (a.op.batch == 1) {
        early = direct.guess(a.op);
        direct.ask(0, 0);
    } else {
        indexer_ask(a.op, (int32_t)threadIdx.x);
    }
    const int32_t pages = share_pages(a.op), part = (int32_t)blockIdx.x;
    fused_block<S> block = {a, shared, {page_share(pages, direct_blocks())}};
    fused_place &at = block.at;
    if (part < at.share.parts) {
        at.begin = at.share.begin(part);
        at.count = block.single() ? (pages - part - 1) / at.share.parts + 1 : at.share.begin(part + 1) - at.begin;
        at.first = at.r = share_find(a.op, at.begin);
        direct.take({{at.r.b, block.single() ? part : at.begin - at.r.first, at.r.length}, at.count}, early);
        block.score(direct);
        block.merge();
    }
    for (int32_t b = part; b < a.op.batch; b += direct_blocks())
        if (indexer_length(a.op, b) == 0)
            block.output(b).pad(0, (uint32_t)a.k);
}

template <class S>
static __global__ void __launch_bounds__(FUSED_THREADS, 1) index_select_fused(const __grid_constant__ fused_args a) {
    extern __shared__ __align__(1024) char shared_bytes[];
    if constexpr (S::QUERIES == 4 || !HAS_WGMMA)  /* what has wgmma has room for the large shape */
        fused_run<S>(a, (shared_address(shared_bytes) + 1023) / 1024 * 1024);
}

#endif

/* Candidates of index_select/fused in memory, and the rows that it selects from: scores in shared memory, and such lists. */
#ifndef KBENCH_INDEX_SELECT_LISTS_CUH
#define KBENCH_INDEX_SELECT_LISTS_CUH

#include "indexer/indexer.cuh"
#include "topk/topk.cuh"

static constexpr int FUSED_THREADS = 512;

/* List n has `room` keys and slots from n * room on: the best of a piece. */
struct fused_lists {
    uint32_t *key;
    int32_t  *slot;
};

/* What is chosen goes to a list, or, as slots alone, to the op's output. */
struct fused_sink {
    uint32_t *key;   /* NULL: none */
    int32_t  *slot;

    __device__ __forceinline__ void put(uint32_t place, uint32_t k, uint32_t s) const {
        if (key)
            key[place] = k;
        slot[place] = (int32_t)s;
    }
    /* What comes after `from` chosen ones, up to `to`. */
    __device__ __forceinline__ void pad(uint32_t from, uint32_t to) const {
        for (uint32_t i = from + threadIdx.x; i < to; i += FUSED_THREADS)
            put(i, KEY_NONE, (uint32_t)-1);
    }
};

static constexpr int32_t ROUND = FUSED_THREADS * 4;

static __device__ __forceinline__ uint4 keys_below(uint4 v, int32_t e, int32_t n) {
    return make_uint4(e < n ? v.x : KEY_NONE, e + 1 < n ? v.y : KEY_NONE, e + 2 < n ? v.z : KEY_NONE, e + 3 < n ? v.w : KEY_NONE);
}

/* What this block kept of earlier chunks of a piece, then the scores of a chunk in shared memory. */
struct chunk_row {
    fused_sink     kept;
    int32_t        kept_n, kept_rounds;
    const float   *score;           /* shared, 16 bytes aligned */
    const int32_t *table;           /* of the request, from the chunk's first page on */
    int32_t        step, n;         /* step: from one page of the chunk to the next */

    __device__ __forceinline__ int32_t entry(int round) const {
        return round * ROUND + (int32_t)threadIdx.x * 4;
    }
    __device__ __forceinline__ int rounds(void) const {
        return kept_rounds + (n + ROUND - 1) / ROUND;
    }
    __device__ __forceinline__ uint4 keys(int round) const {
        const bool old = round < kept_rounds;
        const int32_t e = entry(old ? round : round - kept_rounds), most = old ? kept_n : n;
        if (e >= most)
            return make_uint4(0, 0, 0, 0);
        const uint4 v = old ? *(const uint4 *)(kept.key + e) : topk_row<FUSED_THREADS>::keys_of(*(const uint4 *)(score + e));
        return keys_below(v, e, most);
    }
    __device__ __forceinline__ uint32_t page_of(int32_t e) const {
        return (uint32_t)__ldg(table + (int64_t)(e / INDEXER_PAGE) * step);
    }
    __device__ __forceinline__ uint32_t page(int round) const {
        return round < kept_rounds ? 0 : page_of(entry(round - kept_rounds));
    }
    __device__ __forceinline__ uint32_t slot(uint32_t page, int round, int i) const {
        if (round < kept_rounds)
            return (uint32_t)kept.slot[entry(round) + i];
        return page * INDEXER_PAGE + (uint32_t)entry(0) % INDEXER_PAGE + (uint32_t)i;
    }
};

/* Lists in a row, written by other blocks: never through L1, which may hold what stood there before. */
struct list_row {
    fused_sink lists;
    int32_t    n, count;   /* n: a multiple of 4; count: rounds */

    __device__ __forceinline__ list_row(fused_sink from, int32_t entries)
        : lists(from), n(entries), count((entries + ROUND - 1) / ROUND) {}
    __device__ __forceinline__ int rounds(void) const {
        return count;
    }
    __device__ __forceinline__ int32_t entry(int round) const {
        return round * ROUND + (int32_t)threadIdx.x * 4;
    }
    __device__ __forceinline__ uint4 keys(int round) const {
        return entry(round) < n ? __ldcg((const uint4 *)(lists.key + entry(round))) : make_uint4(0, 0, 0, 0);
    }
    __device__ __forceinline__ uint32_t page(int) const {
        return 0;
    }
    __device__ __forceinline__ uint32_t slot(uint32_t, int round, int i) const {
        return (uint32_t)__ldcg(lists.slot + entry(round) + i);
    }
};

#endif

/* Candidates of index_select/fused in memory, and the rows that it selects from: scores in shared memory, and such lists. */
#ifndef KBENCH_INDEX_SELECT_LISTS_CUH
#define KBENCH_INDEX_SELECT_LISTS_CUH

#include "score.cuh"
#include "topk/select.cuh"

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
        for (uint32_t i = from + threadIdx.x; i < to; i += SCORE_THREADS)
            put(i, KEY_NONE, (uint32_t)-1);
    }
};

static constexpr int32_t ROUND = SCORE_THREADS * 4;

static __device__ __forceinline__ uint4 keys_below(uint4 v, int32_t e, int32_t n) {
    return make_uint4(e < n ? v.x : KEY_NONE, e + 1 < n ? v.y : KEY_NONE, e + 2 < n ? v.z : KEY_NONE, e + 3 < n ? v.w : KEY_NONE);
}

/* What this block kept of earlier chunks of a piece, then a chunk in shared memory. */
struct chunk_row {
    fused_sink      kept;
    int32_t         kept_n, kept_rounds;
    const uint32_t *key;            /* shared, 16 bytes aligned */
    const int32_t  *table;          /* of the request, from the chunk's first page on */
    int32_t         n;

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
        return keys_below(old ? *(const uint4 *)(kept.key + e) : *(const uint4 *)(key + e), e, most);
    }
    __device__ __forceinline__ uint32_t page(int round) const {
        return round < kept_rounds ? 0 : (uint32_t)__ldg(table + entry(round - kept_rounds) / INDEXER_PAGE);
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
    int32_t    n, first, step, count;   /* n: a multiple of 4; first, step: as in topk_row; count: rounds */

    template <class PEERS> __device__ __forceinline__ list_row(fused_sink from, int32_t entries, const PEERS &peers) {
        const int32_t begin = (int32_t)peers.rank() * ROUND;
        lists = from;
        n = entries;
        first = begin + (int32_t)threadIdx.x * 4;
        step = (int32_t)peers.count() * ROUND;
        count = n > begin ? (n - begin + step - 1) / step : 0;
    }
    __device__ __forceinline__ int rounds(void) const {
        return count;
    }
    __device__ __forceinline__ uint4 keys(int round) const {
        const int32_t e = first + round * step;
        return e < n ? __ldcg((const uint4 *)(lists.key + e)) : make_uint4(0, 0, 0, 0);
    }
    __device__ __forceinline__ uint32_t page(int) const {
        return 0;
    }
    __device__ __forceinline__ uint32_t slot(uint32_t, int round, int i) const {
        return (uint32_t)__ldcg(lists.slot + first + round * step + i);
    }
};

#endif

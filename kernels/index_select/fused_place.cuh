/* What a block of index_select/fused is given and where it is: arguments, pieces of requests, what is parked in shared memory. */
#ifndef KBENCH_INDEX_SELECT_FUSED_PLACE_CUH
#define KBENCH_INDEX_SELECT_FUSED_PLACE_CUH

#include "index_select.h"
#include "indexer/direct_bf16.cuh"
#include "indexer/direct_block.cuh"
#include "lists.cuh"
#include "share.cuh"

static_assert(FUSED_THREADS == DIRECT_THREADS, "those who score select");

struct fused_args {
    indexer_args op;
    struct arg   scores;   /* of requests of up to `whole` entries; a row is a request */
    fused_lists  lists;
    uint32_t    *arrived;  /* by request */
    int32_t      k, room;  /* room: k, to a multiple of 4 */
    int32_t      whole;
};

/* Lists of up to this many keys are merged from registers. */
static constexpr int MERGE_CACHED = 4;

/* A piece is the pages of one request in one part. */
struct fused_pieces {
    int32_t first_part, count, list;  /* of a request; number of its first list */
};

/* Where a block is. Parked in shared memory while it scores, when registers are dear. */
struct fused_place {
    page_share    share;
    int32_t       begin, count;  /* pages of this block, in the list of all; a single request's lie gridDim.x apart */
    share_request first, r;      /* the first request of the block, the present one */
    int32_t       from, end;     /* the block's pages that are scored at once: of requests sent whole, or a chunk of r */
    int32_t       chunk;         /* which of these it is */
    int32_t       kept, which;   /* of chunks before, in the block's spare list `which` ^ 1 */
};

/* QUERIES: requests whose q a block holds; CHUNK: scores of a long request that it holds. */
template <int QUERIES_, int CHUNK_> struct fused_shape {
    static constexpr int QUERIES = QUERIES_, CHUNK = CHUNK_;
    using places = direct_places<QUERIES>;
    /* Selections come when q is not needed: they begin where q does. */
    static constexpr size_t SCORES = (places::BYTES + 15) / 16 * 16, PARKED = SCORES + CHUNK * 4,
                            LAST = PARKED + sizeof(fused_place), BYTES = LAST + 8;
    static_assert(sizeof(topk_shared<FUSED_THREADS>) <= places::W, "a selection has room");
};

static __device__ __forceinline__ char *shared_pointer(uint32_t shared) {
    return (char *)__cvta_shared_to_generic(shared);
}

static __device__ __forceinline__ char *fused_row(const fused_args &a, int32_t b) {
    return (char *)a.scores.p + b * a.scores.stride;
}

/* What is parked, as direct_block wants it. */
template <class S> struct fused_plan {
    const fused_args &a;
    uint32_t          shared;

    __device__ __forceinline__ const fused_place &at(void) const {
        return *(const fused_place *)shared_pointer(shared + S::PARKED);
    }
    __device__ __forceinline__ int32_t until(void) const {
        return at().end;
    }
    __device__ __forceinline__ int32_t last(void) const {
        return at().r.b;
    }
    __device__ __forceinline__ float *place(int32_t b, int32_t page, int32_t i) const {
        char *const to = at().chunk ? shared_pointer(shared + S::SCORES + (uint32_t)(i - at().from) * (INDEXER_PAGE * 4))
                                    : fused_row(a, b) + (int64_t)page * (INDEXER_PAGE * 4);
        return (float *)to;
    }
};

#endif

/* How live pages are shared out over the blocks of a grid, by the blocks themselves, and where a share's part of a request goes.
 *
 * The live pages of all requests, one request after another, are one list, cut into `parts` parts whose sizes differ by one at
 * most: as many as there are blocks, or pages if these are fewer, so that no part is empty. A piece is what a part has of one
 * request. Piece (part, request) has number part + request: from one piece to the next one of the two goes up, or both do. So
 * the pieces of a request have numbers in a row.
 */
#ifndef KBENCH_INDEX_SELECT_SHARE_CUH
#define KBENCH_INDEX_SELECT_SHARE_CUH

#include "indexer/indexer.cuh"

struct page_share {
    int32_t parts, each, rest;  /* the first `rest` parts have each + 1 pages */

    page_share(void) = default;
    __device__ __forceinline__ page_share(int32_t pages, int32_t blocks) {
        parts = min(pages, blocks);
        each = parts > 0 ? pages / parts : 0;
        rest = pages - each * parts;
    }
    __device__ __forceinline__ int32_t begin(int32_t part) const {
        return part * each + min(part, rest);
    }
    __device__ __forceinline__ int32_t part_of(int32_t page) const {
        const int32_t longer = rest * (each + 1);
        return page < longer ? page / (each + 1) : rest + (page - longer) / each;
    }
    /* Pages of the largest part. */
    __device__ __forceinline__ int32_t most(void) const {
        return each + (rest > 0);
    }
};

/* A request, and the page of the list that is its first. */
struct share_request {
    int32_t b, first, length;

    __device__ __forceinline__ int32_t end(void) const {
        return first + indexer_pages(length);
    }
    /* The next one that has pages; not to be asked for where there is none. */
    __device__ __forceinline__ void next(const indexer_args &a) {
        first = end();
        do
            length = ++b < a.batch ? indexer_length(a, b) : 1;
        while (length == 0);
    }
};

/* By a whole warp. */
static __device__ __forceinline__ int32_t share_pages(const indexer_args &a) {
    int32_t pages = 0;
    for (int32_t b = lane_id(); b < a.batch; b += WARP)
        pages += indexer_pages(indexer_length(a, b));
    return (int32_t)__reduce_add_sync(ALL_LANES, (uint32_t)pages);
}

/* The request that page `page` of the list belongs to. By a whole warp. */
static __device__ __forceinline__ share_request share_find(const indexer_args &a, int32_t page) {
    const int lane = lane_id();
    int32_t before = 0;
    for (int32_t base = 0;; base += WARP) {
        const int32_t length = base + lane < a.batch ? indexer_length(a, base + lane) : 0, own = indexer_pages(length);
        int32_t upto = own;
#pragma unroll
        for (int step = 1; step < WARP; step *= 2) {
            const int32_t other = __shfl_up_sync(ALL_LANES, upto, step);
            upto += lane >= step ? other : 0;
        }
        const uint32_t owners = __ballot_sync(ALL_LANES, page < before + upto);
        if (owners) {
            const int owner = __ffs((int)owners) - 1;
            return {base + owner, before + __shfl_sync(ALL_LANES, upto - own, owner), __shfl_sync(ALL_LANES, length, owner)};
        }
        before += __shfl_sync(ALL_LANES, upto, WARP - 1);
    }
}

#endif

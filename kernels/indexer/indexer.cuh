/* What the CUDA kernels of ops indexer and indexer_fp8 share: tensors as a kernel parameter, live lengths, and how live pages are
 * shared out over blocks by the blocks themselves.
 *
 * The live pages of all requests, one request after another, are one list. A part of it is given by its first page and a count.
 * Every warp that wants its part adds up all lengths: a batch's lengths are a few lines of L2, read at once, and there is no
 * scheduling kernel to wait for. No cost depends on the width of the tables.
 */
#ifndef KBENCH_INDEXER_CUH
#define KBENCH_INDEXER_CUH

#include <math.h>
#include "device.cuh"
#include "indexer.h"
#include "kernel.h"

/* A kernel parameter; a constant index makes a constant-bank read. */
struct indexer_args {
    struct arg t[INDEXER_LOGITS + 1];
    int32_t    batch, width;  /* width: entries that a row of logits has room for */
};

static inline indexer_args indexer_args_of(const struct call *call) {
    indexer_args a;
    for (int i = 0; i <= INDEXER_LOGITS; i++)
        a.t[i] = call->t[i];
    a.batch = (int32_t)call->problem->dim[INDEXER_BATCH];
    a.width = (int32_t)indexer_width(call->problem->dim[INDEXER_MAX_CTX]);
    return a;
}

/* Where row `row` of tensor `tensor` starts. */
template <int tensor> static __device__ __forceinline__ char *indexer_row(const indexer_args &a, int64_t row) {
    return (char *)a.t[tensor].p + row * a.t[tensor].stride;
}

static __device__ __forceinline__ int32_t indexer_clamp(const indexer_args &a, int32_t length) {
    return min(max(length, 0), a.width);
}

/* Loads that stay before the next barrier, where the compiler would delay them to their use. */
static __device__ __forceinline__ uint32_t load4_now(const void *p) {
    uint32_t x;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(x) : "l"(p));
    return x;
}
static __device__ __forceinline__ uint4 load16_now(const void *p) {
    uint4 v;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

/* Live entries of request b. */
static __device__ __forceinline__ int32_t indexer_length(const indexer_args &a, int32_t b) {
    return indexer_clamp(a, __ldg((const int32_t *)a.t[INDEXER_LENGTH].p + b));
}

/* length: not below 0. Unsigned division, which is a shift. */
static __device__ __forceinline__ int32_t indexer_pages(int32_t length) {
    return (int32_t)((uint32_t)(length + INDEXER_PAGE - 1) / INDEXER_PAGE);
}

/* The page number that stands for live page `page` of request b. */
static __device__ __forceinline__ int32_t indexer_slot(const indexer_args &a, int32_t b, int32_t page) {
    return __ldg((const int32_t *)indexer_row<INDEXER_PAGE_TABLE>(a, b) + page);
}

static __device__ __forceinline__ float *indexer_logits(const indexer_args &a, int32_t b, int32_t page) {
    return (float *)indexer_row<INDEXER_LOGITS>(a, b) + (int64_t)page * INDEXER_PAGE;
}

/* A place in the list: page `page` of request b, which has `length` entries. */
struct indexer_cursor {
    int32_t b, page, length;

    /* n pages on; not to be asked past the last page of the list. */
    __device__ __forceinline__ void advance(const indexer_args &a, int32_t n) {
        page += n;
        while (page >= indexer_pages(length) && b + 1 < a.batch) {
            page -= indexer_pages(length);
            length = indexer_length(a, ++b);
        }
    }

    /* Entries of the page that live. */
    __device__ __forceinline__ int32_t live(void) const {
        return min(length - page * INDEXER_PAGE, (int32_t)INDEXER_PAGE);
    }
};

struct indexer_share {
    indexer_cursor at;
    int32_t        count;  /* pages */
};

/* What stands in memory for lengths of requests first .. first + 3, 0 past the batch. */
static __device__ __forceinline__ uint4 indexer_load4(const indexer_args &a, int32_t first) {
    const int32_t *p = (const int32_t *)a.t[INDEXER_LENGTH].p + first;
    if (first + 4 <= a.batch)
        return load16_now(p);
    uint4 n = make_uint4(0, 0, 0, 0);
    if (first < a.batch)
        n.x = load4_now(p);
    if (first + 1 < a.batch)
        n.y = load4_now(p + 1);
    if (first + 2 < a.batch)
        n.z = load4_now(p + 2);
    return n;
}

static __device__ __forceinline__ int4 indexer_clamp4(const indexer_args &a, uint4 n) {
    return make_int4(indexer_clamp(a, (int32_t)n.x), indexer_clamp(a, (int32_t)n.y), indexer_clamp(a, (int32_t)n.z),
                     indexer_clamp(a, (int32_t)n.w));
}

/* Lengths of requests first .. first + 3, 0 past the batch. */
static __device__ __forceinline__ int4 indexer_lengths4(const indexer_args &a, int32_t first) {
    return indexer_clamp4(a, indexer_load4(a, first));
}

static __device__ __forceinline__ int32_t indexer_pages4(int4 n) {
    return indexer_pages(n.x) + indexer_pages(n.y) + indexer_pages(n.z) + indexer_pages(n.w);
}

static __device__ __forceinline__ int32_t indexer_warp_total(int32_t x) {
    return (int32_t)__reduce_add_sync(ALL_LANES, (unsigned)x);
}

/* The sum of x of this lane and all before, in the first `lanes` lanes; nothing is said of the others. */
static __device__ __forceinline__ int32_t indexer_warp_upto(int32_t x, int32_t lanes) {
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
        if (step >= lanes)
            break;
        const int32_t other = __shfl_up_sync(ALL_LANES, x, step);
        x += lane_id() >= step ? other : 0;
    }
    return x;
}

/* The request that page number `left` of 128 requests from `base` on belongs to; n: the lane's four lengths of them, upto: pages of
 * the lane's requests and of those before. */
static __device__ __forceinline__ indexer_cursor indexer_find(int32_t base, int4 n, int32_t upto, int32_t left) {
    const int lane = lane_id();
    const int32_t mine = indexer_pages4(n);
    const int owner = __ffs((int)__ballot_sync(ALL_LANES, left < upto)) - 1;
    const int32_t length[4] = {n.x, n.y, n.z, n.w};
    indexer_cursor at = {base + lane * 4, left - (upto - mine), n.x};
#pragma unroll
    for (int i = 1; i < 4; i++)
        if (at.page >= indexer_pages(at.length)) {
            at.page -= indexer_pages(at.length);
            at.length = length[i];
            at.b++;
        }
    return {__shfl_sync(ALL_LANES, at.b, owner), __shfl_sync(ALL_LANES, at.page, owner), __shfl_sync(ALL_LANES, at.length, owner)};
}

/* Of `parts`, for indexer_share_of: to be made while the lengths are on their way. */
static __device__ __forceinline__ uint32_t indexer_inverse(int32_t parts) {
    return pinned(0xffffffffu / (uint32_t)parts);
}

/* n / parts, n >= 0: what the product leaves is at most one too small. */
static __device__ __forceinline__ int32_t indexer_divide(int32_t n, int32_t parts, uint32_t inverse) {
    const int32_t each = (int32_t)__umulhi((uint32_t)n, inverse);
    return each + (n - each * parts >= parts);
}

/* Part `part` of `parts` whose counts differ by at most one; the first parts have one more. By whole warps. first: what
 * indexer_lengths4 says of the lane's four first requests, so that those may be loaded early; inverse: of indexer_inverse. */
static __device__ __forceinline__ indexer_share indexer_share_of(const indexer_args &a, int32_t part, int32_t parts, int4 first,
                                                                 uint32_t inverse) {
    const int32_t lane4 = lane_id() * 4, step = WARP * 4, lanes = (min(a.batch, step) + 3) / 4;
    int4 n = first;
    int32_t upto = indexer_warp_upto(indexer_pages4(n), lanes), here = __shfl_sync(ALL_LANES, upto, lanes - 1), all = here;
    if (a.batch > step) {
        int32_t others = 0;
        for (int32_t i = lane4 + step; i < a.batch; i += step)
            others += indexer_pages4(indexer_lengths4(a, i));
        all += indexer_warp_total(others);
    }
    const int32_t each = indexer_divide(all, parts, inverse), rest = all - each * parts;
    indexer_share share = {{0, 0, 0}, each + (part < rest)};
    if (share.count == 0)
        return share;
    int32_t left = part * each + min(part, rest), base = 0;
    while (left >= here) {  /* ends: there are more pages than `left` */
        left -= here;
        base += step;
        n = indexer_lengths4(a, base + lane4);
        upto = indexer_warp_upto(indexer_pages4(n), WARP);
        here = __shfl_sync(ALL_LANES, upto, WARP - 1);
    }
    share.at = indexer_find(base, n, upto, left);
    return share;
}
static __device__ __forceinline__ indexer_share indexer_share_of(const indexer_args &a, int32_t part, int32_t parts, int4 first) {
    return indexer_share_of(a, part, parts, first, 0xffffffffu / (uint32_t)parts);
}
static __device__ __forceinline__ indexer_share indexer_share_of(const indexer_args &a, int32_t part, int32_t parts) {
    return indexer_share_of(a, part, parts, indexer_lengths4(a, lane_id() * 4));
}

/* Asks for the first page numbers of all requests before anybody knows which of them live, so that they wait in L2; at most MOST
 * lines a block, however wide the tables are: all blocks together should ask for some hundred KB. thread: those from 0 on ask. */
template <int MOST = 8> static __device__ __forceinline__ void indexer_ask(const indexer_args &a, int32_t thread) {
    const int32_t lines = (a.width / INDEXER_PAGE * 4 + 127) / 128, line = (int32_t)blockIdx.x + thread * (int32_t)gridDim.x;
    if (thread >= 0 && thread < MOST && line / a.batch < lines)
        prefetch_l2(indexer_row<INDEXER_PAGE_TABLE>(a, line % a.batch) + line / a.batch * 128);
}

#endif

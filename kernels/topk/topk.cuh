/* What the CUDA kernels of op topk share: tensors as a kernel parameter, a row of scores as the source of a selection. */
#ifndef KBENCH_TOPK_TOPK_CUH
#define KBENCH_TOPK_TOPK_CUH

#include "kernel.h"
#include "select.cuh"
#include "topk.h"

/* A kernel parameter. Pointers apart from call, so that other ops can select from logits of their own. */
struct topk_args {
    struct arg score, page_table, length, slot;
    int32_t    width, k;  /* entries a row has room for; slots a row of slot */
};

static inline topk_args topk_args_of(const struct call *call) {
    const struct arg *t = call->t;
    const int64_t *dim = call->problem->dim;
    return {t[TOPK_SCORE], t[TOPK_PAGE_TABLE], t[TOPK_LENGTH], t[TOPK_SLOT], (int32_t)topk_width(dim[TOPK_MAX_N]),
        (int32_t)dim[TOPK_K]};
}

/* 4 bytes from device to shared memory, asynchronously. */
static __device__ __forceinline__ void copy4_async(void *shared, const void *global) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(shared)), "l"(global) : "memory");
}

/* Most rounds that are kept in registers: 28,672 entries a block. */
static constexpr int TOPK_THREADS = 512, TOPK_CACHED = 14;

/* Row b, as its blocks share it out: a round is 4 entries of each thread, block after block. The pages of the first rounds are
 * copied to shared memory, where they wait to be needed. */
struct topk_row {
    static constexpr int ROUND = TOPK_THREADS * 4, ROUND_PAGES = ROUND / TOPK_PAGE, PAGE_THREADS = TOPK_THREADS / ROUND_PAGES;

    const char *score, *page_table;
    int32_t    *pages;                   /* [TOPK_CACHED][ROUND_PAGES], shared */
    int32_t     length, first, step, n;  /* first: this thread's entry in round 0; step: entries a round of all blocks; n: rounds */

    __device__ __forceinline__ int rounds(void) const {
        return n;
    }
    __device__ __forceinline__ int32_t entry(int round) const {
        return first + round * step;
    }
    __device__ __forceinline__ uint4 load(int round) const {
        return load16_once(score + (int64_t)entry(round) * 4);
    }
    __device__ __forceinline__ uint4 keys_of(uint4 bits, int round) const {
        const int32_t e = entry(round);
        return make_uint4(e < length ? key_of_bits(bits.x) : KEY_NONE, e + 1 < length ? key_of_bits(bits.y) : KEY_NONE,
            e + 2 < length ? key_of_bits(bits.z) : KEY_NONE, e + 3 < length ? key_of_bits(bits.w) : KEY_NONE);
    }
    __device__ __forceinline__ uint4 keys(int round) const {
        return entry(round) < length ? keys_of(load(round), round) : make_uint4(0, 0, 0, 0);
    }
    __device__ __forceinline__ const int32_t *page_at(int round) const {
        return (const int32_t *)page_table + entry(round) / TOPK_PAGE;
    }
    __device__ __forceinline__ void copy_page(int round) const {
        if (threadIdx.x % PAGE_THREADS == 0)
            copy4_async(pages + round * ROUND_PAGES + threadIdx.x / PAGE_THREADS, page_at(round));
    }
    __device__ __forceinline__ uint32_t page(int round) const {
        return (uint32_t)(round < TOPK_CACHED ? pages[round * ROUND_PAGES + (int)threadIdx.x / PAGE_THREADS]
                                              : __ldg(page_at(round)));
    }
    /* All rounds of a thread stand at the same place in their pages. */
    __device__ __forceinline__ uint32_t slot(uint32_t page, int, int i) const {
        return page * TOPK_PAGE + (uint32_t)first % TOPK_PAGE + (uint32_t)i;
    }
};

struct topk_slots {
    int32_t *out;
    __device__ __forceinline__ void put(uint32_t place, uint32_t, uint32_t slot) const {
        out[place] = (int32_t)slot;
    }
};

struct topk_shared {
    select_shared select;
    int32_t       pages[TOPK_CACHED * topk_row::ROUND_PAGES];
};

/* All that is known to come: the first CACHED rounds, of which round 0 may have been loaded already. */
template <int CACHED, class PEERS>
static __device__ __forceinline__ void topk_finish(const topk_args &a, const topk_row &row, const PEERS &peers, topk_shared &sh,
    uint4 round0, bool early, topk_slots out) {
    selection<TOPK_THREADS, CACHED, PEERS, topk_row, topk_slots> s = {sh.select, peers, row, out};
    s.cache[0] = round0;
#pragma unroll
    for (int j = 0; j < CACHED; j++)
        if (j < row.n && !(j == 0 && early) && row.entry(j) < row.length) {
            s.cache[j] = row.load(j);
            row.copy_page(j);
        }
#pragma unroll
    for (int j = 0; j < CACHED; j++)
        if (j < row.n)
            s.cache[j] = row.keys_of(s.cache[j], j);
    copy_wait_all();
    const uint32_t total = s.run((uint32_t)a.k, false);
    if (peers.rank() == 0)
        for (uint32_t i = total + threadIdx.x; i < (uint32_t)a.k; i += TOPK_THREADS)
            out.out[i] = -1;
}

/* Row b by this block and its peers. eager: round 0 is loaded beside the length, not after it, and what lies past the length is
 * dropped unseen: worth a wait, and at most 8 KB of a block. alone: rows up to this length are left to block 0. What happens
 * depends on the length, never on what the row has room for. */
template <class PEERS>
static __device__ __forceinline__ void topk_select(const topk_args &a, int64_t b, PEERS peers, topk_shared &sh, bool eager,
    int32_t alone) {
    const int32_t begin = (int32_t)peers.rank() * topk_row::ROUND;
    topk_row row = {(const char *)a.score.p + b * a.score.stride, (const char *)a.page_table.p + b * a.page_table.stride, sh.pages,
        0, begin + (int32_t)threadIdx.x * 4, (int32_t)peers.count() * topk_row::ROUND, 0};
    const topk_slots out = {(int32_t *)((char *)a.slot.p + b * a.slot.stride)};

    uint4 round0 = {};
    const bool early = eager && row.first < a.width;
    if (early) {
        round0 = row.load(0);
        row.copy_page(0);
    }
    row.length = min(__ldg((const int32_t *)((const char *)a.length.p + b * a.length.stride)), a.width);
    select_clear(sh.select, TOPK_THREADS);
    if constexpr (PEERS::MOST > 1)
        if (row.length <= alone) {
            if (peers.rank() > 0) {
                copy_wait_all();
                return;
            }
            peers.alone();
            row.step = topk_row::ROUND;
        }
    row.n = row.length > begin ? (row.length - begin + row.step - 1) / row.step : 0;
    /* All blocks of a row take the same branch, since block 0 has the most rounds. */
    const int32_t most = row.length > 0 ? (row.length + row.step - 1) / row.step : 0;
    if (most <= 1)
        topk_finish<1>(a, row, peers, sh, round0, early, out);
    else if (most <= 4)
        topk_finish<4>(a, row, peers, sh, round0, early, out);
    else
        topk_finish<TOPK_CACHED>(a, row, peers, sh, round0, early, out);
}

#endif

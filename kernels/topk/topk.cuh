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

/* Rows so many that they come in waves are worth no guess at the length. */
static inline bool topk_eager(int32_t batch, const struct device *d) {
    return batch <= 2 * d->sm_count;
}

/* 4 bytes from device to shared memory, asynchronously. */
static __device__ __forceinline__ void copy4_async(void *shared, const void *global) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(shared)), "l"(global) : "memory");
}

/* Row b, as its blocks share it out: a round is 4 entries of each thread, block after block. The pages of the first rounds are
 * copied to shared memory, where they wait to be needed; the same rounds' keys are kept in registers. */
template <int THREADS> struct topk_row {
    static constexpr int CACHED = THREADS > 512 ? 4 : 14, ROUND = THREADS * 4;  /* as many as there are registers for */
    static constexpr int ROUND_PAGES = ROUND / TOPK_PAGE, PAGE_THREADS = THREADS / ROUND_PAGES;

    const char *score, *page_table;
    int32_t    *pages;                   /* [CACHED][ROUND_PAGES], shared */
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
    /* Of a row that somebody wrote up to its length: the rest of the 16 bytes that it ends in, by the thread that will load them.
     * Nothing further on is looked at. The step is a power of two. */
    __device__ __forceinline__ void write_end(void) const {
        const int32_t last = length / 4 * 4;
        if (length > last && (last & (step - 1)) == first)
#pragma unroll 1
            for (const char *to = score + (int64_t)length * 4; (uintptr_t)to % 16; to += 4)
                asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(NAN_BITS) : "memory");
    }
    /* NaN past the end. */
    __device__ __forceinline__ uint4 masked(uint4 bits, int round) const {
        const int32_t left = length - entry(round);
        if (left < 4) {
            bits.x = left > 0 ? bits.x : NAN_BITS, bits.y = left > 1 ? bits.y : NAN_BITS;
            bits.z = left > 2 ? bits.z : NAN_BITS, bits.w = NAN_BITS;
        }
        return bits;
    }
    static __device__ __forceinline__ uint4 keys_of(uint4 bits) {
        return make_uint4(key_of_bits(bits.x), key_of_bits(bits.y), key_of_bits(bits.z), key_of_bits(bits.w));
    }
    __device__ __forceinline__ uint4 keys(int round) const {
        return entry(round) < length ? keys_of(masked(load(round), round)) : make_uint4(0, 0, 0, 0);
    }
    __device__ __forceinline__ const int32_t *page_at(int round) const {
        return (const int32_t *)page_table + entry(round) / TOPK_PAGE;
    }
    __device__ __forceinline__ void copy_page(int round) const {
        if (threadIdx.x % PAGE_THREADS == 0)
            copy4_async(pages + round * ROUND_PAGES + threadIdx.x / PAGE_THREADS, page_at(round));
    }
    __device__ __forceinline__ uint32_t page(int round) const {
        return (uint32_t)(round < CACHED ? pages[round * ROUND_PAGES + (int)threadIdx.x / PAGE_THREADS]
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
    template <int THREADS> __device__ __forceinline__ void pad(uint32_t from, uint32_t to) const {
        for (uint32_t i = from + threadIdx.x; i < to; i += THREADS)
            out[i] = -1;
    }
};

template <int THREADS> struct topk_shared {
    select_shared select;
    int32_t       pages[topk_row<THREADS>::CACHED * topk_row<THREADS>::ROUND_PAGES];
};

/* All that is known to come: up to CACHED rounds, or MORE, of which round 0 may have been loaded already. Keys are counted as they
 * come. */
template <int THREADS, int CACHED, bool MORE, class PEERS>
static __device__ __forceinline__ void topk_finish(const topk_args &a, const topk_row<THREADS> &row, const PEERS &peers,
    topk_shared<THREADS> &sh, uint4 round0, bool early, topk_slots out) {
    selection<THREADS, CACHED, MORE, PEERS, topk_row<THREADS>, topk_slots> s = {{sh.select, peers}, row, out};
    s.cache[0] = round0;
#pragma unroll
    for (int j = 0; j < CACHED; j++)
        if (!(j == 0 && early) && row.entry(j) < row.length) {
            s.cache[j] = row.load(j);
            row.copy_page(j);
        }
    peers.arrive();
#pragma unroll
    for (int j = 0; j < CACHED; j++)
        if (CACHED == 1 || j < row.n) {
            const uint4 bits = row.masked(s.cache[j], j);
            s.cache[j] = row.keys_of(bits);
            select_count(sh.select, bits);
        }
    copy_wait_all();
    const uint32_t total = s.run((uint32_t)a.k, true);
    if (peers.rank() == 0)
        out.template pad<THREADS>(total, (uint32_t)a.k);
}

/* Rows that registers can't hold, of more than 4 rounds: what they can't is read again whenever it is looked at. */
struct topk_again {
    template <int THREADS, class PEERS>
    __device__ __forceinline__ void operator()(const topk_args &a, const topk_row<THREADS> &row, const PEERS &peers,
        topk_shared<THREADS> &sh, uint4 round0, bool early, topk_slots out) const {
        topk_finish<THREADS, topk_row<THREADS>::CACHED, true>(a, row, peers, sh, round0, early, out);
    }
};

/* Waits for the kernel before, where this one was launched to begin during its end. */
static __device__ __forceinline__ void topk_wait_kernel(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Row b by this block and its peers. eager: round 0 is loaded beside the length, not after it, and what lies past the length is
 * dropped unseen: worth a wait, and at most 16 KB of a block. alone: rows up to this length are left to block 0. What happens
 * depends on the length, never on what the row has room for. longer: what takes rows of more than 4 rounds.
 * WRITTEN: up to the length, by the kernel before, whose end need not have come yet; there is no guess then. */
template <bool WRITTEN = false, int THREADS, class PEERS, class LONGER = topk_again>
static __device__ __forceinline__ void topk_select(const topk_args &a, int64_t b, PEERS peers, topk_shared<THREADS> &sh,
    bool eager, int32_t alone, const LONGER &longer = {}) {
    using row_of = topk_row<THREADS>;
    const int32_t begin = (int32_t)peers.rank() * row_of::ROUND;
    row_of row = {(const char *)a.score.p + b * a.score.stride, (const char *)a.page_table.p + b * a.page_table.stride, sh.pages,
        0, begin + (int32_t)threadIdx.x * 4, (int32_t)peers.count() * row_of::ROUND, 0};
    const topk_slots out = {(int32_t *)((char *)a.slot.p + b * a.slot.stride)};

    uint4 round0 = {};
    const bool early = !WRITTEN && eager && row.first < a.width;
    if (early) {
        round0 = row.load(0);
        row.copy_page(0);
    }
    int32_t length;  /* asked for before what comes next */
    asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(length) : "l"((const char *)a.length.p + b * a.length.stride) : "memory");
    select_clear<THREADS>(sh.select);
    if constexpr (WRITTEN)
        topk_wait_kernel();
    __syncthreads();  /* while the loads are on their way */
    row.length = min(length, a.width);
    if constexpr (PEERS::MOST > 1)
        if (row.length <= alone) {
            if (peers.rank() > 0) {
                copy_wait_all();
                return;
            }
            peers.alone();
            row.step = row_of::ROUND;
        }
    if constexpr (WRITTEN)
        row.write_end();
    /* All blocks of a row take the same branch. */
    row.n = (int32_t)((uint32_t)max(row.length - begin + row.step - 1, 0) / (uint32_t)row.step);
    if (row.length <= row.step)
        topk_finish<THREADS, 1, false>(a, row, peers, sh, round0, early, out);
    else if (row.length <= 4 * row.step)
        topk_finish<THREADS, 4, false>(a, row, peers, sh, round0, early, out);
    else
        longer(a, row, peers, sh, round0, early, out);
}

#endif

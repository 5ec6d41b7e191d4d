/* Where the border of a selection lies: the k-th highest key of all that is counted into a histogram in shared memory, by one block
 * or a cluster of them.
 *
 * A block by itself sums bins in all its threads. Of a cluster each block sums its bins into groups and gives these to all others;
 * then it needs only the bins of the one group that holds the border: one wait and one answer a histogram.
 */
#ifndef KBENCH_TOPK_BORDER_CUH
#define KBENCH_TOPK_BORDER_CUH

#include "keys.cuh"
#include "peers.cuh"

static constexpr int CANDIDATES = 256;

struct select_found {
    uint32_t bin, above, in;         /* the bin with the border; keys above it, and in it, of all blocks */
    uint32_t lower_above, lower_in;  /* of these, in blocks of lower rank */
    uint32_t all;                    /* keys seen */
};

struct select_shared {
    alignas(16) uint32_t bins[2][BINS];
    alignas(16) uint32_t groups[2][peers_cluster::MOST][GROUPS];  /* of each block */
    select_found found;
    uint2        warp_sum[WARP];
    uint2        candidate[CANDIDATES];  /* key, slot */
};

/* For a selection to begin with; a barrier has to follow, before the first count. */
template <int THREADS> static __device__ __forceinline__ void select_clear(select_shared &sh) {
#pragma unroll
    for (int i = 0; i < 2 * BINS / 4; i += THREADS)
        ((uint4 *)sh.bins)[i + (int)threadIdx.x] = make_uint4(0, 0, 0, 0);
}

/* Four scores into the histogram of a selection. What is no candidate has first bins of its own, which are left out when the
 * histogram is read: fewer instructions than to leave it out here. */
static __device__ __forceinline__ void select_count(select_shared &sh, uint4 bits) {
    const uint32_t xy = first_bins(bits.x, bits.y), zw = first_bins(bits.z, bits.w);
    atomicAdd(&sh.bins[0][first_bin_of_lower(xy)], 1u);
    atomicAdd(&sh.bins[0][first_bin_of_upper(xy)], 1u);
    atomicAdd(&sh.bins[0][first_bin_of_lower(zw)], 1u);
    atomicAdd(&sh.bins[0][first_bin_of_upper(zw)], 1u);
}
/* Those of four keys that bits 0 to 3 name. */
static __device__ __forceinline__ void select_count_some(select_shared &sh, uint4 keys, uint32_t bits) {
    const uint32_t xy = first_bins(bits_of_key(keys.x), bits_of_key(keys.y));
    const uint32_t zw = first_bins(bits_of_key(keys.z), bits_of_key(keys.w));
    if (bits & 1)
        atomicAdd(&sh.bins[0][first_bin_of_lower(xy)], 1u);
    if (bits & 2)
        atomicAdd(&sh.bins[0][first_bin_of_upper(xy)], 1u);
    if (bits & 4)
        atomicAdd(&sh.bins[0][first_bin_of_lower(zw)], 1u);
    if (bits & 8)
        atomicAdd(&sh.bins[0][first_bin_of_upper(zw)], 1u);
}
static __device__ __forceinline__ void select_count_keys(select_shared &sh, uint4 keys) {
    select_count(sh, make_uint4(bits_of_key(keys.x), bits_of_key(keys.y), bits_of_key(keys.z), bits_of_key(keys.w)));
}

/* The border is in `range`, which begins as all keys, `need` as k. */
template <int THREADS, class PEERS, int CACHED> struct select_border {
    static constexpr int WARPS = THREADS / WARP;

    select_shared &sh;
    const PEERS   &peers;
    uint4          cache[CACHED ? CACHED : 1];  /* keys that a thread keeps */

    key_range range;
    uint32_t  need, members;         /* to choose of its members, of all blocks */
    uint32_t  lower_above, lower_in; /* chosen above it, and members, in blocks of lower rank */

    template <class F> static __device__ __forceinline__ void four(uint4 keys, F f) {
        f(keys.x, 0), f(keys.y, 1), f(keys.z, 2), f(keys.w, 3);
    }

    __device__ __forceinline__ void clear_bins(int buffer) {
        for (int i = (int)threadIdx.x; i < BINS / 4; i += THREADS)
            ((uint4 *)sh.bins[buffer])[i] = make_uint4(0, 0, 0, 0);
    }

    /* Sums of x over lanes at and above this one, or at and below it. */
    static __device__ __forceinline__ uint32_t sum_from(uint32_t x) {
        const int lane = lane_id();
#pragma unroll
        for (int step = 1; step < WARP; step *= 2) {
            const uint32_t other = __shfl_down_sync(ALL_LANES, x, step);
            x += lane + step < WARP ? other : 0;
        }
        return x;
    }
    static __device__ __forceinline__ uint32_t sum_upto(uint32_t x) {
        const int lane = lane_id();
#pragma unroll
        for (int step = 1; step < WARP; step *= 2) {
            const uint32_t other = __shfl_up_sync(ALL_LANES, x, step);
            x += lane >= step ? other : 0;
        }
        return x;
    }

    /* First bins of what is no candidate: -inf and NaN, the last of the lowest and of the highest group. */
    static __device__ __forceinline__ bool is_dead_end(int bin) {
        return bin == GROUP - 1 || bin == BINS - 1;
    }
    __device__ __forceinline__ uint32_t bin_of(int buffer, bool first, int bin, uint32_t q) const {
        const uint32_t n = peers.load4(&sh.bins[buffer][bin], q);
        return first && is_dead_end(bin) ? 0 : n;
    }

    /* By one block: the highest bin at or above which there are at least `need` keys, in buffer; none, if there are no more. */
    __device__ __forceinline__ select_found find_alone(int buffer, bool first) {
        constexpr int MINE = BINS / THREADS;
        const int warp = warp_id(), lane = lane_id();
        uint32_t n[MINE], own = 0;  /* upwards */
        peers.meet();
        const uint2 *const mine = (const uint2 *)&sh.bins[buffer][BINS - MINE * ((int)threadIdx.x + 1)];
#pragma unroll
        for (int i = 0; i < MINE; i += 2) {
            const uint2 pair = mine[i / 2];
            n[i] = pair.x, n[i + 1] = pair.y;
        }
        if (first && is_dead_end(BINS - 1 - MINE * (int)threadIdx.x))
            n[MINE - 1] = 0;
#pragma unroll
        for (int i = 0; i < MINE; i++)
            own += n[i];
        const uint32_t upto = sum_upto(own);
        if (lane == WARP - 1)
            sh.warp_sum[warp].x = upto;
        peers.meet();
        const uint32_t other = lane < WARPS ? sh.warp_sum[lane].x : 0;
        const uint32_t all = __reduce_add_sync(ALL_LANES, other);
        uint32_t above = __reduce_add_sync(ALL_LANES, lane < warp ? other : 0) + upto - own;
        if (all <= need) {
            if (threadIdx.x == 0)
                sh.found = {0, 0, 0, 0, 0, all};
        } else if (above < need && above + own >= need) {
            int at = MINE - 1;
            uint32_t in = n[at];
#pragma unroll
            for (int i = MINE - 2; i >= 0; i--)
                if (above + in < need)
                    above += in, in = n[i], at = i;
            sh.found = {(uint32_t)(BINS - MINE * ((int)threadIdx.x + 1) + at), above, in, 0, 0, all};
        }
        peers.meet();
        return sh.found;
    }

    /* Likewise of all blocks, by one warp of each: the groups of all are here. */
    __device__ __forceinline__ void find_bin(int buffer, bool first) {
        const int lane = lane_id();
        const uint32_t rank = peers.rank(), count = peers.count();
        uint32_t odd = 0, even = 0, lower_odd = 0, lower_even = 0;
        for (uint32_t q = 0; q < count; q++) {
            const uint2 g = *(const uint2 *)&sh.groups[buffer][q][2 * lane];
            even += g.x, odd += g.y;
            lower_even += q < rank ? g.x : 0, lower_odd += q < rank ? g.y : 0;
        }
        const uint32_t from = sum_from(even + odd), over_odd = from - even - odd, over_even = over_odd + odd;
        select_found f = {0, 0, 0, 0, 0, __shfl_sync(ALL_LANES, from, 0)};
        const bool in_odd = over_odd < need && over_odd + odd >= need, in_even = over_even < need && over_even + even >= need;
        if (f.all <= need) {
            f.lower_above = __reduce_add_sync(ALL_LANES, lower_even + lower_odd);
        } else {
            const int from_lane = __ffs((int)__ballot_sync(ALL_LANES, in_odd || in_even)) - 1;
            const int group = 2 * from_lane + (int)__shfl_sync(ALL_LANES, (uint32_t)in_odd, from_lane);
            f.above = __shfl_sync(ALL_LANES, in_odd ? over_odd : over_even, from_lane);
            f.lower_above = (2 * lane > group ? lower_even : 0) + (2 * lane + 1 > group ? lower_odd : 0);

            uint32_t v[PEERS::MOST], mine = 0, lower = 0;
#pragma unroll
            for (uint32_t q = 0; q < PEERS::MOST; q++)
                v[q] = q < count ? bin_of(buffer, first, group * GROUP + lane, q) : 0;
#pragma unroll
            for (uint32_t q = 0; q < PEERS::MOST; q++) {
                mine += v[q];
                lower += q < rank ? v[q] : 0;
            }
            const uint32_t over = f.above + sum_from(mine) - mine;
            const int bin = __ffs((int)__ballot_sync(ALL_LANES, over < need && over + mine >= need)) - 1;
            f.bin = (uint32_t)(group * GROUP + bin);
            f.above = __shfl_sync(ALL_LANES, over, bin);
            f.in = __shfl_sync(ALL_LANES, mine, bin);
            f.lower_above = __reduce_add_sync(ALL_LANES, f.lower_above + (lane > bin ? lower : 0));
            f.lower_in = __shfl_sync(ALL_LANES, lower, bin);
        }
        if (lane == 0)
            sh.found = f;
    }

    /* first: of this selection. */
    __device__ __forceinline__ select_found find_together(int buffer, bool first) {
        const int warp = warp_id(), lane = lane_id();
        peers.meet();
        if (first)
            peers.wait();
        for (int g = warp; g < GROUPS; g += WARPS) {
            const uint32_t sum = __reduce_add_sync(ALL_LANES,
                first && is_dead_end(g * GROUP + lane) ? 0 : sh.bins[buffer][g * GROUP + lane]);
            if (lane < (int)peers.count())
                peers.store4(&sh.groups[buffer][peers.rank()][g], (uint32_t)lane, sum);
        }
        peers.sync();
        if (warp == 0)
            find_bin(buffer, first);
        peers.meet();
        return sh.found;
    }

    /* The histogram in buffer is complete as far as this thread goes. */
    __device__ __forceinline__ select_found find(int buffer, bool first) {
        if (PEERS::MOST == 1 || peers.count() == 1)
            return find_alone(buffer, first);
        return find_together(buffer, first);
    }

    /* Narrows range to a bin of it, or to nothing, with last just below lo, where all that is left is wanted. */
    __device__ __forceinline__ void narrow(const select_found &f, key_range bin) {
        lower_above += f.lower_above;
        if (f.all <= need) {
            need = members = lower_in = 0;
            range = {range.lo, range.lo - 1};
            return;
        }
        range = bin;
        need -= f.above;
        members = f.in;
        lower_in = f.lower_in;
    }

    /* Cuts the range finer while it has too many members. each(f): f(keys, round) of all keys of this thread. */
    template <class EACH> __device__ __forceinline__ void refine(EACH each) {
        int buffer = 1;
        do {
            const int shift = range_shift(range);
            each([&](uint4 keys, int) {
                four(keys, [&](uint32_t key, int) {
                    if (range.holds(key))
                        atomicAdd(&sh.bins[buffer][(key - range.lo) >> shift], 1u);
                });
            });
            const select_found f = find(buffer, false);
            narrow(f, range_bin(range, shift, f.bin));
            buffer ^= 1;
            clear_bins(buffer);  /* whoever read it has met us since */
            peers.meet();
        } while (members > CANDIDATES && range.lo < range.last);
    }

    /* Exclusive sums over the block's threads of two counts, each at most `most`; MORE: which may not fit 16 bits. */
    template <bool MORE> __device__ __forceinline__ uint2 places(uint32_t a, uint32_t b, uint32_t most) {
        const int warp = warp_id(), lane = lane_id();
        uint2 sum;
        if (!MORE || most < 65536 / WARP) {
            const uint32_t both = sum_upto(a | b << 16);
            sum = make_uint2(both & 0xffff, both >> 16);
        } else {
            sum = make_uint2(sum_upto(a), sum_upto(b));
        }
        if (lane == WARP - 1)
            sh.warp_sum[warp] = sum;
        peers.meet();
        const uint2 other = lane < warp ? sh.warp_sum[lane] : make_uint2(0, 0);
        return make_uint2(sum.x - a + __reduce_add_sync(ALL_LANES, other.x), sum.y - b + __reduce_add_sync(ALL_LANES, other.y));
    }
};

#endif

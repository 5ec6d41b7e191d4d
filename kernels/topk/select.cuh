/* The k highest of a row of keys, by one block or a cluster of them: what topk and index_select share.
 *
 * The row is looked at as a histogram of bins until the bin that holds the border, the k-th highest key, has few members or is one
 * key wide. What is above it is chosen; of its members, a few are ranked each against each (the candidates), and those of a
 * plateau are taken in the order of their places, as many as are wanted. So no buffer has to hold a plateau, and any row is
 * exact. Places in the output come from prefix sums over blocks, warps and lanes: nothing depends on the order of atomics.
 *
 * A block sums its bins into groups; each block reads the groups of all, then the bins of the one group that holds the border:
 * one wait for the others a histogram, and a kilobyte or two a block between SMs.
 */
#ifndef KBENCH_TOPK_SELECT_CUH
#define KBENCH_TOPK_SELECT_CUH

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
    alignas(16) uint32_t groups[2][GROUPS];
    select_found found;
    uint2        warp_sum[WARP];
    uint2        candidate[CANDIDATES];  /* key, slot */
};

/* For a selection to begin with; a barrier follows in it. */
static __device__ __forceinline__ void select_clear(select_shared &sh, int threads) {
    for (int i = (int)threadIdx.x; i < 2 * BINS / 4; i += threads)
        ((uint4 *)sh.bins)[i] = make_uint4(0, 0, 0, 0);
}

/* A row is read in rounds of 4 keys a thread. SOURCE gives
 *   rounds()              how many rounds there are for this block
 *   keys(round)           4 keys, KEY_NONE past the end
 *   page(round)           what it takes to name the slots of these 4, a register
 *   slot(page, round, i)  slot of the i-th
 * and SINK put(place, key, slot). The first CACHED rounds are kept in registers. */
template <int THREADS, int CACHED, class PEERS, class SOURCE, class SINK> struct selection {
    static constexpr int WARPS = THREADS / WARP;

    select_shared &sh;
    const PEERS   &peers;
    const SOURCE  &source;
    const SINK    &sink;
    uint4          cache[CACHED ? CACHED : 1];

    key_range range;                 /* the border is in it */
    uint32_t  need, members;         /* to choose of its members, of all blocks */
    uint32_t  lower_above, lower_in; /* chosen above it, and members, in blocks of lower rank */

    template <class F> static __device__ __forceinline__ void four(uint4 keys, F f) {
        f(keys.x, 0), f(keys.y, 1), f(keys.z, 2), f(keys.w, 3);
    }
    template <class F> __device__ __forceinline__ void each_key(F f) {
        const int rounds = source.rounds();
#pragma unroll
        for (int j = 0; j < CACHED; j++)
            if (j < rounds)
                four(cache[j], f);
        for (int j = CACHED; j < rounds; j++)
            four(source.keys(j), f);
    }

    __device__ __forceinline__ void clear_bins(int buffer) {
        for (int i = (int)threadIdx.x; i < BINS / 4; i += THREADS)
            ((uint4 *)sh.bins[buffer])[i] = make_uint4(0, 0, 0, 0);
    }

    /* Sums of x over lanes at and above this one. */
    static __device__ __forceinline__ uint32_t sum_from(uint32_t x) {
        const int lane = lane_id();
#pragma unroll
        for (int step = 1; step < WARP; step *= 2) {
            const uint32_t other = __shfl_down_sync(ALL_LANES, x, step);
            x += lane + step < WARP ? other : 0;
        }
        return x;
    }

    /* By one warp: the highest bin at or above which there are at least `need` keys, in buffer; none, if there are no more. */
    __device__ __forceinline__ void find_bin(int buffer) {
        const int lane = lane_id();
        const uint32_t rank = peers.rank(), count = peers.count();
        uint2 g[PEERS::MOST];
        uint32_t odd = 0, even = 0, lower_odd = 0, lower_even = 0;
#pragma unroll
        for (uint32_t q = 0; q < PEERS::MOST; q++)
            g[q] = q < count ? peers.load8(&sh.groups[buffer][2 * lane], q) : make_uint2(0, 0);
#pragma unroll
        for (uint32_t q = 0; q < PEERS::MOST; q++) {
            even += g[q].x, odd += g[q].y;
            lower_even += q < rank ? g[q].x : 0, lower_odd += q < rank ? g[q].y : 0;
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
                v[q] = q < count ? peers.load4(&sh.bins[buffer][group * GROUP + lane], q) : 0;
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

    /* The histogram in buffer is complete as far as this thread goes. */
    __device__ __forceinline__ select_found find(int buffer) {
        const int warp = warp_id(), lane = lane_id();
        __syncthreads();
        for (int g = warp; g < GROUPS; g += WARPS) {
            const uint32_t sum = __reduce_add_sync(ALL_LANES, sh.bins[buffer][g * GROUP + lane]);
            if (lane == 0)
                sh.groups[buffer][g] = sum;
        }
        peers.sync();
        if (warp == 0)
            find_bin(buffer);
        __syncthreads();
        return sh.found;
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

    /* What is above range goes out; members go to the candidates, or out where range is one key. */
    __device__ __forceinline__ void give(uint32_t chosen, bool rank_them) {
        uint32_t above = 0, in = 0;
        each_key([&](uint32_t key, int) {
            above += key > range.last;
            in += range.holds(key);
        });
        uint2 at = places(above, in);
        at.x += lower_above, at.y += lower_in;
        const auto give4 = [&](uint4 keys, int round) {
            bool any = false;
            four(keys, [&](uint32_t key, int) { any |= key >= range.lo; });
            if (!any)
                return;
            const uint32_t page = source.page(round);
            four(keys, [&](uint32_t key, int i) {
                if (range.holds(key)) {
                    if (rank_them)
                        peers.store(&sh.candidate[at.y], 0, make_uint2(key, source.slot(page, round, i)));
                    else if (at.y < need)
                        sink.put(chosen + at.y, key, source.slot(page, round, i));
                    at.y++;
                } else if (key >= range.lo) {
                    sink.put(at.x++, key, source.slot(page, round, i));
                }
            });
        };
        const int rounds = source.rounds();
#pragma unroll
        for (int j = 0; j < CACHED; j++)
            if (j < rounds)
                give4(cache[j], j);
        for (int j = CACHED; j < rounds; j++)
            give4(source.keys(j), j);
    }

    /* Exclusive sums over the block's threads of two counts. */
    __device__ __forceinline__ uint2 places(uint32_t a, uint32_t b) {
        const int warp = warp_id(), lane = lane_id();
        uint2 sum = {a, b};
#pragma unroll
        for (int step = 1; step < WARP; step *= 2) {
            const uint32_t x = __shfl_up_sync(ALL_LANES, sum.x, step), y = __shfl_up_sync(ALL_LANES, sum.y, step);
            sum.x += lane >= step ? x : 0;
            sum.y += lane >= step ? y : 0;
        }
        if (lane == WARP - 1)
            sh.warp_sum[warp] = sum;
        __syncthreads();
        const uint2 other = lane < warp ? sh.warp_sum[lane] : make_uint2(0, 0);
        return make_uint2(sum.x - a + __reduce_add_sync(ALL_LANES, other.x), sum.y - b + __reduce_add_sync(ALL_LANES, other.y));
    }

    /* Candidates by rank, several lanes each; equal keys by their place in the list. */
    __device__ __forceinline__ void give_candidates(uint32_t chosen) {
        uint32_t lanes = WARP;
        while (lanes > 1 && members * lanes > THREADS)
            lanes /= 2;
        for (uint32_t first = 0; first < members; first += THREADS / lanes) {
            const uint32_t mine = first + threadIdx.x / lanes;
            const uint2 c = sh.candidate[min(mine, members - 1)];
            uint32_t higher = 0;
            for (uint32_t i = threadIdx.x % lanes; i < members; i += lanes) {
                const uint32_t key = sh.candidate[i].x;
                higher += key > c.x || (key == c.x && i < mine);
            }
            for (uint32_t step = lanes / 2; step > 0; step /= 2)
                higher += __shfl_xor_sync(ALL_LANES, higher, step);
            if (mine < members && threadIdx.x % lanes == 0 && higher < need)
                sink.put(chosen + higher, c.x, c.y);
        }
    }

    /* bins[0] and bins[1] are clear, or bins[0] holds the histogram by first_bin() of all keys already (counted); the cache is
     * full. Returns how many were put, of all blocks, from place 0 on: k or all there are. */
    __device__ __forceinline__ uint32_t run(uint32_t k, bool counted) {
        __syncthreads();
        if (!counted)
            each_key([&](uint32_t key, int) {
                if (key != KEY_NONE)
                    atomicAdd(&sh.bins[0][first_bin(key)], 1u);
            });
        need = k, lower_above = 0;
        range = {KEY_NONE + 1, KEY_LAST};
        const select_found first = find(0);
        narrow(first, first_bin_range(first.bin));

        int buffer = 1;
        while (members > CANDIDATES && range.lo < range.last) {
            const int shift = range_shift(range);
            each_key([&](uint32_t key, int) {
                if (range.holds(key))
                    atomicAdd(&sh.bins[buffer][(key - range.lo) >> shift], 1u);
            });
            const select_found f = find(buffer);
            narrow(f, range_bin(range, shift, f.bin));
            buffer ^= 1;
            clear_bins(buffer);  /* whoever read it has met us since */
            __syncthreads();
        }

        const uint32_t total = min(first.all, k), chosen = total - need;
        const bool rank_them = members > 0 && range.lo < range.last;
        give(chosen, rank_them);
        if (rank_them) {
            peers.sync();
            if (peers.rank() == 0)
                give_candidates(chosen);
        } else {
            peers.leave();
        }
        return total;
    }
};

#endif

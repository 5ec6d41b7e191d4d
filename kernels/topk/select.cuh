/* The k highest of a row of keys, by one block or a cluster of them: what topk and index_select share.
 *
 * The row is looked at as a histogram of bins until the bin that holds the border, the k-th highest key, has few members or is one
 * key wide. What is above it is chosen; of its members, a few are ranked each against each (the candidates), and those of a
 * plateau are taken in the order of their places, as many as are wanted. So no buffer has to hold a plateau, and any row is
 * exact. Places in the output come from prefix sums over blocks, warps and lanes: nothing depends on the order of atomics.
 *
 * A short row is no more than a chain of latencies, and each instruction runs once: what counts is how few there are.
 */
#ifndef KBENCH_TOPK_SELECT_CUH
#define KBENCH_TOPK_SELECT_CUH

#include "border.cuh"

/* A row is read in rounds of 4 keys a thread. SOURCE gives
 *   rounds()              how many rounds there are for this block
 *   keys(round)           4 keys, KEY_NONE past the end
 *   page(round)           what it takes to name the slots of these 4, a register
 *   slot(page, round, i)  slot of the i-th
 * and SINK put(place, key, slot). The first CACHED rounds are kept in registers; MORE: there may be others. */
template <int THREADS, int CACHED, bool MORE, class PEERS, class SOURCE, class SINK>
struct selection : select_border<THREADS, PEERS, CACHED> {
    using border = select_border<THREADS, PEERS, CACHED>;
    using border::sh, border::peers, border::cache;
    using border::range, border::need, border::members, border::lower_above, border::lower_in;
    using border::four, border::find, border::narrow, border::refine, border::WARPS;
    static constexpr int WORDS = (CACHED + 7) / 8;
    static_assert(CACHED > 0 || MORE, "a row has rounds");

    const SOURCE &source;
    const SINK   &sink;

    /* f(keys, round) of rounds that are cached, and of the others. A single cached round is always filled. */
    template <class F> __device__ __forceinline__ void each_cached(F f) {
#pragma unroll
        for (int j = 0; j < CACHED; j++)
            if (CACHED == 1 || j < source.rounds())
                f(cache[j], j);
    }
    template <class F> __device__ __forceinline__ void each_other(F f) {
        if constexpr (MORE)
            for (int j = CACHED; j < source.rounds(); j++)
                f(source.keys(j), j);
    }

    /* Key `bit` of a word of 8 cached rounds. */
    __device__ __forceinline__ uint32_t pick(int word, int bit) const {
        uint32_t picked = 0;
#pragma unroll
        for (int j = 0; j < CACHED; j++)
            if (j / 8 == word)
                four(cache[j], [&](uint32_t key, int i) { picked = bit == j % 8 * 4 + i ? key : picked; });
        return picked;
    }

    /* What a thread has to give: as bits of words of 8 cached rounds; where its first go. */
    struct hits {
        uint32_t above[WORDS + 1], in[WORDS + 1];
        uint2    at;
    };

    __device__ __forceinline__ hits find_hits(void) {
        hits h = {};
        each_cached([&](uint4 keys, int j) {
            four(keys, [&](uint32_t key, int i) {
                const uint32_t bit = 1u << (j % 8 * 4 + i);
                const bool over = key > range.last;
                h.above[j / 8] |= over ? bit : 0;
                h.in[j / 8] |= !over && key >= range.lo ? bit : 0;
            });
        });
        uint32_t n_above = 0, n_in = 0;
#pragma unroll
        for (int w = 0; w < WORDS; w++)
            n_above += (uint32_t)__popc(h.above[w]), n_in += (uint32_t)__popc(h.in[w]);
        each_other([&](uint4 keys, int) {
            four(keys, [&](uint32_t key, int) {
                n_above += key > range.last;
                n_in += range.holds(key);
            });
        });
        h.at = border::template places<MORE>(n_above, n_in, (uint32_t)source.rounds() * 4);
        h.at.x += lower_above, h.at.y += lower_in;
        return h;
    }

    /* f(key, round, i) of the cached keys that `words` names, in order, while there is `want`. */
    template <class WANT, class F> __device__ __forceinline__ void each_hit(const uint32_t (&words)[WORDS + 1], WANT want, F f) {
#pragma unroll
        for (int w = 0; w < WORDS; w++)
            for (uint32_t left = words[w]; left && want(); left &= left - 1) {
                const int bit = __ffs((int)left) - 1;
                f(pick(w, bit), w * 8 + bit / 4, bit % 4);
            }
    }

    /* f(key, page, round, i) of the other keys that `is` holds for. */
    template <class IS, class F> __device__ __forceinline__ void each_other_hit(IS is, F f) {
        each_other([&](uint4 keys, int j) {
            bool any = false;
            four(keys, [&](uint32_t key, int) { any |= is(key); });
            if (!any)
                return;
            const uint32_t page = source.page(j);
            four(keys, [&](uint32_t key, int i) {
                if (is(key))
                    f(key, page, j, i);
            });
        });
    }

    /* Members of the range to the candidates, or out where it is one key. */
    __device__ __forceinline__ void give_members(hits &h, uint32_t chosen, bool rank_them) {
        const auto give = [&](uint32_t key, uint32_t slot) {
            if (rank_them)
                peers.store(&sh.candidate[h.at.y], 0, make_uint2(key, slot));
            else if (h.at.y < need)
                sink.put(chosen + h.at.y, key, slot);
            h.at.y++;
        };
        each_hit(h.in, [&] { return rank_them || h.at.y < need; },
            [&](uint32_t key, int j, int i) { give(key, source.slot(source.page(j), j, i)); });
        each_other_hit([&](uint32_t key) { return range.holds(key); },
            [&](uint32_t key, uint32_t page, int j, int i) { give(key, source.slot(page, j, i)); });
    }

    /* What is above it goes out. */
    __device__ __forceinline__ void give_above(hits &h) {
        each_hit(h.above, [] { return true; },
            [&](uint32_t key, int j, int i) { sink.put(h.at.x++, key, source.slot(source.page(j), j, i)); });
        each_other_hit([&](uint32_t key) { return key > range.last; },
            [&](uint32_t key, uint32_t page, int j, int i) { sink.put(h.at.x++, key, source.slot(page, j, i)); });
    }

    /* Candidates by rank, one a warp at a time; equal keys by their place in the list. */
    __device__ __forceinline__ void give_candidates(uint32_t chosen) {
        const uint32_t lane = (uint32_t)lane_id();
        for (uint32_t mine = (uint32_t)warp_id(); mine < members; mine += WARPS) {
            const uint2 c = sh.candidate[mine];
            uint32_t higher = 0;
#pragma unroll 2
            for (uint32_t i = lane; i - lane < members; i += WARP) {
                const uint32_t key = i < members ? sh.candidate[i].x : 0;
                higher += (uint32_t)__popc(__ballot_sync(ALL_LANES, key > c.x || (key == c.x && i < mine)));
            }
            if (lane == 0 && higher < need)
                sink.put(chosen + higher, c.x, c.y);
        }
    }

    /* peers have been told to arrive(), the bins are clear, the cache is full; counted: and its keys, or all where nothing is
     * cached, have been counted. Returns how many were put, of all blocks, from place 0 on: k or all there are. */
    __device__ __forceinline__ uint32_t run(uint32_t k, bool counted) {
        const auto count = [&](uint4 keys, int) { select_count_keys(sh, keys); };
        if (!counted)
            each_cached(count);
        if (CACHED > 0 || !counted)
            each_other(count);
        need = k, lower_above = 0;
        range = {KEY_FIRST, KEY_LAST};
        const select_found first = find(0, true);
        narrow(first, first_bin_range(first.bin));
        if (__builtin_expect(members > CANDIDATES && range.lo < range.last, 0))
            refine([&](auto f) {
                each_cached(f);
                each_other(f);
            });

        const uint32_t total = min(first.all, k), chosen = total - need;
        const bool rank_them = members > 0 && range.lo < range.last;
        hits h = find_hits();
        give_members(h, chosen, rank_them);
        if (rank_them)
            peers.publish();  /* before there are stores to memory that a fence would wait for */
        give_above(h);
        if (rank_them) {
            peers.collect();
            if (peers.rank() == 0)
                give_candidates(chosen);
        } else {
            peers.leave();
        }
        return total;
    }
};

#endif

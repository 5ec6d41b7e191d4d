/* Rows longer than a block's registers, by one block, read once.
 *
 * Pieces of the row pass through registers, one on its way while another is looked at. What lies above the floor is kept, in
 * shared memory, as key and entry; where there is no room for it, the k-th highest key of all that is kept and of the piece is
 * found, it becomes the floor, and what is left is kept. At the end the k best of what is kept go out.
 *
 * The floor is as low as the bin of the border, of up to CANDIDATES members, or the border itself where they tie: of these as many
 * are kept as are wanted, and later ones are not looked at. So k - 1 + CANDIDATES entries at most stay, there always is room, and
 * any row costs time by its length: a rising one, of which nothing is left out, a selection a piece. Places come from prefix sums,
 * as everywhere: nothing depends on the order of atomics.
 */
#ifndef KBENCH_TOPK_STREAM_CUH
#define KBENCH_TOPK_STREAM_CUH

#include "topk.cuh"

static constexpr int STREAM_ROOM = 2944;
static_assert(2048 + CANDIDATES <= STREAM_ROOM, "the largest k of the ops");

template <int THREADS> struct stream_shared {
    alignas(16) uint32_t key[STREAM_ROOM];
    alignas(16) uint32_t entry[STREAM_ROOM];  /* at the end: its slot */
    uint32_t             sum[2][THREADS / WARP];
};

/* Key and entry to their places, the first at `shared`; or nothing, where `is` is 0: two predicated stores, no branch. */
static __device__ __forceinline__ void stream_put(uint32_t shared, uint32_t is, uint32_t key, uint32_t entry) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p st.shared.u32 [%0], %2; @p st.shared.u32 [%0 + %4], %3; }" ::"r"(shared),
                 "r"(is), "r"(key), "r"(entry), "n"(STREAM_ROOM * 4) : "memory");
}

/* What is kept, as the source of the last selection. */
template <int THREADS> struct stream_row {
    static constexpr int ROUND = THREADS * 4, CACHED = (STREAM_ROOM + ROUND - 1) / ROUND;

    stream_shared<THREADS> &kept;
    uint32_t                count;

    __device__ __forceinline__ int rounds(void) const {
        return (int)((count + ROUND - 1) / ROUND);
    }
    static __device__ __forceinline__ uint32_t at(int round) {
        return (uint32_t)round * ROUND + threadIdx.x * 4;
    }
    __device__ __forceinline__ uint4 keys(int round) const {
        const uint32_t from = at(round);
        uint4 v = make_uint4(KEY_NONE, KEY_NONE, KEY_NONE, KEY_NONE);
        if (from < count) {
            v = *(const uint4 *)&kept.key[from];
            v.y = from + 1 < count ? v.y : KEY_NONE;
            v.z = from + 2 < count ? v.z : KEY_NONE;
            v.w = from + 3 < count ? v.w : KEY_NONE;
        }
        return v;
    }
    __device__ __forceinline__ uint4 entries(int round) const {
        return at(round) < count ? *(const uint4 *)&kept.entry[at(round)] : make_uint4(0, 0, 0, 0);
    }
    __device__ __forceinline__ uint32_t page(int) const {
        return 0;
    }
    __device__ __forceinline__ uint32_t slot(uint32_t, int round, int i) const {
        return kept.entry[at(round) + (uint32_t)i];
    }
};

template <int THREADS> struct topk_stream {
    using row_of = topk_row<THREADS>;
    using border_of = select_border<THREADS, peers_none, 0>;
    static constexpr int WARPS = THREADS / WARP, PIECE = 8;  /* rounds a piece */
    static constexpr int CACHED = stream_row<THREADS>::CACHED;

    const topk_args        &a;
    const row_of           &row;
    topk_shared<THREADS>   &sh;
    stream_shared<THREADS> &kept;
    uint32_t                floor, count;  /* keys above the floor are looked at; how many are kept */

    /* All rounds of a piece; those past the end are a thread's last one again. Where a single load may be left out, it is open
     * whether its registers still wait for an older one: so each waits for all, and they go out one after the other's answer. */
    __device__ __forceinline__ void load(uint4 (&to)[PIECE], int number) const {
        const int round = number * PIECE;
        if (round >= row.n)
            return;
        const int32_t last = row.first + ((row.length - 1 - row.first) & -row_of::ROUND), mine = round + (int)threadIdx.x;
#pragma unroll
        for (int j = 0; j < PIECE; j++)
            to[j] = load16_once(row.score + (int64_t)min(row.entry(round + j), last) * 4);
        if (threadIdx.x < PIECE && mine < row.n)  /* for what will be kept: the pages of a round are 128 bytes */
            prefetch_l2((const int32_t *)row.page_table + mine * row_of::ROUND_PAGES);
    }
    /* None past the end. */
    __device__ __forceinline__ void mask(uint4 (&keys)[PIECE], int number) const {
#pragma unroll
        for (int j = 0; j < PIECE; j++) {
            const int32_t left = row.length - row.entry(number * PIECE + j);
            keys[j].x = left > 0 ? keys[j].x : KEY_NONE, keys[j].y = left > 1 ? keys[j].y : KEY_NONE;
            keys[j].z = left > 2 ? keys[j].z : KEY_NONE, keys[j].w = left > 3 ? keys[j].w : KEY_NONE;
        }
    }

    template <int N, class IS> static __device__ __forceinline__ uint32_t count_of(const uint4 (&keys)[N], IS is) {
        uint32_t n = 0;
#pragma unroll
        for (int j = 0; j < N; j++)
            border_of::four(keys[j], [&](uint32_t key, int) { n += is(key) ? 1 : 0; });
        return n;
    }
    /* Bit 4 * j + i: the i-th key of round j is above the floor. */
    __device__ __forceinline__ uint32_t hits_of(const uint4 (&keys)[PIECE]) const {
        static_assert(PIECE * 4 <= 32, "a bit each");
        uint32_t bits = 0;
#pragma unroll
        for (int j = 0; j < PIECE; j++)
            border_of::four(keys[j], [&](uint32_t key, int i) { bits |= key > floor ? 1u << (j * 4 + i) : 0; });
        return pinned(bits);  /* as a word, not as that many predicates, for which there is no room */
    }
    __device__ __forceinline__ uint32_t place_of(uint32_t place) const {
        return shared_address(kept.key) + place * 4;
    }
    /* f(key, entry, bit) of all keys of a piece. */
    template <class F> __device__ __forceinline__ void each_of_piece(const uint4 (&keys)[PIECE], int round, F f) const {
        const uint32_t first = (uint32_t)row.entry(round);
#pragma unroll
        for (int j = 0; j < PIECE; j++)
            border_of::four(keys[j], [&](uint32_t key, int i) { f(key, first + (uint32_t)(j * row_of::ROUND + i), j * 4 + i); });
    }

    /* Of what is kept and of a piece's keys above the floor the k highest are kept, and what shares the border's bin. */
    __device__ __forceinline__ void settle(const uint4 (&keys)[PIECE], uint32_t hits, int round) {
        const stream_row<THREADS> old = {kept, count};
        const peers_none alone;
        border_of s = {sh.select, alone};
        s.need = (uint32_t)a.k, s.lower_above = 0;
#pragma unroll
        for (int j = 0; j < PIECE; j++)
            if (hits >> (j * 4) & 15)
                select_count_some(sh.select, keys[j], hits >> (j * 4));
        for (int j = 0; j < old.rounds(); j++)
            select_count_keys(sh.select, old.keys(j));
        const select_found found = s.find(0, true);
        s.narrow(found, first_bin_range(found.bin));
        s.range.lo = max(s.range.lo, floor + 1);  /* a bin may reach below what was counted */
        if (s.members > CANDIDATES && s.range.lo < s.range.last)
            s.refine([&](auto f) {
#pragma unroll
                for (int j = 0; j < PIECE; j++)
                    f(keys[j], j);
                for (int j = 0; j < old.rounds(); j++)
                    f(old.keys(j), j);
            });
        keep(keys, old, s, round);
        select_clear<THREADS>(sh.select);  /* the next count comes after the next piece's barrier */
    }
    __device__ __forceinline__ void keep(const uint4 (&keys)[PIECE], const stream_row<THREADS> &old, border_of &s, int round) {
        const key_range range = s.range;
        const bool tied = range.lo == range.last;
        const auto is_above = [&](uint32_t key) { return key > range.last; };
        const auto is_in = [&](uint32_t key) { return range.holds(key); };
        uint4 key[CACHED], entry[CACHED];
#pragma unroll
        for (int j = 0; j < CACHED; j++)
            key[j] = old.keys(j), entry[j] = old.entries(j);
        const uint32_t above = count_of(key, is_above) + count_of(keys, is_above);
        const uint32_t in = count_of(key, is_in) + count_of(keys, is_in);
        /* Beyond the barrier in places() all that was kept is in registers. */
        const uint2 at = s.template places<false>(above, in, 0);
        const uint32_t chosen = (uint32_t)a.k - s.need, most = tied ? s.need : s.members;
        const uint32_t begin = place_of(0), end = place_of(chosen + most);
        uint32_t above_at = begin + at.x * 4, in_at = begin + (chosen + at.y) * 4;
        const uint32_t lo = pinned(range.lo), top = pinned(range.last);  /* compared anew, as in hits_of() */
        const auto give = [&](uint32_t key, uint32_t entry, int) {
            const bool over = key > top, in = !over && key >= lo;
            stream_put(over ? above_at : in_at, over || (in && in_at < end), key, entry);
            above_at += over ? 4 : 0, in_at += in ? 4 : 0;
        };
#pragma unroll
        for (int j = 0; j < CACHED; j++) {
            const uint32_t e[4] = {entry[j].x, entry[j].y, entry[j].z, entry[j].w};
            border_of::four(key[j], [&](uint32_t key, int i) { give(key, e[i], i); });
        }
        each_of_piece(keys, round, give);
        count = chosen + most;
        floor = tied ? range.lo : range.lo - 1;
    }

    /* How many hits warp w has, in lane w, this one and all. buffer: not that of the call before, which who is late still reads. */
    __device__ __forceinline__ uint32_t sum_of(uint32_t mine, int buffer, uint32_t &own, uint32_t &all) const {
        const int lane = lane_id();
        own = __reduce_add_sync(ALL_LANES, mine);
        if (lane == 0)
            kept.sum[buffer][warp_id()] = own;
        __syncthreads();
        const uint32_t each = lane < WARPS ? kept.sum[buffer][lane] : 0;
        all = __reduce_add_sync(ALL_LANES, each);
        return each;
    }
    /* A floor to begin with, by the keys of round 0 as a sample of the first piece: what is above it should be a little more than k
     * keys, and where it is fewer, there is none. A piece of which nothing is left out costs a selection. */
    __device__ __forceinline__ void guess(const uint4 (&keys)[PIECE]) {
        const peers_none alone;
        border_of s = {sh.select, alone};
        const uint32_t k = (uint32_t)a.k;
        s.need = min(k + k / 4 + 128, (k + STREAM_ROOM) / 2) / PIECE, s.lower_above = 0;
        s.range = {KEY_FIRST, KEY_LAST};
        select_count_keys(sh.select, keys[0]);
        const select_found found = s.find(0, true);
        s.narrow(found, first_bin_range(found.bin));
        floor = s.range.lo - 1;
        uint32_t own, all;
        sum_of((uint32_t)__popc(hits_of(keys)), 1, own, all);
        if (all < k)
            floor = KEY_FIRST - 1;
        select_clear<THREADS>(sh.select);  /* as in settle() */
    }

    /* A piece; number: of it, among all. */
    __device__ __forceinline__ void piece(const uint4 (&keys)[PIECE], int number) {
        const uint32_t hits = hits_of(keys), mine = (uint32_t)__popc(hits);
        uint32_t own, all;
        const uint32_t other = sum_of(mine, number & 1, own, all);
        if (count + all > STREAM_ROOM) {
            settle(keys, hits, number * PIECE);
            return;
        }
        if (own > 0) {
            const uint32_t before = count + __reduce_add_sync(ALL_LANES, lane_id() < warp_id() ? other : 0);
            uint32_t at = place_of(before + border_of::sum_upto(mine) - mine);
            each_of_piece(keys, number * PIECE, [&](uint32_t key, uint32_t entry, int bit) {
                const uint32_t is = hits & 1u << bit;
                stream_put(at, is, key, entry);
                at += is ? 4 : 0;
            });
        }
        count += all;
    }

    __device__ __forceinline__ void pieces(void) {
        uint4 next[PIECE], keys[PIECE];
        floor = KEY_FIRST - 1, count = 0;
        load(next, 0);
#pragma unroll 1
        for (int number = 0; number * PIECE < row.n; number++) {
#pragma unroll
            for (int j = 0; j < PIECE; j++)
                keys[j] = row.keys_of(next[j]);
            load(next, number + 1);
            if ((number + 1) * PIECE > row.length / row_of::ROUND)
                mask(keys, number);
            if (number == 0)
                guess(keys);
            piece(keys, number);
        }
    }

    /* The best of what is kept. How many. */
    __device__ __forceinline__ uint32_t finish(topk_slots out) const {
        __syncthreads();
        const stream_row<THREADS> source = {kept, count};
        const peers_none alone;
        selection<THREADS, CACHED, false, peers_none, stream_row<THREADS>, topk_slots> s = {{sh.select, alone}, source, out};
#pragma unroll
        for (int j = 0; j < CACHED; j++)
            if (source.at(j) < count) {
                const uint4 e = source.entries(j);  /* past the count: any, unless masked */
                const uint32_t n = count - source.at(j);
                const auto slot = [&](uint32_t entry, uint32_t i) {
                    return i < n ? (uint32_t)__ldg((const int32_t *)row.page_table + entry / TOPK_PAGE) * TOPK_PAGE
                                       + entry % TOPK_PAGE
                                 : 0;
                };
                *(uint4 *)&kept.entry[source.at(j)] = make_uint4(slot(e.x, 0), slot(e.y, 1), slot(e.z, 2), slot(e.w, 3));
            }
#pragma unroll
        for (int j = 0; j < CACHED; j++)
            s.cache[j] = source.keys(j);
        return s.run((uint32_t)a.k, false);
    }
};

#endif

/* A part of a request's KV list for a group of heads: attn/splitk. The pieces are those of mma_ws.cuh, with an item (request, group
 * of heads, part) in the place of (request, group).
 */
#ifndef KBENCH_ATTN_SPLITK_CUH
#define KBENCH_ATTN_SPLITK_CUH

#include "combine.cuh"
#include "mma_ws.cuh"

/* 16 or 32 heads a block, see mma_shape. What split_query has to know: m-tiles that a warp scores; chunks of q in registers and in
 * shared memory; threads that score. */
template <int MT_, int STAGES_, int BUFFERS_> struct split_shape : mma_shape<MT_, STAGES_, BUFFERS_> {
    using base = mma_shape<MT_, STAGES_, BUFFERS_>;
    static constexpr bool WIDE = false;
    static constexpr int  QMT = MT_, KEPT = base::CHUNKS, SPARE = 0, QUERY = base::COMPUTE;
};

struct split_counts {
    int32_t items, groups, splits;
};

/* Entries of a part: whole tiles, the last may be short. */
struct split_range {
    int32_t begin, end;
};

template <class S> static __device__ __forceinline__ split_range range_of(int32_t n, int32_t split, int32_t splits) {
    const int64_t tiles = (n + S::TILE - 1) / S::TILE;
    return {(int32_t)(tiles * split / splits) * S::TILE, min(n, (int32_t)(tiles * (split + 1) / splits) * S::TILE)};
}

/* A copying warp. As mma_producer, over parts; the rows of the tile after next are asked into L2 while there is no room for them
 * yet. */
template <class S> struct split_producer : mma_producer<S> {
    using base = mma_producer<S>;
    using typename base::tile;
    int32_t splits, end;

    __device__ __forceinline__ void enter(const attn_args &a, attn_length length) {
        const int64_t b = this->item / splits / this->groups;
        const int32_t coming = this->item + (int32_t)gridDim.x;
        const split_range range = range_of<S>(length.n, this->item % splits, splits);
        this->i = range.begin;
        end = range.end;
        this->len = length;
        this->lists = attn_lists_of(a, b, length.window);
        if (coming < this->items) {
            this->announce(a, coming / splits);
            this->next_len = attn_length_of(a, coming / splits / this->groups);
        }
    }

    __device__ __forceinline__ tile look(const attn_args &a) {
        while (this->i >= end && this->item < this->items) {
            this->item += (int32_t)gridDim.x;
            if (this->item < this->items)
                enter(a, this->next_len);
        }
        tile t;
        t.window = this->len.window - this->i;
        t.live = this->item < this->items;
#pragma unroll
        for (int p = 0; p < S::PASSES; p++) {
            const int32_t entry = this->i + this->row + p * 4;
            t.slot[p] = -1;
            if (t.live && entry < end)
                t.slot[p] = this->lists.slot(entry, entry < this->len.window);
        }
        this->i += S::TILE;
        return t;
    }

    /* The first two tiles' slots are loaded beside the lengths on the guess that both lists are full; where they're not, once
     * more. */
    __device__ __forceinline__ void start(const attn_args &a, tile (&ret)[2]) {
        const int64_t b = this->item / splits / this->groups;
        const split_range guess = range_of<S>(a.window + a.topk, this->item % splits, splits);
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int p = 0; p < S::PASSES; p++) {
                const int32_t entry = guess.begin + t * S::TILE + this->row + p * 4;
                ret[t].slot[p] = -1;
                if (entry < guess.end)
                    ret[t].slot[p] = entry < a.window ? __ldg((const int32_t *)attn_row<ATTN_WINDOW_SLOT>(a, b) + entry)
                                                      : __ldg((const int32_t *)attn_row<ATTN_TOPK_SLOT>(a, b) + entry - a.window);
            }
        const attn_length length = attn_length_of(a, b);
        enter(a, length);
        if (length.window == a.window && length.n == a.window + a.topk && guess.end - guess.begin > S::TILE) {
            ret[0].window = length.window - guess.begin;
            ret[1].window = ret[0].window - S::TILE;
            ret[0].live = ret[1].live = true;
            this->i = guess.begin + 2 * S::TILE;
        } else if (length.window == a.window && length.n == a.window + a.topk && guess.end > guess.begin) {
            ret[0].window = length.window - guess.begin;
            ret[0].live = true;
            this->i = guess.begin + S::TILE;
            ret[1] = look(a);
        } else {
#pragma unroll 1
            for (int t = 0; t < 2; t++) {
                ret[0] = ret[1];
                ret[1] = look(a);
            }
        }
    }

    __device__ __forceinline__ void ask(const attn_args &a, const tile &t) const {
#pragma unroll
        for (int p = 0; p < S::PASSES; p++) {
            const bool window_row = this->row + p * 4 < t.window;
            const char *row = window_row ? attn_row<ATTN_WINDOW_KV>(a, max(t.slot[p], 0)) : attn_row<ATTN_TOPK_KV>(a,
                max(t.slot[p], 0));
            if (t.slot[p] >= 0)
                prefetch_l2(row + lane_id() % 8 * 128);
        }
    }

    __device__ __forceinline__ void run(const attn_args &a, mma_shared<S> &sh, const split_counts &counts) {
        this->items = counts.items;
        this->groups = counts.groups;
        splits = counts.splits;
        this->item = (int32_t)blockIdx.x;  /* < items: there are no more blocks than items */
        this->row = (int)(threadIdx.x - S::COMPUTE) / WARP * S::COPIED + lane_id() / 8;
        tile next[2];
        mma_position<S> to = {0, 1};  /* the parity before the first: empty from the beginning */
        start(a, next);
        while (next[0].live) {
            barrier_wait(shared_address(&sh.empty[to.stage]), to.parity);
            this->copy(a, sh, next[0], to.stage);
            next[0] = next[1];
            next[1] = look(a);
            if (S::WIDE && next[0].live)
                ask(a, next[0]);
            to = to.next();
        }
        copy_wait_all();
    }
};

/* The warp's part of q, as A fragments of m16n8k16. Heads past the end are 0. */
template <class S> struct split_query {
    uint32_t fragment[S::QMT][S::KEPT][2][4];
    uint32_t spare;  /* shared address of the thread's other fragments */

    __device__ __forceinline__ split_query(const uint4 *shared) {
        spare = S::SPARE ? pinned(shared_address(shared + threadIdx.x % S::QUERY)) : 0;
    }

    /* Chunk c of m-tile mt: rows g and g + 8, 16 bytes a thread. */
    static __device__ __forceinline__ void fetch(const attn_args &a, int64_t b, int32_t first, int mt, int c, uint32_t (&f)[2][4]) {
        const int lane = lane_id(), dw = warp_id() % S::DIM_WARPS;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int32_t head = first + mt * 16 + half * 8 + lane / 4;
            const char *q = attn_row<ATTN_Q>(a, b * a.heads + min(head,
                a.heads - 1)) + dw * S::CHUNKS * 64 + c * 64 + lane % 4 * 16;
            const uint4 v = head < a.heads ? __ldg((const uint4 *)q) : make_uint4(0, 0, 0, 0);
            f[half][0] = v.x, f[half][1] = v.y, f[half][2] = v.z, f[half][3] = v.w;
        }
    }

    /* From a chunk of 8 elements a thread to two elements of 4 chunks: f[step] is the fragment of a k-step. */
    static __device__ __forceinline__ void arrange(uint32_t (&f)[2][4]) {
        const uint4 low = quad_transpose(f[0][0], f[0][1], f[0][2], f[0][3]), high = quad_transpose(f[1][0], f[1][1], f[1][2],
            f[1][3]);
        f[0][0] = low.x, f[0][1] = high.x, f[0][2] = low.y, f[0][3] = high.y;
        f[1][0] = low.z, f[1][1] = high.z, f[1][2] = low.w, f[1][3] = high.w;
    }

    __device__ __forceinline__ void load(const attn_args &a, int64_t b, int32_t first) {
        uint32_t rest[S::QMT][S::SPARE + 1][2][4];
#pragma unroll
        for (int mt = 0; mt < S::QMT; mt++) {
#pragma unroll
            for (int c = 0; c < S::SPARE; c++)
                fetch(a, b, first, mt, S::KEPT + c, rest[mt][c]);
#pragma unroll
            for (int c = 0; c < S::KEPT; c++)
                fetch(a, b, first, mt, c, fragment[mt][c]);
        }
#pragma unroll
        for (int mt = 0; mt < S::QMT; mt++) {
#pragma unroll
            for (int c = 0; c < S::SPARE; c++) {
                arrange(rest[mt][c]);
#pragma unroll
                for (int step = 0; step < 2; step++) {
                    const uint32_t (&f)[4] = rest[mt][c][step];
                    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(spare_at(c, step, mt)), "r"(f[0]), "r"(f[1]),
                        "r"(f[2]), "r"(f[3]) : "memory");
                }
            }
#pragma unroll
            for (int c = 0; c < S::KEPT; c++)
                arrange(fragment[mt][c]);
        }
    }

    __device__ __forceinline__ void get(int mt, int c, int step, uint32_t (&f)[4]) const {
        if (c < S::KEPT) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                f[e] = fragment[mt][c < S::KEPT ? c : 0][step][e];
        } else {
            const uint4 v = load16_shared(spare_at(c - S::KEPT, step, mt));
            f[0] = v.x, f[1] = v.y, f[2] = v.z, f[3] = v.w;
        }
    }

private:
    __device__ __forceinline__ uint32_t spare_at(int c, int step, int mt) const {
        return spare + ((c * 2 + step) * S::QMT + mt) * (int)(S::QUERY * sizeof(uint4));
    }
};

/* The warp's partial scores of one tile, to shared memory. */
template <class S>
static __device__ __forceinline__ void split_scores(const split_query<S> &q, const mma_places<S> &at, mma_position<S> from,
    int buffer) {
    const uint32_t key = at.key + from.stage * S::STAGE_BYTES;
    float s[S::QMT][S::NT][4] = {};
#pragma unroll
    for (int c = 0; c < S::CHUNKS; c++) {
        uint32_t k[S::NT][4];
#pragma unroll
        for (int nt = 0; nt < S::NT; nt++)
            load_matrix4(k[nt], (key ^ c % 2 * 64) + nt * 8 * ROW_BYTES + c / 2 * 128);
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
            for (int mt = 0; mt < S::QMT; mt++) {
                uint32_t f[4];
                q.get(mt, c, step, f);
#pragma unroll
                for (int nt = 0; nt < S::NT; nt++)
                    mma_bf16(s[mt][nt], f, k[nt][step * 2], k[nt][step * 2 + 1]);
            }
    }
#pragma unroll
    for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
        for (int mt = 0; mt < S::QMT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                store8_shared((at.give ^ nt * 32) + buffer * S::SCORE_BYTES + (mt * 16 + half * 8) * S::SCORE_PITCH,
                    s[mt][nt][half * 2],
                              s[mt][nt][half * 2 + 1]);
}

/* The sums of a part as they are. */
template <class S>
static __device__ __forceinline__ void split_write(const attn_args &a, const partials &p, const mma_sums<S> &sums, int64_t b,
    int32_t first, int32_t split) {
    const int lane = lane_id();
#pragma unroll
    for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int32_t head = first + mt * 16 + half * 8 + lane / 4;
            if (head < a.heads) {
                float2 *o = (float2 *)(partial_o(p, b * a.heads + head, split) + warp_id() * 64) + lane % 4;
#pragma unroll
                for (int j = 0; j < 8; j++)
                    __stcg(o + j * 4, make_float2(sums.o[mt][j][half * 2], sums.o[mt][j][half * 2 + 1]));
            }
        }
}

#endif

/* Tiled attention over entries in fp8 by mma.sync: entries are copied as they are into a ring in shared memory and become
 * operands in registers.
 * No tile in 16 bits is ever written, because e4m3 is exact in half and its scale can wait:
 *
 *   scores   the 64 products of a group are summed by themselves and then multiplied by the scale, a float. q is brought into
 * half's range by
 *            a power of two per head and group, which loses nothing above 2^-38 of the group's largest element.
 *   sum      the scale goes to the weight: half(weight) * 2^(scale - unit), where unit is the warp's own for its group and grows
 * with the
 *            scales it meets. An entry whose scale is 2^30 or more below takes a pass of its own: see fp8_sums.
 *
 * A warp that takes one group of 64 elements of d for the sum has one scale an entry; half has three more bits of mantissa than
 * bf16, which
 * is what a row of few different values needs. Roped elements are bf16 as they come, and so are their weights.
 *
 * A block is 8 warps. They share out the work three times:
 *   scores   S[heads][tile]: warp (kw, dw) of 2 x 4 takes half of the keys and 128 elements of d, so that its part of q lives in
 * registers for
 *            good. The four partial sums of a score meet in shared memory.
 *   weights  P[heads][tile]: warp w takes heads w * HPW .. and all keys, so that maximum and sum stay inside a warp.
 *   sum      O[heads][512] += P * KV: warp w takes group w (warp 7: the rope), all heads and keys.
 */
#ifndef KBENCH_ATTN_FP8_MMA_CUH
#define KBENCH_ATTN_FP8_MMA_CUH

#include "attn/combine.cuh"
#include "fp8.cuh"

/* MT: m-tiles of 16 heads. STAGES: tiles in the ring. */
template <int MT_, int STAGES_> struct fp8_shape {
    static constexpr int MT = MT_, HEADS = MT * 16, STAGES = STAGES_, TILE = WARP;  /* a lane an entry */
    static constexpr int WARPS = 8, THREADS = WARPS * WARP, DIM_WARPS = 4, NT = 2;  /* n-tiles of 8 keys a warp scores */
    static constexpr int HPW = HEADS / WARPS;                /* heads whose weights a warp makes */
    static constexpr int LPH = WARP / HPW;                   /* lanes a head */
    static constexpr int VEC = TILE / LPH;                   /* weights a lane makes, side by side */
    static constexpr int PITCH = ATTN_FP8_DATA + 16, STAGE_BYTES = TILE * PITCH;  /* 8 rows of an ldmatrix lie in different banks */
    static constexpr int SCORE_PITCH = TILE * 4, PLANE_BYTES = HEADS * SCORE_PITCH, SCORE_BYTES = DIM_WARPS * PLANE_BYTES;
    static constexpr int P_PITCH = TILE * 2 + 16, P_BYTES = HEADS * P_PITCH;
    static_assert(STAGES >= 4 && (VEC == 2 || VEC == 4), "no such shape");
};

template <class S> struct __align__(128) fp8_shared {
    char    data[S::STAGES][S::TILE][S::PITCH];
    uint8_t scales[S::STAGES][S::TILE][ATTN_FP8_SCALES];
    float   bias[S::STAGES][S::TILE];                /* 0, or -inf where a hole or the end is */
    float   score[2][S::DIM_WARPS][S::HEADS][S::TILE];  /* partial sums; key k of head h at k ^ (h % 4) * 8 */
    char    p[2][2][S::HEADS][S::P_PITCH];           /* weights as half, as bf16 */
    float   old[2][S::HEADS];                        /* what the sums so far are to be multiplied by */
    float   factor[S::HEADS];                        /* and in the end */
};

static __device__ __forceinline__ void copy8_async(uint32_t shared, const void *global, bool valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared), "l"(global), "r"(valid ? 8 : 0) : "memory");
}

/* As mma_bf16, of halves. */
static __device__ __forceinline__ void mma_half(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ uint32_t half_pack(float lo, float hi) {
    uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(hi), "f"(lo));
    return word;
}

static __device__ __forceinline__ uint32_t half_times(uint32_t x, uint32_t y) {
    uint32_t word;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(word) : "r"(x), "r"(y));
    return word;
}

/* Work is cut into items: (request, part of its list, group of heads), the groups of a part side by side since they read the
 * same entries. */
struct fp8_work {
    int32_t items, groups, splits;
};

/* An item's entries: whole tiles, as evenly as they go. lo >= hi: none. */
struct fp8_range {
    int32_t lo, hi;
};

template <class S> static __device__ __forceinline__ fp8_range fp8_range_of(const fp8_work &work, int32_t item, int32_t n) {
    const int32_t part = item / work.groups % work.splits, tiles = (n + S::TILE - 1) / S::TILE;
    return {part * tiles / work.splits * S::TILE, min((part + 1) * tiles / work.splits * S::TILE, n)};
}

static __device__ __forceinline__ int32_t fp8_request_of(const fp8_work &work, int32_t item) {
    return item / work.groups / work.splits;
}

/* Shared-memory addresses of a thread, for stage 0 and buffer 0: constants lead from them to everything it touches. */
template <class S> struct fp8_places {
    uint32_t key, give, take, put, weight, value, copy;  /* give: ^ 32 for the second n-tile */

    __device__ __forceinline__ fp8_places(const fp8_shared<S> &sh) {
        const int warp = warp_id(), lane = lane_id(), g = lane / 4, t = lane % 4, kw = warp / S::DIM_WARPS,
            dw = warp % S::DIM_WARPS;
        const int h = (int)(threadIdx.x / S::LPH), i = (int)(threadIdx.x % S::LPH) * S::VEC;
        key = pinned(shared_address(sh.data[0][kw * 16 + lane % 8]) + dw * 128 + lane / 8 * 16);
        give = pinned(shared_address(&sh.score[0][dw][g][(kw * 16 + t * 2) ^ g % 4 * 8]));
        take = pinned(shared_address(&sh.score[0][0][h][i ^ h % 4 * 8]));
        put = pinned(shared_address(sh.p[0][0][h]) + i * 2);
        weight = pinned(shared_address(sh.p[0][warp == S::WARPS - 1][lane % 16]) + lane / 16 * 16);
        value = pinned(shared_address(sh.data[0][lane % 16]) + warp * ATTN_FP8_GROUP + lane / 16 * 16);
        copy = pinned(shared_address(sh.data[0][threadIdx.x / 8]) + threadIdx.x % 8 * 16);
    }
};

/* The tiles to come: the copies run ahead of the arithmetic, also into the next item, and the slots run two tiles ahead of the
 * copies. Eight
 * threads share an entry. */
template <class S> struct fp8_cursor {
    struct tile {
        int32_t slot;      /* of the thread's row; negative: hole or end */
        int32_t window;    /* how many rows of the tile are from the window cache */
    };
    tile        next, after;
    int32_t     row, item, i, hi;
    attn_length len, next_len;      /* of item and of the block's next one */
    const char *window, *topk;      /* lists of item, so that entry i is at i * 4 in either */

    /* q of an item to L2, and what it will read of the lists, so that nobody waits for memory when it comes up. */
    __device__ __forceinline__ void announce(const fp8_args &a, const fp8_work &work, int32_t coming) const {
        const int64_t b = fp8_request_of(work, coming);
        const int32_t first = coming % work.groups * S::HEADS;
#pragma unroll 1
        for (int at = (int)threadIdx.x * 128; at < a.topk * 4 + 124; at += S::THREADS * 128)
            prefetch_l2(attn_row<ATTN_TOPK_SLOT>(a, b) + min(at, a.topk * 4 - 4));
#pragma unroll 1
        for (int at = (int)threadIdx.x * 128; at < a.window * 4 + 124; at += S::THREADS * 128)
            prefetch_l2(attn_row<ATTN_WINDOW_SLOT>(a, b) + min(at, a.window * 4 - 4));
#pragma unroll 1
        for (int line = (int)threadIdx.x; line < S::HEADS * (ROW_BYTES / 128); line += S::THREADS)
            if (first + line / 8 < a.heads)
                prefetch_l2(attn_row<ATTN_Q>(a, b * a.heads + first + line / 8) + line % 8 * 128);
    }

    __device__ __forceinline__ void enter(const fp8_args &a, const fp8_work &work, attn_length length) {
        const int64_t b = fp8_request_of(work, item);
        const int32_t coming = item + (int32_t)gridDim.x;
        const fp8_range range = fp8_range_of<S>(work, item, length.n);
        len = length;
        i = range.lo;
        hi = range.hi;
        window = attn_row<ATTN_WINDOW_SLOT>(a, b);
        topk = attn_row<ATTN_TOPK_SLOT>(a, b) - (int64_t)len.window * 4;
        if (coming < work.items) {
            announce(a, work, coming);
            next_len = attn_length_of(a, fp8_request_of(work, coming));
        }
    }

    /* After the last item every entry is past the end. */
    __device__ __forceinline__ tile look(const fp8_args &a, const fp8_work &work) {
        while (i >= hi && item < work.items) {
            item += (int32_t)gridDim.x;
            if (item < work.items)
                enter(a, work, next_len);
        }
        tile t = {-1, len.window - i};
        const int32_t entry = i + row;
        if (entry < hi)
            t.slot = __ldg((const int32_t *)(entry < len.window ? window : topk) + entry);
        i += S::TILE;
        return t;
    }

    __device__ __forceinline__ void start(const fp8_args &a, const fp8_work &work) {
        item = (int32_t)blockIdx.x;     /* < items: there are no more blocks than items */
        row = (int32_t)threadIdx.x / 8;
        next_len = {0, 0};
        after = {-1, 0};
        enter(a, work, attn_length_of(a, fp8_request_of(work, item)));
#pragma unroll 1
        for (int t = 0; t < 2; t++) {
            next = after;
            after = look(a, work);
        }
    }

    /* Begins the copies of the next tile, one group of them; after the last tile: zeros that nobody reads. */
    __device__ __forceinline__ void copy(const fp8_args &a, const fp8_work &work, fp8_shared<S> &sh, const fp8_places<S> &at,
        int stage) {
        const int       part = (int)(threadIdx.x % 8);
        const bool      valid = next.slot >= 0;
        const fp8_entry e = fp8_entry_of(a, row < next.window, max(next.slot, 0));
        const uint8_t  *from = e.data + part * 16;
        const uint32_t  to = at.copy + stage * S::STAGE_BYTES;
#pragma unroll
        for (int j = 0; j < 4; j++)
            copy16_async(to + j * 128, from + j * 128, valid);
        if (part < 4)
            copy16_async(to + 512, from + 512, valid);
        else if (part == 4)
            copy8_async(shared_address(sh.scales[stage][row]), e.scales, valid);
        else if (part == 5)
            sh.bias[stage][row] = valid ? 0.f : -INFINITY;
        copy_commit();
        next = after;
        after = look(a, work);
    }
};

/* The warp's part of q as A fragments, halves of q * 2^-e per head and group; of the rope bf16. Fragment k of a thread meets the
 * order in which
 * ldmatrix gives codes: elements 16 k + 4 t .. + 3. Heads past the end are 0. */
template <class S> struct fp8_query {
    uint32_t f[S::MT][8][4];
    float    scale[S::MT][2][2];    /* [m-tile][row g or g + 8][group]: 2^e; of the rope 1 */

    __device__ __forceinline__ void load(const fp8_args &a, int64_t b, int32_t first) {
        const int  lane = lane_id(), t = lane % 4, dw = warp_id() % S::DIM_WARPS;
        const bool last = dw == S::DIM_WARPS - 1;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int32_t head = first + mt * 16 + half * 8 + lane / 4;
                const bool    live = head < a.heads;
                const char   *q = attn_row<ATTN_Q>(a, b * a.heads + min(head, a.heads - 1)) + dw * 256;
#pragma unroll
                for (int k = 0; k < 8; k++) {
                    const bool     rope = last && k >= 4;
                    const uint32_t x = __ldg((const uint32_t *)(q + k * 32 + (rope ? t * 4 : t * 8)));
                    const uint32_t y = __ldg((const uint32_t *)(q + k * 32 + (rope ? t * 4 + 16 : t * 8 + 4)));
                    f[mt][k][half] = live ? x : 0;
                    f[mt][k][half + 2] = live ? y : 0;
                }
            }
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int group = 0; group < 2; group++) {
                    scale[mt][half][group] = 1;
                    if (!(last && group == 1))
                        fit(mt, half, group);
                }
    }

private:
    /* The largest element of the group to 2^14 .. 2^15. */
    __device__ __forceinline__ void fit(int mt, int half, int group) {
        uint32_t top = 0;
#pragma unroll
        for (int k = group * 4; k < group * 4 + 4; k++)
#pragma unroll
            for (int r = half; r < 4; r += 2)
                top = max(top, max(f[mt][k][r] & 0x7fffu, f[mt][k][r] >> 16 & 0x7fffu));
        top = max(top, __shfl_xor_sync(ALL_LANES, top, 1));
        top = max(top, __shfl_xor_sync(ALL_LANES, top, 2));
        const uint32_t exponent = max(top >> 7, 15u);
        const float    down = __uint_as_float((268 - exponent) << 23);
        scale[mt][half][group] = __uint_as_float((exponent - 14) << 23);
#pragma unroll
        for (int k = group * 4; k < group * 4 + 4; k++)
#pragma unroll
            for (int r = half; r < 4; r += 2)
                f[mt][k][r] = half_pack(bf16_lo(f[mt][k][r]) * down, bf16_hi(f[mt][k][r]) * down);
    }
};

/* The warp's partial scores of one tile, to shared memory. */
template <class S>
static __device__ __forceinline__ void fp8_scores(const fp8_shared<S> &sh, const fp8_query<S> &q, const fp8_places<S> &at,
    int stage, int buffer) {
    const int  lane = lane_id(), warp = warp_id(), dw = warp % S::DIM_WARPS;
    const bool last = dw == S::DIM_WARPS - 1;
    const uint32_t key = at.key + stage * S::STAGE_BYTES;
    float s[S::MT][S::NT][4] = {};
    uint32_t pair[S::NT][2];        /* the two scales of entries 2t and 2t + 1 */
#pragma unroll
    for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
        for (int e = 0; e < 2; e++)
            pair[nt][e] = *(const uint16_t *)&sh.scales[stage][warp / S::DIM_WARPS * 16 + nt * 8 + lane % 4 * 2 + e][dw * 2];
#pragma unroll
    for (int group = 0; group < 2; group++) {
        float c[S::MT][S::NT][4] = {};
        const bool rope = last && group == 1;
        if (!rope) {
            uint32_t k[S::NT][4];
#pragma unroll
            for (int nt = 0; nt < S::NT; nt++)
                load_matrix4(k[nt], key + group * 64 + nt * 8 * S::PITCH);
#pragma unroll
            for (int step = 0; step < 4; step++)
#pragma unroll
                for (int nt = 0; nt < S::NT; nt++) {
                    uint32_t b[2];
                    fp8_half4(k[nt][step], b);
#pragma unroll
                    for (int mt = 0; mt < S::MT; mt++)
                        mma_half(c[mt][nt], q.f[mt][group * 4 + step], b[0], b[1]);
                }
        } else {
#pragma unroll
            for (int part = 0; part < 2; part++) {
                uint32_t k[S::NT][4];
#pragma unroll
                for (int nt = 0; nt < S::NT; nt++)
                    load_matrix4(k[nt], key + 64 + part * 64 + nt * 8 * S::PITCH);
#pragma unroll
                for (int step = 0; step < 2; step++)
#pragma unroll
                    for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
                        for (int mt = 0; mt < S::MT; mt++)
                            mma_bf16(c[mt][nt], q.f[mt][4 + part * 2 + step], k[nt][step * 2], k[nt][step * 2 + 1]);
            }
        }
#pragma unroll
        for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float scale = rope ? 1.f : fp8_scale(group ? pair[nt][e] >> 8 : pair[nt][e] & 255);
#pragma unroll
                for (int mt = 0; mt < S::MT; mt++) {
                    s[mt][nt][e] = fmaf(c[mt][nt][e], scale * q.scale[mt][0][group], s[mt][nt][e]);
                    s[mt][nt][e + 2] = fmaf(c[mt][nt][e + 2], scale * q.scale[mt][1][group], s[mt][nt][e + 2]);
                }
            }
    }
#pragma unroll
    for (int nt = 0; nt < S::NT; nt++)
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                store8_shared((at.give ^ nt * 32) + buffer * S::SCORE_BYTES + (mt * 16 + half * 8) * S::SCORE_PITCH,
                    s[mt][nt][half * 2],
                              s[mt][nt][half * 2 + 1]);
}

/* LPH lanes share a head: its running maximum and the lane's own part of its running sum. */
template <class S> struct fp8_softmax {
    float m, sum, sink;

    static __device__ __forceinline__ int head() {
        return (int)(threadIdx.x / S::LPH);
    }

    __device__ __forceinline__ void clear(const fp8_args &a, int32_t first) {
        m = -INFINITY;
        sum = 0;
        sink = attn_sink_log2(a, min(first + head(), a.heads - 1));
    }

    /* After a barrier: all partial scores in, in a fixed order; weights P of the tile and the factor for the older sums out. */
    __device__ __forceinline__ void tile(fp8_shared<S> &sh, const fp8_places<S> &at, int stage, int buffer) {
        const int lane = (int)(threadIdx.x % S::LPH);
        float s[S::VEC] = {}, top = m;
#pragma unroll
        for (int dw = 0; dw < S::DIM_WARPS; dw++) {
            float x[S::VEC];
            load_vec(at.take + buffer * S::SCORE_BYTES + dw * S::PLANE_BYTES, x);
#pragma unroll
            for (int e = 0; e < S::VEC; e++)
                s[e] += x[e];
        }
#pragma unroll
        for (int e = 0; e < S::VEC; e++) {
            s[e] = s[e] * SCALE_LOG2 + sh.bias[stage][lane * S::VEC + e];
            top = fmaxf(top, s[e]);
        }
#pragma unroll
        for (int step = S::LPH / 2; step > 0; step /= 2)
            top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, step));
        const float base = top == -INFINITY ? 0.f : top, old = exp2_fast(m - base);
        m = top;
        sum *= old;
        if (lane == 0)
            sh.old[buffer][head()] = old;
        const uint32_t put = at.put + buffer * 2 * S::P_BYTES;
#pragma unroll
        for (int e = 0; e < S::VEC; e++) {
            s[e] = exp2_fast(s[e] - base);
            sum += s[e];
        }
        if constexpr (S::VEC == 4) {
            store8_shared(put, __uint_as_float(half_pack(s[0], s[1])), __uint_as_float(half_pack(s[2], s[3])));
            store8_shared(put + S::P_BYTES, __uint_as_float(bf16_pack(s[0], s[1])), __uint_as_float(bf16_pack(s[2], s[3])));
        } else {
            store4_shared(put, half_pack(s[0], s[1]));
            store4_shared(put + S::P_BYTES, bf16_pack(s[0], s[1]));
        }
    }

    /* The head's whole sum, in all its lanes. */
    __device__ __forceinline__ float total() const {
        float all = sum;
#pragma unroll
        for (int step = S::LPH / 2; step > 0; step /= 2)
            all += __shfl_xor_sync(ALL_LANES, all, step);
        return all;
    }

    /* The factor that ends the sums to sh.factor, and the lse. */
    __device__ __forceinline__ void finish(const fp8_args &a, fp8_shared<S> &sh, int64_t b, int32_t first) const {
        const float all = total();
        if (threadIdx.x % S::LPH == 0) {
            sh.factor[head()] = attn_finish(m, all, sink);
            if (first + head() < a.heads)
                *attn_lse(a, b, first + head()) = all > 0 ? m * LN2 + logf(all) : -INFINITY;
        }
    }

    /* The same for a part: nothing is divided yet. */
    __device__ __forceinline__ void leave(const fp8_args &a, const partials &parts, int64_t b, int32_t first, int32_t split) const {
        const float all = total();
        if (threadIdx.x % S::LPH == 0 && first + head() < a.heads)
            *partial_ml(parts, b * a.heads + first + head(), split) = make_float2(m, all);
    }

private:
    static __device__ __forceinline__ void load_vec(uint32_t from, float (&ret)[S::VEC]) {
        if constexpr (S::VEC == 4) {
            const uint4 v = load16_shared(from);
            ret[0] = __uint_as_float(v.x), ret[1] = __uint_as_float(v.y), ret[2] = __uint_as_float(v.z),
                ret[3] = __uint_as_float(v.w);
        } else {
            const uint2 v = load8_shared(from);
            ret[0] = __uint_as_float(v.x), ret[1] = __uint_as_float(v.y);
        }
    }
};

/* The warp's 64 elements of d of the weighted sums, in units of 2^(unit - 127 - HEADROOM). The thread has of heads 16 mt + g and
 * + 8, for
 * chunks c of 16 elements, o[mt][2c] and o[mt][2c + 1]: of codes elements 4t, 4t + 2 and 4t + 1, 4t + 3; of the rope 2t, 2t + 1
 * and 2t + 8, 2t + 9. */
template <class S> struct fp8_sums {
    /* weights <= 1 times 2^15 are halves; scales down to 2^-29 of the unit keep them normal */
    static constexpr int HEADROOM = 15, SPAN = 30;
    /* what is smaller by this than the largest scale is dropped: the sums would overflow in its unit */
    static constexpr int REACH = 80;
    float o[S::MT][8][4];
    int   unit, largest;                            /* bytes of scales; largest: of all seen */

    static __device__ __forceinline__ bool coded() {
        return warp_id() < S::WARPS - 1;
    }

    __device__ __forceinline__ void clear() {
        unit = largest = 0;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    o[mt][j][e] = 0;
    }

    /* A tile's older sums: by sh.old, unless that is done, and to unit `to`. Most tiles bring neither a new maximum nor a larger scale: then
     * nothing is done. */
    __device__ __forceinline__ void scale(const float *old, bool done, int to) {
        const int   g = lane_id() / 4;
        const float step = __uint_as_float((uint32_t)max(unit - to + 127, 0) << 23);
        float f[S::MT][2];
        bool  any = false;
        unit = to;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                f[mt][half] = (done ? 1.f : old[mt * 16 + half * 8 + g]) * step;
                any |= f[mt][half] != 1;
            }
        if (!__any_sync(ALL_LANES, any))
            return;
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    o[mt][j][e] *= f[mt][e / 2];
    }

    /* After a barrier. Entries of far smaller scale than the largest, which no quantiser leaves beside it, matter where the weight of the others
     * vanishes: each further pass takes those near the largest left, in their own unit. */
    __device__ __forceinline__ void tile(const fp8_shared<S> &sh, const fp8_places<S> &at, int stage, int buffer) {
        if (!coded()) {
            scale(sh.old[buffer], false, unit);
            add_rope(at, stage, buffer);
            return;
        }
        const bool hole = sh.bias[stage][lane_id()] < 0;
        int left = hole ? -1 : sh.scales[stage][lane_id()][warp_id()], to = __reduce_max_sync(ALL_LANES, left);
        largest = to = max(to, largest);
        for (bool again = false;; again = true) {
            scale(sh.old[buffer], again, to);
            add(at, stage, buffer, left > unit - SPAN && left >= 0 ? factor_of(left) : 0);
            left = left > unit - SPAN || left < largest - REACH ? -1 : left;
            if (!__any_sync(ALL_LANES, left >= 0))
                break;
            to = __reduce_max_sync(ALL_LANES, left);
        }
    }

    /* factor[h]: what head first + h is multiplied by. */
    __device__ __forceinline__ void write_bf16(const fp8_args &a, int64_t b, int32_t first, const float *factor) const {
        const float whole = true_unit();
        each([&](int head, int d, float x, float y, float z, float w, bool four) {
            if (first + head >= a.heads)
                return;
            char *out = attn_row<ATTN_OUT>(a, b * a.heads + first + head) + d * 2;
            const float f = factor[head];
            const uint32_t low = bf16_pack(x * whole * f, y * whole * f), high = bf16_pack(z * whole * f, w * whole * f);
            if (four)
                *(uint2 *)out = make_uint2(low, high);
            else {
                *(uint32_t *)out = low;
                *(uint32_t *)(out + 16) = high;
            }
        });
    }

    /* As a part's sums. */
    __device__ __forceinline__ void leave(const fp8_args &a, const partials &parts, int64_t b, int32_t first, int32_t split) const {
        const float whole = true_unit();
        each([&](int head, int d, float x, float y, float z, float w, bool four) {
            if (first + head >= a.heads)
                return;
            float *out = partial_o(parts, b * a.heads + first + head, split) + d;
            if (four)
                __stcg((float4 *)out, make_float4(x * whole, y * whole, z * whole, w * whole));
            else {
                __stcg((float2 *)out, make_float2(x * whole, y * whole));
                __stcg((float2 *)(out + 8), make_float2(z * whole, w * whole));
            }
        });
    }

private:
    __device__ __forceinline__ float true_unit() const {
        return coded() ? fp8_scale(unit) * 0x1p-15f : 1.f;
    }

    /* 2^(byte - unit + HEADROOM), within SPAN a normal half's bits. */
    __device__ __forceinline__ uint32_t factor_of(int byte) const {
        return (uint32_t)(byte - unit + HEADROOM + 15) << 10;
    }

    /* mine: factor of the lane's entry. */
    __device__ __forceinline__ void add(const fp8_places<S> &at, int stage, int buffer, uint32_t mine) {
        const uint32_t two = mine | __shfl_down_sync(ALL_LANES, mine, 1) << 16;
#pragma unroll
        for (int k = 0; k < S::TILE / 16; k++) {
            const int      entry = k * 16 + lane_id() % 4 * 2;
            const uint32_t low = __shfl_sync(ALL_LANES, two, entry), high = __shfl_sync(ALL_LANES, two, entry + 8);
            uint32_t w[S::MT][4], v[2][4];
#pragma unroll
            for (int j = 0; j < 2; j++)
                load_matrix4_transposed(v[j], at.value + stage * S::STAGE_BYTES + k * 16 * S::PITCH + j * 32);
#pragma unroll
            for (int mt = 0; mt < S::MT; mt++) {
                load_matrix4(w[mt], at.weight + buffer * 2 * S::P_BYTES + mt * 16 * S::P_PITCH + k * 32);
#pragma unroll
                for (int r = 0; r < 4; r++)
                    w[mt][r] = half_times(w[mt][r], r < 2 ? low : high);
            }
#pragma unroll
            for (int c = 0; c < 4; c++) {
                /* Codes of two entries by two elements, to two elements by two entries: an operand each. */
                const uint32_t x = __byte_perm(v[c / 2][c % 2 * 2], 0, 0x3120), y = __byte_perm(v[c / 2][c % 2 * 2 + 1], 0, 0x3120);
                uint32_t first[2], second[2];
                fp8_half4(x, first);
                fp8_half4(y, second);
#pragma unroll
                for (int odd = 0; odd < 2; odd++)
#pragma unroll
                    for (int mt = 0; mt < S::MT; mt++)
                        mma_half(o[mt][c * 2 + odd], w[mt], first[odd], second[odd]);
            }
        }
    }

    __device__ __forceinline__ void add_rope(const fp8_places<S> &at, int stage, int buffer) {
#pragma unroll
        for (int k = 0; k < S::TILE / 16; k++) {
            uint32_t w[S::MT][4];
#pragma unroll
            for (int mt = 0; mt < S::MT; mt++)
                load_matrix4(w[mt], at.weight + buffer * 2 * S::P_BYTES + mt * 16 * S::P_PITCH + k * 32);
#pragma unroll
            for (int c = 0; c < 4; c++) {
                uint32_t v[4];
                load_matrix4_transposed(v, at.value + stage * S::STAGE_BYTES + k * 16 * S::PITCH + c * 32);
#pragma unroll
                for (int odd = 0; odd < 2; odd++)
#pragma unroll
                    for (int mt = 0; mt < S::MT; mt++)
                        mma_bf16(o[mt][c * 2 + odd], w[mt], v[odd * 2], v[odd * 2 + 1]);
            }
        }
    }

    /* put(head, d, x, y, z, w, four): elements d .. d + 3 if four, else d, d + 1, d + 8, d + 9. */
    template <class F> __device__ __forceinline__ void each(F put) const {
        const int  g = lane_id() / 4, t = lane_id() % 4;
        const bool four = coded();
#pragma unroll
        for (int mt = 0; mt < S::MT; mt++)
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    const float (&a)[4] = o[mt][c * 2], (&b)[4] = o[mt][c * 2 + 1];
                    put(mt * 16 + half * 8 + g, warp_id() * ATTN_FP8_GROUP + c * 16 + t * (four ? 4 : 2), a[half * 2],
                        four ? b[half * 2] : a[half * 2 + 1], four ? a[half * 2 + 1] : b[half * 2], b[half * 2 + 1], four);
                }
    }
};

/* Scores of a tile, weights of the one before, bytes of the one after are there; the tile before those is done with. */
template <class S> static __device__ __forceinline__ void fp8_meet(void) {
    copy_wait<S::STAGES - 4>();
    asm volatile("bar.sync 0;" ::: "memory");
}

/* Body of the kernels: all items of a block. SPLIT: results go to `parts`, else to out and lse.
 *
 * One barrier a tile: between two of them the weights of a tile, the products of the tile before it and the scores of the one after it are made.
 * Of the two warps on each quarter of an SM one begins with the weights and one ends with them, so that the tensor cores are busy meanwhile:
 * both run weights, products, scores in turn, and only the barrier stands at another place. */
template <class S, bool SPLIT>
static __device__ __forceinline__ void fp8_run(const fp8_args &a, const fp8_work &work, const partials &parts, fp8_shared<S> &sh) {
    const bool early = warp_id() < S::WARPS / 2;
    const fp8_places<S> at(sh);
    fp8_cursor<S> cursor;
    fp8_query<S> q;
    fp8_softmax<S> softmax;
    fp8_sums<S> sums;
    int32_t tile = 0;    /* the block's, over all its items; the tile at stage tile % STAGES */
    cursor.start(a, work);
#pragma unroll 1
    for (int s = 0; s < S::STAGES - 2; s++)
        cursor.copy(a, work, sh, at, s);

#pragma unroll 1
    for (int32_t item = (int32_t)blockIdx.x; item < work.items; item += (int32_t)gridDim.x) {
        const int64_t b = fp8_request_of(work, item);
        const int32_t first = item % work.groups * S::HEADS, split = item / work.groups % work.splits;
        const fp8_range range = fp8_range_of<S>(work, item, attn_length_of(a, b).n);
        const int32_t tiles = max(range.hi - range.lo + S::TILE - 1, 0) / S::TILE;
        softmax.clear(a, first);
        sums.clear();
        q.load(a, b, first);
        /* k: the tile whose scores are there after the barrier. The first round only makes scores, the last only products. */
#pragma unroll 1
        for (int32_t k = -1; k <= tiles; k++) {
            if (early)
                fp8_meet<S>();
            const int32_t weighted = early ? k : k - 1;
            if (weighted >= 0 && weighted < tiles)
                softmax.tile(sh, at, (tile + weighted) % S::STAGES, weighted & 1);
            if (!early)
                fp8_meet<S>();
            if (k >= 0 && k < tiles)
                cursor.copy(a, work, sh, at, (tile + k + S::STAGES - 2) % S::STAGES);
            if (k > 0)
                sums.tile(sh, at, (tile + k - 1) % S::STAGES, (k - 1) & 1);
            if (k + 1 < tiles)
                fp8_scores<S>(sh, q, at, (tile + k + 1) % S::STAGES, (k + 1) & 1);
        }
        tile += tiles;
        if constexpr (SPLIT) {
            softmax.leave(a, parts, b, first, split);
            if (tiles > 0)
                sums.leave(a, parts, b, first, split);
        } else {
            softmax.finish(a, sh, b, first);
            __syncthreads();
            sums.write_bf16(a, b, first, sh.factor);
        }
    }
}

#endif

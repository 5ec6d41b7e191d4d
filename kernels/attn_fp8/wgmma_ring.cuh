/* The ring of attn/wgmma.cuh over entries in fp8: one warpgroup gathers, and writes tiles in bf16 that are exact.
 *
 * Four lanes take an entry, 32 entries a pass: of each group of 64 elements a lane has 16 codes, one load. Nine loads a lane are in
 * registers at a time; what has been converted makes room for the same piece of the next pass. Further passes are asked into L2.
 *
 * Codes become bf16 without a conversion instruction. A byte with its sign spread above it, shifted left by 4 and masked, has sign,
 * exponent and mantissa where a bf16 has them, and is worth 2^-120 of the code, also where that is subnormal; a packed product by
 * 2^120 times the scale does the rest. That factor is a bf16 for scales up to 2^7; a pass that meets a larger one, which hardly any
 * quantiser leaves, takes two products. Exact for scales of 2^-124 .. 2^119. Codes of NaN become 480, a scale of NaN a large
 * number: neither occurs in an entry that a list names.
 */
#ifndef KBENCH_ATTN_FP8_WGMMA_RING_CUH
#define KBENCH_ATTN_FP8_WGMMA_RING_CUH

#include "attn/wgmma.cuh"
#include "fp8.cuh"

static constexpr uint32_t FP8_PLAIN_SCALE = 134;  /* byte of the largest scale that one product can do */

/* 2^(byte - 7) twice: byte <= FP8_PLAIN_SCALE. */
static __host__ __device__ __forceinline__ uint32_t fp8_factor(uint32_t byte) {
    return byte * 0x00800080u + 0x3c003c00u;
}

/* For a byte above: what is left to multiply by; 2^0 for others. */
static __host__ __device__ __forceinline__ uint32_t fp8_factor_left(uint32_t byte) {
    return ((byte > FP8_PLAIN_SCALE ? byte - FP8_PLAIN_SCALE : 0) + 127) * 0x00800080u;
}

/* Whether one of the seven scales is above. */
static __host__ __device__ __forceinline__ bool fp8_scales_large(uint32_t low, uint32_t high) {
    constexpr uint32_t SEVEN = 0x7f7f7f7f, CARRY = (0x100 - 0x80 - (FP8_PLAIN_SCALE + 1 - 0x80)) * 0x01010101u;
    return (((low & SEVEN) + CARRY) & low & 0x80808080) != 0 || (((high & SEVEN) + CARRY) & high & 0x00808080) != 0;
}

/* Two e4m3 of a word as two bf16 worth 2^-120 of them. */
template <int first> static __device__ __forceinline__ uint32_t fp8_spread(uint32_t word) {
    uint32_t two;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(two) : "r"(word), "n"(0x9180 + first * 0x1111));
    return two << 4 & 0x87f087f0;
}

static __device__ __forceinline__ uint32_t bf16_times(uint32_t x, uint32_t y) {
#if __CUDA_ARCH__ >= 900
    uint32_t word;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(word) : "r"(x), "r"(y));
    return word;
#else
    return 0;
#endif
}

static __device__ __forceinline__ void store16_shared(uint32_t shared, uint4 v) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

/* What stands for the entry of a hole, scales included: all 0. */
static __device__ const uint4 fp8_nothing[ATTN_FP8_DATA / 16] = {};

template <class S> struct fp8_wgmma_ring {
    static constexpr int AHEAD = 2;  /* passes whose entries are asked for beyond those in registers */
    static constexpr int ARRIVALS = S::TEAM, ROWS = S::TEAM / 4, PASSES = S::TILE / ROWS, PIECES = ATTN_FP8_DATA / 64;
    static constexpr int CODED = ATTN_FP8_NOPE / ATTN_FP8_GROUP;  /* pieces, and panels, that are codes */

    struct wish {
        int32_t slot;    /* of the lane's entry; negative: hole or end */
        bool    window;  /* from the window cache */
    };
    struct line {
        const uint8_t *data;    /* the lane's first piece */
        uint2          scales;
    };
    const fp8_args   &a;
    const wgmma_work &work;
    int32_t           item, i, end, pending;  /* pending: passes looked up and not yet written */
    int32_t           window;  /* entries of item from the window list */
    uint32_t          holes;   /* bit k: the lane has no entry k passes from now */
    attn_lists        lists;   /* of item */

    __device__ __forceinline__ fp8_wgmma_ring(const fp8_args &args, const wgmma_work &w)
        : a(args), work(w), item((int32_t)blockIdx.x), pending(0), holes(0) {}

    static __device__ __forceinline__ int part() {
        return lane_id() % 4;
    }
    static __device__ __forceinline__ int row() {
        return (int)(threadIdx.x % S::TEAM / 4);
    }

    /* Lengths, slot lists and q of an item to L2. */
    __device__ __forceinline__ void announce(int32_t coming) const {
        if (threadIdx.x % S::TEAM == 0)
            prefetch_l2(attn_row<ATTN_LENGTH>(a, wgmma_request_of(work, coming)));
        wgmma_announce<S>(a, work, coming);
    }

    __device__ __forceinline__ void enter(attn_length length) {
        const int64_t     b = wgmma_request_of(work, item);
        const wgmma_range range = wgmma_range_of<S>(work, item, length.n);
        i = range.begin;
        end = range.end;
        window = length.window;
        lists = attn_lists_of(a, b, window);
        if (item + (int32_t)gridDim.x < work.items)
            announce(item + (int32_t)gridDim.x);
    }

    /* Of the next pass; a tile is always whole. */
    __device__ __forceinline__ wish look() {
        while (i >= end && i % S::TILE == 0 && item < work.items) {
            item += (int32_t)gridDim.x;
            if (item < work.items)
                enter(attn_length_of(a, wgmma_request_of(work, item)));
        }
        const int32_t entry = i + row();
        wish w = {-1, entry < window};
        if (item < work.items) {
            pending++;
            if (entry < end)
                w.slot = lists.slot(entry, w.window);
        }
        i += ROWS;
        return w;
    }

    /* The first slots are loaded beside the lengths on the guess that both lists are full; where they're not, once more. */
    __device__ __forceinline__ void start(wish (&ret)[AHEAD + 2]) {
        const int64_t     b = wgmma_request_of(work, item);
        const wgmma_range guess = wgmma_range_of<S>(work, item, a.window + a.topk);
#pragma unroll
        for (int t = 0; t < AHEAD + 2; t++) {
            const int32_t entry = guess.begin + t * ROWS + row();
            ret[t] = {-1, entry < a.window};
            if (entry < guess.end)
                ret[t].slot = ret[t].window ? __ldg((const int32_t *)attn_row<ATTN_WINDOW_SLOT>(a, b) + entry)
                                            : __ldg((const int32_t *)attn_row<ATTN_TOPK_SLOT>(a, b) + (entry - a.window));
        }
        const attn_length length = attn_length_of(a, b);
        enter(length);
        const int32_t passes = max(end - i + S::TILE - 1, 0) / S::TILE * PASSES;
        if (length.window == a.window && length.n == a.window + a.topk &&
            (passes >= AHEAD + 2 || item + (int32_t)gridDim.x >= work.items)) {
            pending = min(passes, AHEAD + 2);
            i += pending * ROWS;
        } else {
#pragma unroll 1
            for (int t = 0; t < AHEAD + 2; t++) {
#pragma unroll
                for (int u = 0; u < AHEAD + 1; u++)
                    ret[u] = ret[u + 1];
                ret[AHEAD + 1] = look();
            }
        }
    }

    /* Loads scales, asks for the rest. */
    __device__ __forceinline__ line ask(const wish &w, int age) {
        const fp8_entry e = fp8_entry_of(a, w.window, max(w.slot, 0));
        const uint8_t  *data = w.slot < 0 ? (const uint8_t *)fp8_nothing : e.data;
        const uint8_t  *scales = w.slot < 0 ? (const uint8_t *)fp8_nothing : e.scales;
        holes |= (uint32_t)(w.slot < 0) << age;
        prefetch_l2(data + part() * 128);
        if (part() == 0)
            prefetch_l2(data + 512);
        return {data + part() * 16, __ldg((const uint2 *)scales)};
    }

    /* Of the rope, rows of odd number take the upper half first, so that stores of two neighbours meet in no bank. */
    static __device__ __forceinline__ int turned() {
        return lane_id() / 4 % 2 * 64;
    }

    __device__ __forceinline__ void load(uint4 (&piece)[PIECES], const line &l, int j) const {
        piece[j] = load16_once(l.data + (j < CODED ? j * 64 : ATTN_FP8_NOPE + (j == CODED ? turned() : 64 - turned())));
    }

    /* A group of 64 codes, the lane's 16 of them two chunks of the tile. */
    template <bool LARGE> static __device__ __forceinline__ void convert(uint4 v, uint32_t byte, uint32_t even, uint32_t odd) {
        const uint32_t word[4] = {v.x, v.y, v.z, v.w}, factor = fp8_factor(LARGE ? min(byte, FP8_PLAIN_SCALE) : byte);
        uint32_t       x[8];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            x[k] = bf16_times(k % 2 ? fp8_spread<2>(word[k / 2]) : fp8_spread<0>(word[k / 2]), factor);
            if constexpr (LARGE)
                x[k] = bf16_times(x[k], fp8_factor_left(byte));
        }
        store16_shared(even, make_uint4(x[0], x[1], x[2], x[3]));
        store16_shared(odd, make_uint4(x[4], x[5], x[6], x[7]));
    }

    /* to: of the lane's first chunk of codes. */
    template <bool LARGE>
    static __device__ __forceinline__ void write_codes(const uint4 (&piece)[PIECES], uint2 scales, uint32_t to, int j) {
        const uint32_t byte = __byte_perm(scales.x, scales.y, 0x4440 + j) & 0xff;
        convert<LARGE>(piece[j], byte, to + j * S::PANEL_BYTES, (to ^ 16) + j * S::PANEL_BYTES);
    }

    /* Writes a pass and loads the next, piece for piece where all is plain. */
    __device__ __forceinline__ void pass(uint4 (&piece)[PIECES], uint2 now, const line &next, uint32_t to) const {
        const uint32_t rope = to + rope_after_codes();
        if (__any_sync(ALL_LANES, fp8_scales_large(now.x, now.y))) {
#pragma unroll
            for (int j = 0; j < CODED; j++)
                write_codes<true>(piece, now, to, j);
#pragma unroll
            for (int j = 0; j < CODED; j++)
                load(piece, next, j);
        } else {
#pragma unroll
            for (int j = 0; j < CODED; j++) {
                write_codes<false>(piece, now, to, j);
                load(piece, next, j);
            }
        }
#pragma unroll
        for (int j = CODED; j < PIECES; j++) {
            store16_shared((j == CODED ? rope : rope ^ 64) + CODED * S::PANEL_BYTES, piece[j]);
            load(piece, next, j);
        }
    }

    /* From a lane's first chunk of codes to its first of the rope, panels apart. */
    static __device__ __forceinline__ int rope_after_codes() {
        const int row = lane_id() / 4, chunk = part() + turned() / 16;
        return ((chunk ^ row) - (part() * 2 ^ row)) * 16;
    }

    __device__ __forceinline__ void run(wgmma_shared<S> &sh) {
        wish wishes[AHEAD + 2];
        start(wishes);
        const line first = ask(wishes[0], 0);
        uint2      now = first.scales;  /* of the pass in registers */
        uint4      piece[PIECES];       /* the lane's: 7 of codes, 2 of rope */
        line       next[AHEAD];         /* of the passes after it */
#pragma unroll
        for (int j = 0; j < PIECES; j++)
            load(piece, first, j);
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            next[k] = ask(wishes[k + 1], k + 1);
        wish     after = wishes[AHEAD + 1];
        uint32_t to = shared_address(sh.kv[0]) + row() * 128 + (part() * 2 ^ lane_id() / 4) * 16;
        wgmma_turn<S::STAGES> turn = {0, 1};  /* the parity before the first: empty from the beginning */
#pragma unroll 1
        for (int k = 0; pending > 0; pending--) {
            if (k == 0)
                barrier_wait(shared_address(&sh.empty[turn.at]), turn.parity);
            pass(piece, now, next[0], to + turn.at * S::STAGE_BYTES + k * ROWS * 128);
            if (part() == 0)
                sh.bias[turn.at][k * ROWS + row()] = holes & 1 ? -INFINITY : 0.f;
            if (++k == PASSES) {
                wgmma_publish();
                barrier_arrive(shared_address(&sh.full[turn.at]));  /* each lane: it has written bias by ordinary stores */
                turn.next();
                k = 0;
            }
            now = next[0].scales;
#pragma unroll
            for (int n = 0; n < AHEAD - 1; n++)
                next[n] = next[n + 1];
            holes >>= 1;
            next[AHEAD - 1] = ask(after, AHEAD);
            after = look();
        }
    }
};

#endif

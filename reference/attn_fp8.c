/* attn_fp8: caches of 584-byte entries in planar pages. What it computes and how a page is laid out stands in attn_fp8.h.
 *
 * A cache is filled by counter: codes and scales are drawn as quantising would have left them, so that any 64-byte piece can be
 * made alone. The largest of 64 values of N(0, 4^k) lies nearly always in 2^k * (1.75, 3.5], for which the model's rule, scale
 * 2^ceil(log2(amax / 448)), gives 2^(k - 7): so the codes are normal values times 128, rounded to e4m3, and the scale is that.
 */
#include "attn_fp8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn_formula.h"
#include "attn_inputs.h"
#include "dtype.h"
#include "rng.h"

enum {
    GROUP = ATTN_FP8_GROUP, GROUPS = ATTN_FP8_NOPE / GROUP, SCALES = ATTN_FP8_SCALES, PIECE = ATTN_FP8_PIECE,
    DATA_PIECES = ATTN_FP8_DATA / PIECE, SCALES_EACH = PIECE / SCALES,   /* entries whose scales share a piece */
};

static int64_t page_of(const struct problem *p, bool window) { return p->dim[window ? ATTN_FP8_WINDOW_PAGE : ATTN_FP8_TOPK_PAGE]; }
static int64_t page_pieces(int64_t page) { return attn_fp8_page_bytes(page) / PIECE; }

static struct attn_paging paging_of(const struct problem *p)
{
    int32_t window = (int32_t)page_of(p, true), topk = (int32_t)page_of(p, false);
    return (struct attn_paging){{window, topk}, topk < SCALES_EACH ? topk : SCALES_EACH};
}

static int64_t cache_pieces(const struct problem *p, bool window)
{
    return attn_slots(p, paging_of(p), window) / page_of(p, window) * page_pieces(page_of(p, window));
}

static int64_t window_rows(const struct problem *p) { return cache_pieces(p, true); }
static int64_t topk_rows(const struct problem *p) { return cache_pieces(p, false); }
static int64_t piece_bytes(const struct problem *p) { return (void)p, PIECE; }
static int64_t topk_share(const struct problem *p) { return attn_topk_share(p, paging_of(p)); }

static const char *fp8_invalid(const struct problem *p)
{
    for (int window = 0; window < 2; window++)
        if (page_of(p, window) != 2 && page_of(p, window) != 64 && page_of(p, window) != 256)
            return window ? "window_page must be 2, 64 or 256 entries" : "topk_page must be 2, 64 or 256 entries";
    return attn_refused(p, paging_of(p));
}

/* Pieces of the distinct slots, ascending: page after page, data before scales. */
static int64_t pieces_named(const struct problem *p, void *const *t, bool window, int64_t *ret_pieces)
{
    int64_t most = attn_named(p, NULL, window, NULL), page = page_of(p, window), n = 0;
    if (!ret_pieces) return most * (DATA_PIECES + 1);
    int64_t *slot = attn_memory((size_t)most * sizeof *slot), slots = attn_named(p, t, window, slot);
    for (int64_t first = 0, end; first < slots; first = end) {
        int64_t at = slot[first] / page, base = at * page_pieces(page), scales = base + page * DATA_PIECES;
        for (end = first; end < slots && slot[end] / page == at; end++)
            for (int i = 0; i < DATA_PIECES; i++) ret_pieces[n++] = base + slot[end] % page * DATA_PIECES + i;
        for (int64_t i = first; i < end; i++) {
            int64_t piece = scales + slot[i] % page / SCALES_EACH;
            if (ret_pieces[n - 1] != piece) ret_pieces[n++] = piece;
        }
    }
    free(slot);
    return n;
}

static int64_t window_touched(const struct problem *p, void *const *t, int64_t *ret) { return pieces_named(p, t, true, ret); }
static int64_t topk_touched(const struct problem *p, void *const *t, int64_t *ret) { return pieces_named(p, t, false, ret); }

/* How a group of an entry is drawn: scales of 2^-8, 2^-7 and 2^-6 for standard deviations of 1/2, 1 and 2. One in 16 is coarse:
 * its codes are -14 .. 14 steps of 2^-9, most of them subnormal, under a scale of 2^7, for a standard deviation of 1. No quantiser
 * leaves that, but it finds out a decoder that gets subnormal codes wrong. Variances of the 16 kinds add up to 16. */
enum { COARSE = 134 };
static const uint8_t kind_scale[16] = {121, 121, 120, 120, 120, 120, 120, COARSE, 119, 119, 119, 119, 119, 119, 119, 119};

RNG_INLINE uint64_t kinds_of(uint64_t key) { return rng_mix64(key + 0x9e3779b97f4a7c15u); }
RNG_INLINE uint8_t scale_of(uint64_t kinds, int group) { return kind_scale[kinds >> 4 * group & 15]; }

/* x to the nearest e4m3, ties to even; |x| < 464, and 0 or at least 2^-6. */
RNG_INLINE uint8_t code_of(float x)
{
    uint32_t bits = bits_of_f32(x), magnitude = bits & 0x7fffffffu;
    uint32_t rounded = ((magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20) - ((127 - 7) << 3);
    return (uint8_t)((bits >> 24 & 0x80) | (magnitude ? rounded : 0));
}

WIDE static void fill_codes(uint64_t key, uint32_t group, uint8_t *code)
{
    for (uint32_t i = 0; i < GROUP; i++) code[i] = code_of(128 * rng_normal(key, group * GROUP + i));
}

/* Codes 0 .. 15 are multiples of 2^-9. */
WIDE static void fill_coarse(uint64_t key, uint32_t group, uint8_t *code)
{
    for (uint32_t i = 0; i < GROUP; i++) {
        float x = 4 * rng_normal(key, group * GROUP + i);
        code[i] = (uint8_t)((bits_of_f32(x) >> 24 & 0x80) | (uint32_t)(fabsf(x) + 0.5f));
    }
}

WIDE static void fill_rope(uint64_t key, uint32_t half, uint16_t *bf16)
{
    for (uint32_t i = 0; i < PIECE / 2; i++) bf16[i] = bf16_from_finite(rng_normal(key, ATTN_FP8_NOPE + half * (PIECE / 2) + i));
}

static uint64_t entry_key(const struct problem *p, int t, uint32_t copy, int64_t slot)
{
    return rng_key(p->seed, copy, (uint32_t)t, (uint64_t)slot);
}

/* A function of seed, copy, page and place alone: whoever shares a copy sees the same bytes. */
static void fill_piece(const struct problem *p, int t, uint32_t copy, int64_t piece, uint8_t *ret)
{
    int64_t page = page_of(p, t == ATTN_WINDOW_KV), pieces = page_pieces(page), slot = piece / pieces * page, at = piece % pieces;
    if (at < page * DATA_PIECES) {
        uint64_t key = entry_key(p, t, copy, slot + at / DATA_PIECES);
        int      part = (int)(at % DATA_PIECES);
        if (part >= GROUPS)
            fill_rope(key, (uint32_t)(part - GROUPS), (uint16_t *)ret);
        else if (scale_of(kinds_of(key), part) == COARSE)
            fill_coarse(key, (uint32_t)part, ret);
        else
            fill_codes(key, (uint32_t)part, ret);
        return;
    }
    memset(ret, 0xff, PIECE);   /* padding, and the eighth byte of each scales */
    for (int64_t i = 0, entry = (at - page * DATA_PIECES) * SCALES_EACH; i < SCALES_EACH && entry + i < page; i++) {
        uint64_t kinds = kinds_of(entry_key(p, t, copy, slot + entry + i));
        for (int group = 0; group < GROUPS; group++) ret[i * SCALES + group] = scale_of(kinds, group);
    }
}

static void fp8_fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t rows, void *host)
{
    if (t != ATTN_WINDOW_KV && t != ATTN_TOPK_KV) {
        attn_fill_inputs(p, paging_of(p), t, set, row, rows, host);
        return;
    }
    uint32_t copy = t == ATTN_TOPK_KV ? set / (uint32_t)topk_share(p) : set;
    for (int64_t i = 0; i < rows; i++) fill_piece(p, t, copy, row + i, (uint8_t *)host + i * PIECE);
}

/* The bits of a code, moved to where a float has them, are its value times 2^-120, subnormal ones too. */
WIDE static void widen_group(const uint8_t *code, double scale, double *ret)
{
    for (int i = 0; i < GROUP; i++) {
        uint32_t magnitude = code[i] & 0x7f, sign = (uint32_t)(code[i] & 0x80) << 24;
        float    value = f32_of_bits(sign | magnitude << 20) * 0x1p120f;
        ret[i] = magnitude == 0x7f ? (double)NAN : value * scale;
    }
}

static void widen(const struct problem *p, void *const *t, bool window, int64_t slot, double *ret)
{
    int64_t        page = page_of(p, window), at = slot % page;
    const uint8_t *base = (const uint8_t *)t[window ? ATTN_WINDOW_KV : ATTN_TOPK_KV] + slot / page * attn_fp8_page_bytes(page);
    const uint8_t *data = base + at * ATTN_FP8_DATA, *scale = base + page * ATTN_FP8_DATA + at * SCALES;
    for (int g = 0; g < GROUPS; g++) widen_group(data + g * GROUP, f64_from_ue8m0(scale[g]), ret + g * GROUP);
    attn_widen_bf16((const uint16_t *)(data + ATTN_FP8_NOPE), ATTN_D - ATTN_FP8_NOPE, ret + ATTN_FP8_NOPE);
}

static void fp8_reference(const struct problem *p, void *const *t, int64_t item, int64_t n) { attn_formula(p, t, item, n, widen); }

/* What an entry holds, not the pieces that it lies in. */
static double fp8_bytes(const struct problem *p, void *const *t, uint64_t reads)
{
    return attn_bytes_of(p, t, reads, ATTN_FP8_DATA + SCALES);
}

const struct op op_attn_fp8 = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "attn_fp8",
    .note = "sparse multi-query decode attention over window and compressed cache, 584-byte fp8 entries in planar pages",
    .dim = {
        ATTN_DIMS,
        [ATTN_FP8_WINDOW_PAGE] = {"window_page", "2|64|256", 64, 2, 256, .label = true},
        [ATTN_FP8_TOPK_PAGE] = {"topk_page", "2|64|256", 64, 2, 256, .label = true},
    },
    .tensor = {
        ATTN_TENSORS_BUT_CACHES,
        [ATTN_WINDOW_KV] = {"window_kv", "[window pages, page bytes]", BYTES, IN, .rows = window_rows, .row_bytes = piece_bytes,
                            .touched = window_touched},
        [ATTN_TOPK_KV] = {"topk_kv", "[compressed pages, page bytes]", BYTES, IN, .rows = topk_rows, .row_bytes = piece_bytes,
                          .touched = topk_touched, .share = topk_share},
    },
    .invalid = fp8_invalid,
    .fill = fp8_fill,
    .items = attn_batches,
    .reference = fp8_reference,
    .item_rows = attn_item_rows,
    .flop = attn_flop,
    .bytes = fp8_bytes,
};

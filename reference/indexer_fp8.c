/* indexer_fp8: keys of 128 e4m3 and a scale, planar in pages of 64. What it computes and how a page is laid out stands in
 * indexer_fp8.h. Codes and scales are drawn as quantising by the largest of 128 values would have left them, so that any piece of a
 * page can be made alone: normal values times 128, rounded, under a scale near 2^-7.
 */
#include "indexer_fp8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "indexer_formula.h"
#include "indexer_inputs.h"
#include "rng.h"

enum {
    D = INDEXER_D, HEADS = INDEXER_HEADS, PAGE = INDEXER_PAGE, PIECE = INDEXER_FP8_PIECE, SCALES_EACH = PIECE / 4,
    PAGE_PIECES = INDEXER_FP8_PAGE_BYTES / PIECE,
};

static int64_t keys_rows(const struct problem *p) { return indexer_slots(p) / PAGE * PAGE_PIECES; }
static int64_t piece_bytes(const struct problem *p) { return (void)p, PIECE; }
static int64_t q_bytes(const struct problem *p) { return (void)p, D; }

/* Pieces of live entries, page after page, codes before scales: ascending. */
static int64_t keys_touched(const struct problem *p, void *const *t, int64_t *ret_pieces)
{
    int64_t most = indexer_pages(p, NULL, NULL), n = 0;
    if (!ret_pieces) return most * PAGE_PIECES;
    struct indexer_page *page = indexer_memory((size_t)most * sizeof *page);
    int64_t pages = indexer_pages(p, t, page);
    for (int64_t i = 0; i < pages; i++) {
        int64_t first = page[i].page * PAGE_PIECES;
        for (int32_t e = 0; e < page[i].live; e++) ret_pieces[n++] = first + e;
        for (int32_t e = 0; e < page[i].live; e += SCALES_EACH) ret_pieces[n++] = first + PAGE + e / SCALES_EACH;
    }
    free(page);
    return n;
}

/* One vector in 16 is coarse: its codes are -14 .. 14 steps of 2^-9, most of them subnormal, under a scale near 2^7. No quantiser
 * leaves that, but it finds out a decoder that gets subnormal codes wrong. Scales are not powers of two: 0.5 .. 1.5 times that. */
static bool  coarse(uint64_t key) { return rng_bits(key, D) % 16 == 0; }
static float scale_of(uint64_t key)
{
    float part = 0.5f + (float)(rng_bits(key, D + 1) >> 8) * 0x1p-24f;
    return part * (coarse(key) ? 0x1p7f : 0x1p-7f);
}

/* x to the nearest e4m3, ties to even; |x| < 464, and 0 or at least 2^-6. */
RNG_INLINE uint8_t code_of(float x)
{
    uint32_t bits = bits_of_f32(x), magnitude = bits & 0x7fffffffu;
    uint32_t rounded = ((magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20) - ((127 - 7) << 3);
    return (uint8_t)((bits >> 24 & 0x80) | (magnitude ? rounded : 0));
}

WIDE static void fill_fine(uint64_t key, uint8_t *code)
{
    for (uint32_t i = 0; i < D; i++) code[i] = code_of(128 * rng_normal(key, i));
}

WIDE static void fill_coarse(uint64_t key, uint8_t *code)
{
    for (uint32_t i = 0; i < D; i++) {
        float x = 4 * rng_normal(key, i);
        code[i] = (uint8_t)((bits_of_f32(x) >> 24 & 0x80) | (uint32_t)(fabsf(x) + 0.5f));
    }
}

static void fill_codes(uint64_t key, uint8_t *code) { (coarse(key) ? fill_coarse : fill_fine)(key, code); }

static void fill_piece(const struct problem *p, uint32_t copy, int64_t piece, uint8_t *ret)
{
    int64_t page = piece / PAGE_PIECES, at = piece % PAGE_PIECES, slot = page * PAGE + (at < PAGE ? at : (at - PAGE) * SCALES_EACH);
    if (at < PAGE) {
        fill_codes(rng_key(p->seed, copy, INDEXER_KEYS, (uint64_t)slot), ret);
        return;
    }
    for (int64_t i = 0; i < SCALES_EACH; i++)
        ((float *)ret)[i] = scale_of(rng_key(p->seed, copy, INDEXER_KEYS, (uint64_t)(slot + i)));
}

static void fp8_fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t rows, void *host)
{
    if (t != INDEXER_Q && t != INDEXER_KEYS) indexer_fill_inputs(p, t, set, row, rows, host);
    for (int64_t i = 0; i < rows; i++) {
        if (t == INDEXER_KEYS) fill_piece(p, indexer_copy(p, set), row + i, (uint8_t *)host + i * PIECE);
        if (t == INDEXER_Q) fill_codes(rng_key(p->seed, set, INDEXER_Q, (uint64_t)(row + i)), (uint8_t *)host + i * D);
        for (int64_t h = 0; t == INDEXER_W && h < HEADS; h++)   /* the scale of q folded in */
            ((float *)host)[i * HEADS + h] *= scale_of(rng_key(p->seed, set, INDEXER_Q, (uint64_t)((row + i) * HEADS + h)));
    }
}

/* The bits of a code, moved to where a float has them, are its value times 2^-120, subnormal ones too. */
WIDE static void widen(const uint8_t *code, int64_t n, double scale, double *ret)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t magnitude = code[i] & 0x7f, sign = (uint32_t)(code[i] & 0x80) << 24;
        float    value = f32_of_bits(sign | magnitude << 20) * 0x1p120f;
        ret[i] = magnitude == 0x7f ? (double)NAN : value * scale;
    }
}

static void key_fp8(void *const *t, int64_t slot, double *ret)
{
    const uint8_t *page = (const uint8_t *)t[INDEXER_KEYS] + slot / PAGE * INDEXER_FP8_PAGE_BYTES;
    float          scale;
    memcpy(&scale, page + INDEXER_FP8_SCALES + slot % PAGE * 4, sizeof scale);
    widen(page + slot % PAGE * D, D, scale, ret);
}

static void q_fp8(void *const *t, int64_t b, double *ret)
{
    widen((const uint8_t *)t[INDEXER_Q] + b * HEADS * D, HEADS * D, 1, ret);
}

static const struct indexer_format format = {key_fp8, q_fp8};

static void fp8_reference(const struct problem *p, void *const *t, int64_t item, int64_t n)
{
    indexer_formula(p, t, item, n, &format);
}

/* What entries hold, not the pieces that they lie in; a float of logits for each. */
static double fp8_bytes(const struct problem *p, void *const *t, uint64_t reads)
{
    return indexer_input_bytes(p, t, reads, D + 4) + indexer_input_bytes(p, t, 1 << INDEXER_KEYS, 4);
}

const struct op op_indexer_fp8 = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "indexer_fp8",
    .note = "paged scoring of compressed keys for sparse attention, 64 heads of 128, 132-byte fp8 entries in planar pages",
    .dim = {INDEXER_DIMS},
    .tensor = {
        INDEXER_INPUTS_BUT_Q_AND_KEYS,
        [INDEXER_Q] = {"q", "[batch, 64, 128]", E4M3, IN, .rows = indexer_batch_heads, .row_bytes = q_bytes},
        [INDEXER_KEYS] = {"keys", "[pages, 8448]", BYTES, IN, .rows = keys_rows, .row_bytes = piece_bytes, .touched = keys_touched,
                          .share = indexer_share},
        /* Tensor cores that take fp8 add up with fewer bits than fp32 has. */
        [INDEXER_LOGITS] = {"logits", "[batch, width]", F32, OUT, {5e-4, 1e-6}, .rows = indexer_batches,
                            .row_bytes = indexer_logits_bytes},
    },
    .invalid = indexer_refused,
    .fill = fp8_fill,
    .items = indexer_batches,
    .reference = fp8_reference,
    .item_rows = indexer_item_rows,
    .flop = indexer_flop,
    .bytes = fp8_bytes,
};

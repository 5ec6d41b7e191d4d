/* topk: selection from given scores. What it computes, and what scores there are, stands in topk.h. */
#include "topk.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "indexer_inputs.h"
#include "rng.h"
#include "topk_formula.h"

/* Uses of the random numbers beside the tensors' own. */
enum stream { FINE = MAX_TENSORS + 8, PAGES };

enum { PAGE = TOPK_PAGE, ALL_PAGES = (1 << 25) - 1 };   /* pages 1 .. 2^25 - 1: their slots fit an int32 */

static const char *const scores_names[] = {"random", "plateau", "special", "negative", "close", "rising", NULL};

static int64_t batches(const struct problem *p) { return p->dim[TOPK_BATCH]; }
static int64_t width(const struct problem *p) { return topk_width(p->dim[TOPK_MAX_N]); }
static int64_t score_bytes(const struct problem *p) { return width(p) * 4; }
static int64_t table_bytes(const struct problem *p) { return width(p) / PAGE * 4; }
static int64_t length_bytes(const struct problem *p) { return (void)p, 4; }
static int64_t slot_bytes(const struct problem *p) { return p->dim[TOPK_K] * 4; }

static const char *topk_invalid(const struct problem *p)
{
    static _Thread_local char why[160];   /* as in indexer_refused */
    int64_t n = p->dim[TOPK_N], most = p->dim[TOPK_MAX_N], pages = batches(p) * (width(p) / PAGE);
    if (most < n)
        snprintf(why, sizeof why, "max_n=%lld is below n=%lld: no row has room for it; a larger max_n or a smaller n",
                 (long long)most, (long long)n);
    else if (pages > ALL_PAGES)
        snprintf(why, sizeof why, "the table has %lld pages, more than the %d whose slots fit an int32; a smaller batch or max_n",
                 (long long)pages, (int)ALL_PAGES);
    else
        return NULL;
    return why;
}

static int32_t length_of(const struct problem *p, uint32_t set, int64_t b)
{
    return indexer_live_length(p->seed, set, batches(p), b, p->dim[TOPK_N], p->dim[TOPK_RAGGED]);
}

/* Few entries tie, unlike values of rng_normal. */
RNG_INLINE float fine_normal(uint64_t key, uint64_t fine, uint32_t i)
{
    return rng_normal(key, i) + (float)(rng_bits(fine, i) >> 8) * (0x1p-24f / 147.8f);
}

/* Every third row has little that counts: fewer than k entries, if it is short. */
static float special(uint64_t key, uint64_t fine, uint32_t i, int64_t b)
{
    uint32_t draw = rng_bits(fine, i), kind = draw % 32, rare = draw >> 5 & 31;
    if (b % 3 == 1 && draw >> 10 & 15) kind %= 3;
    switch (kind) {
    case 0: return f32_of_bits(0x7f800001u | draw >> 10);                 /* NaN, quiet or not */
    case 1: return f32_of_bits(0xff800001u | draw >> 10);
    case 2: return -INFINITY;
    case 3: return rare ? -FLT_MAX : INFINITY;
    case 4: return -0.0f;
    case 5: return 0.0f;
    case 6: return f32_of_bits((draw & 0x80000000u) | (draw >> 10 & 0xfff));   /* subnormal */
    case 7: return rare ? FLT_MIN : FLT_MAX;
    default: return fine_normal(key, fine, i);
    }
}

static float score_of(const struct problem *p, uint64_t key, uint64_t fine, int64_t b, uint32_t i)
{
    switch ((enum topk_scores)p->dim[TOPK_SCORES]) {
    case TOPK_RANDOM: return fine_normal(key, fine, i);
    case TOPK_PLATEAU:   /* above it k / 2 of n entries */
        if (rng_below(key, i, (uint64_t)p->dim[TOPK_N] + 1) < p->dim[TOPK_K] / 2) return 0.501f + fabsf(rng_normal(fine, i));
        return rng_bits(fine, i) % 8 ? 0.5f : -fabsf(rng_normal(key, i));
    case TOPK_SPECIAL: return special(key, fine, i, b);
    case TOPK_NEGATIVE: return -0.01f - fabsf(fine_normal(key, fine, i));
    case TOPK_CLOSE: return f32_of_bits(0x3f800000u + rng_bits(key, i) % 4096);
    case TOPK_RISING: return (float)(i / 3) * 0x1p-10f - 100;
    }
    return NAN;
}

static void fill_scores(const struct problem *p, uint32_t set, int64_t b, float *score)
{
    uint64_t key = rng_key(p->seed, set, TOPK_SCORE, (uint64_t)b), fine = rng_key(p->seed, set, FINE, (uint64_t)b);
    int64_t  length = length_of(p, set, b), n = length > 0 ? length : 0;
    for (int64_t i = 0; i < n; i++) score[i] = score_of(p, key, fine, b, (uint32_t)i);
    for (int64_t i = n; i < width(p); i++) score[i] = i % 2 ? INFINITY : 1e30f;
}

static void fill_table(const struct problem *p, uint32_t set, int64_t b, int32_t *page)
{
    uint64_t key = rng_key(p->seed, set, PAGES, 0);
    int64_t  length = length_of(p, set, b), each = width(p) / PAGE, live = length > 0 ? (length + PAGE - 1) / PAGE : 0;
    for (int64_t j = 0; j < each; j++) {
        uint32_t place = rng_permute(key, ALL_PAGES, (uint32_t)(b * each + j));
        page[j] = j < live ? 1 + (int32_t)place : j % 2 ? -2 - (int32_t)j : 0;
    }
}

static void topk_fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t rows, void *host)
{
    for (int64_t i = 0; i < rows; i++) {
        if (t == TOPK_SCORE) fill_scores(p, set, row + i, (float *)host + i * width(p));
        if (t == TOPK_PAGE_TABLE) fill_table(p, set, row + i, (int32_t *)host + i * (width(p) / PAGE));
        if (t == TOPK_LENGTH) ((int32_t *)host)[i] = length_of(p, set, row + i);
    }
}

static int64_t live_of(void *const *t, int64_t b)
{
    int32_t length = ((const int32_t *)t[TOPK_LENGTH])[b];
    return length > 0 ? length : 0;
}

static void topk_reference(const struct problem *p, void *const *t, int64_t item, int64_t n)
{
    int64_t  k = p->dim[TOPK_K], *entry = indexer_memory((size_t)k * sizeof *entry);
    double  *score = indexer_memory((size_t)width(p) * sizeof *score);
    for (int64_t b = item; b < item + n; b++) {
        const float   *from = (const float *)t[TOPK_SCORE] + b * width(p);
        const int32_t *page = (const int32_t *)t[TOPK_PAGE_TABLE] + b * (width(p) / PAGE);
        int32_t       *slot = (int32_t *)t[TOPK_SLOT] + b * k;
        int64_t        length = live_of(t, b);
        for (int64_t i = 0; i < length; i++) score[i] = from[i];
        int64_t chosen = topk_pick(score, length, k, entry);
        for (int64_t i = 0; i < k; i++) slot[i] = i < chosen ? (int32_t)indexer_slot(page, entry[i]) : -1;
    }
    free(score);
    free(entry);
}

/* Scores of the entries that one row of slots names, from the highest down; how many, or -1. */
static int64_t scores_of(const struct problem *p, void *const *t, const int32_t *slots, int64_t b, double *ret, char *ret_why,
                         size_t size)
{
    int64_t            k = p->dim[TOPK_K], *entry = indexer_memory((size_t)k * sizeof *entry);
    const float       *score = (const float *)t[TOPK_SCORE] + b * width(p);
    struct topk_choice choice = {(const int32_t *)t[TOPK_PAGE_TABLE] + b * (width(p) / PAGE), live_of(t, b), slots + b * k, b, k};
    int64_t            n = topk_entries(&choice, entry, ret_why, size);
    for (int64_t i = 0; i < n; i++) {
        ret[i] = score[entry[i]];
        if (ret[i] > -INFINITY) continue;
        snprintf(ret_why, size, "request %lld: entry %lld, slot %lld, is selected, its score is %g", (long long)b,
                 (long long)entry[i], (long long)indexer_slot(choice.page, entry[i]), ret[i]);
        n = -1;
    }
    free(entry);
    if (n > 0) topk_sort(ret, n);
    return n;
}

static const char *topk_verify(const struct problem *p, void *const *got, void *const *ref, char *ret_why, size_t size)
{
    int64_t     k = p->dim[TOPK_K];
    double     *scores = indexer_memory((size_t)(2 * k) * sizeof *scores);
    const char *why = NULL;
    for (int64_t b = 0; b < batches(p) && !why; b++) {
        if (topk_unreached((const int32_t *)ref[TOPK_SLOT] + b * k)) continue;
        int64_t n = scores_of(p, got, got[TOPK_SLOT], b, scores, ret_why, size);
        int64_t n_ref = n < 0 ? -1 : scores_of(p, got, ref[TOPK_SLOT], b, scores + k, ret_why, size);
        why = n_ref < 0 ? ret_why : topk_miscount(b, n, n_ref, ret_why, size);
        if (!why) why = topk_differ(b, scores, scores + k, n, ret_why, size);
    }
    free(scores);
    return why;
}

/* A comparison for each live score. */
static double topk_flop(const struct problem *p, void *const *t)
{
    double n = 0;
    for (int64_t b = 0; b < batches(p); b++) n += (double)live_of(t, b);
    return n;
}

static double topk_bytes(const struct problem *p, void *const *t, uint64_t reads)
{
    double bytes = (double)(batches(p) * slot_bytes(p));
    for (int64_t b = 0; b < batches(p); b++) {
        if (!reads || reads >> TOPK_SCORE & 1) bytes += (double)live_of(t, b) * 4;
        if (!reads || reads >> TOPK_PAGE_TABLE & 1) bytes += (double)((live_of(t, b) + PAGE - 1) / PAGE) * 4;
        if (!reads || reads >> TOPK_LENGTH & 1) bytes += 4;
    }
    return bytes;
}

const struct op op_topk = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "topk",
    .note = "the k highest of each row of scores, as physical slots",
    .dim = {
        [TOPK_BATCH] = {"batch", "requests", 16, 1, 4096, .ideal = 1},
        [TOPK_N] = {"n", "entries", 32768, 0, 1 << 20, .live = true, .ideal = 1},
        [TOPK_MAX_N] = {"max_n", "entries", 32768, 1, 1 << 20, .ideal = 0},
        [TOPK_K] = {"k", "entries", 512, 1, 2048, .ideal = 1},
        [TOPK_SCORES] = {"scores", "kind", TOPK_RANDOM, 0, TOPK_RISING, .label = true, .names = scores_names},
        [TOPK_RAGGED] = {"ragged", "0|1", 0, 0, 1, .label = true},
    },
    .tensor = {
        [TOPK_SCORE] = {"score", "[batch, width]", F32, IN, .rows = batches, .row_bytes = score_bytes},
        [TOPK_PAGE_TABLE] = {"page_table", "[batch, width / 64]", I32, IN, .rows = batches, .row_bytes = table_bytes},
        [TOPK_LENGTH] = {"length", "[batch]", I32, IN, .rows = batches, .row_bytes = length_bytes},
        [TOPK_SLOT] = {"slot", "[batch, k]", I32, OUT, .rows = batches, .row_bytes = slot_bytes},
    },
    .invalid = topk_invalid,
    .fill = topk_fill,
    .items = batches,
    .reference = topk_reference,
    .item_rows = indexer_item_rows,
    .verify = topk_verify,
    .flop = topk_flop,
    .bytes = topk_bytes,
};

/* index_select: indexer and topk in one. What it computes, and how a choice is judged, stands in index_select.h. */
#include "index_select.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "dtype.h"
#include "indexer_formula.h"
#include "indexer_inputs.h"
#include "rng.h"
#include "topk_formula.h"

enum { D = INDEXER_D, HEADS = INDEXER_HEADS, PATTERNS = 4 };

static const char *const data_names[] = {"random", "integer", "plateau", NULL};

static int64_t slot_bytes(const struct problem *p) { return p->dim[INDEX_SELECT_K] * 4; }

/* Whole numbers -most .. most */
static float whole(uint64_t key, uint32_t i, int32_t most)
{
    return (float)((int32_t)rng_below(key, i, 2 * (uint64_t)most + 1) - most);
}

static void fill_whole(uint64_t key, int32_t most, uint16_t *ret)
{
    for (uint32_t i = 0; i < D; i++) ret[i] = bf16_from_finite(whole(key, i, most));
}

/* The key of a slot; on a plateau nearly all slots share a few. */
static uint64_t key_of(const struct problem *p, uint32_t copy, int64_t slot)
{
    uint64_t own = rng_key(p->seed, copy, INDEXER_KEYS, (uint64_t)slot);
    uint32_t draw = rng_bits(own, D);
    if (p->dim[INDEX_SELECT_DATA] != INDEX_SELECT_PLATEAU || draw % 16 == 0) return own;
    return rng_key(p->seed, copy, INDEXER_KEYS, draw >> 8 & (PATTERNS - 1));   /* slots 0 .. 3 are in page 0, never used */
}

static void select_fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t rows, void *host)
{
    bool random = p->dim[INDEX_SELECT_DATA] == INDEX_SELECT_RANDOM;
    if ((t != INDEXER_W || random) && t != INDEXER_Q && t != INDEXER_KEYS) {
        indexer_fill_inputs(p, t, set, row, rows, host);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        uint64_t key = rng_key(p->seed, set, (uint32_t)t, (uint64_t)(row + i));
        if (t == INDEXER_KEYS) key = key_of(p, indexer_copy(p, set), row + i);
        if (t == INDEXER_W)
            for (uint32_t h = 0; h < HEADS; h++) {
                float w = whole(key, h, 3);
                ((float *)host)[i * HEADS + h] = indexer_all_negative(set, row + i) ? -fabsf(w) : w;
            }
        else if (random)
            indexer_fill_bf16(key, D, (uint16_t *)host + i * D);
        else
            fill_whole(key, t == INDEXER_KEYS ? 1 : 2, (uint16_t *)host + i * D);
    }
}

static void select_reference(const struct problem *p, void *const *t, int64_t item, int64_t n)
{
    int64_t k = p->dim[INDEX_SELECT_K], *entry = indexer_memory((size_t)k * sizeof *entry);
    double *score = indexer_memory((size_t)indexer_width(p->dim[INDEXER_MAX_CTX]) * sizeof *score);
    for (int64_t b = item; b < item + n; b++) {
        int32_t *slot = (int32_t *)t[INDEX_SELECT_SLOT] + b * k;
        int64_t  length = indexer_scores(p, t, b, &indexer_bf16, score), chosen = topk_pick(score, length, k, entry);
        for (int64_t i = 0; i < k; i++) slot[i] = i < chosen ? (int32_t)indexer_slot(indexer_live_of(p, t, b).page, entry[i]) : -1;
    }
    free(score);
    free(entry);
}

/* A choice of a request, with true scores. */
struct chosen {
    int64_t n, *entry;     /* [k], ascending */
    double *score;         /* [k] of the same entries */
    double  square[HEADS]; /* sum of (q_h . k)^2 over them */
};

static struct chosen chosen_of(const struct problem *p, void *const *t, const int32_t *slots, int64_t b, char *ret_why, size_t size)
{
    int64_t             k = p->dim[INDEX_SELECT_K];
    struct indexer_live live = indexer_live_of(p, t, b);
    struct topk_choice  choice = {live.page, live.length, slots + b * k, b, k};
    struct chosen       c = {.entry = indexer_memory((size_t)k * 8), .score = indexer_memory((size_t)k * 8)};
    const float        *w = (const float *)t[INDEXER_W] + b * HEADS;
    double              q[HEADS * D], product[HEADS];
    c.n = topk_entries(&choice, c.entry, ret_why, size);
    indexer_bf16.q(t, b, q);
    for (int64_t i = 0; i < c.n; i++) {
        indexer_products(t, &indexer_bf16, q, indexer_slot(live.page, c.entry[i]), product);
        c.score[i] = 0;
        for (int h = 0; h < HEADS; h++) {
            c.score[i] += product[h] > 0 ? w[h] * product[h] : 0;
            c.square[h] += product[h] * product[h];
        }
    }
    return c;
}

static void chosen_free(struct chosen *c)
{
    free(c->entry);
    free(c->score);
}

/* See index_select.h. */
static double rms_error(const float *w, const struct chosen *c)
{
    double sum = 0;
    for (int h = 0; h < HEADS; h++) sum += (double)w[h] * w[h] * c->square[h] / (double)c->n;
    return 0x1p-23 * sqrt((D + HEADS) * sum);
}

/* Nobody too low in, nobody clearly high enough out. */
static const char *judge_random(int64_t b, const struct chosen *got, const struct chosen *ref, double room, char *ret_why,
                                size_t size)
{
    const char format[] = "request %lld: entry %lld is %sselected, its score is %.9g; number %lld is %.9g, error allowed %.2g";
    double border = INFINITY;
    for (int64_t i = 0; i < ref->n; i++) border = fmin(border, ref->score[i]);
    for (int64_t i = 0; i < got->n; i++)
        if (!(got->score[i] >= border - room)) {
            snprintf(ret_why, size, format, (long long)b, (long long)got->entry[i], "", got->score[i], (long long)ref->n, border,
                     room);
            return ret_why;
        }
    for (int64_t i = 0, j = 0; i < ref->n; i++) {
        while (j < got->n && got->entry[j] < ref->entry[i]) j++;
        if ((j < got->n && got->entry[j] == ref->entry[i]) || !(ref->score[i] > border + room)) continue;
        snprintf(ret_why, size, format, (long long)b, (long long)ref->entry[i], "not ", ref->score[i], (long long)ref->n, border,
                 room);
        return ret_why;
    }
    return NULL;
}

static const char *judge(const struct problem *p, void *const *t, int64_t b, struct chosen *got, struct chosen *ref, char *ret_why,
                         size_t size)
{
    if (got->n < 0 || ref->n < 0) return ret_why;
    const char *why = topk_miscount(b, got->n, ref->n, ret_why, size);
    if (why || ref->n == 0) return why;
    if (p->dim[INDEX_SELECT_DATA] == INDEX_SELECT_RANDOM)
        return judge_random(b, got, ref, 4 * rms_error((const float *)t[INDEXER_W] + b * HEADS, ref), ret_why, size);
    topk_sort(got->score, got->n);
    topk_sort(ref->score, ref->n);
    return topk_differ(b, got->score, ref->score, ref->n, ret_why, size);
}

static const char *select_verify(const struct problem *p, void *const *got, void *const *ref, char *ret_why, size_t size)
{
    int64_t     k = p->dim[INDEX_SELECT_K];
    const char *why = NULL;
    for (int64_t b = 0; b < indexer_batches(p) && !why; b++) {
        if (topk_unreached((const int32_t *)ref[INDEX_SELECT_SLOT] + b * k)) continue;
        struct chosen is = chosen_of(p, got, got[INDEX_SELECT_SLOT], b, ret_why, size);
        struct chosen should = is.n < 0 ? is : chosen_of(p, got, ref[INDEX_SELECT_SLOT], b, ret_why, size);
        why = judge(p, got, b, &is, &should, ret_why, size);
        chosen_free(&is);
        if (should.entry != is.entry) chosen_free(&should);
    }
    return why;
}

static double select_bytes(const struct problem *p, void *const *t, uint64_t reads)
{
    return indexer_input_bytes(p, t, reads, D * 2) + (double)(indexer_batches(p) * slot_bytes(p));
}

const struct op op_index_select = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "index_select",
    .note = "paged scoring and selection of the k best in one, bf16 keys",
    .dim = {
        INDEXER_DIMS,
        [INDEX_SELECT_K] = {"k", "entries", 512, 1, 2048, .ideal = 1},
        [INDEX_SELECT_DATA] = {"data", "kind", INDEX_SELECT_RANDOM, 0, INDEX_SELECT_PLATEAU, .label = true, .names = data_names},
    },
    .tensor = {
        INDEXER_INPUTS_BUT_Q_AND_KEYS,
        INDEXER_BF16_INPUTS,
        [INDEX_SELECT_SLOT] = {"slot", "[batch, k]", I32, OUT, .rows = indexer_batches, .row_bytes = slot_bytes},
    },
    .invalid = indexer_refused,
    .fill = select_fill,
    .items = indexer_batches,
    .reference = select_reference,
    .item_rows = indexer_item_rows,
    .verify = select_verify,
    .flop = indexer_flop,
    .bytes = select_bytes,
};

/* The formula of indexer.h in double precision. See indexer_formula.h. */
#include "indexer_formula.h"

#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "indexer_inputs.h"

enum { D = INDEXER_D, HEADS = INDEXER_HEADS, KEYS = 8, TOGETHER = 4 };

typedef double  v8 __attribute__((vector_size(64), aligned(64)));
typedef int64_t mask8 __attribute__((vector_size(64), aligned(64)));

/* Eight keys lie side by side in the lanes, four heads run at once: 8 or more sums that need not wait for each other. */
WIDE static void eight_scores(const double *q, const float *w, const v8 *key, double *ret)
{
    v8 score = {0};
    for (int h = 0; h < HEADS; h += TOGETHER) {
        v8 sum[TOGETHER] = {0};
        for (int d = 0; d < D; d++)
#pragma GCC unroll 4
            for (int i = 0; i < TOGETHER; i++) sum[i] += q[(h + i) * D + d] * key[d];
#pragma GCC unroll 4
        for (int i = 0; i < TOGETHER; i++) score += (v8)((mask8)sum[i] & ~(sum[i] < 0)) * (double)w[h + i];   /* NaN stays NaN */
    }
    memcpy(ret, &score, sizeof score);
}

WIDE static void widen_bf16(const uint16_t *bf16, int64_t n, double *ret)
{
    for (int64_t i = 0; i < n; i++) ret[i] = f32_from_bf16(bf16[i]);
}

static void key_bf16(void *const *t, int64_t slot, double *ret)
{
    widen_bf16((const uint16_t *)t[INDEXER_KEYS] + slot * D, D, ret);
}

static void q_bf16(void *const *t, int64_t b, double *ret)
{
    widen_bf16((const uint16_t *)t[INDEXER_Q] + b * HEADS * D, HEADS * D, ret);
}

const struct indexer_format indexer_bf16 = {key_bf16, q_bf16};

int64_t indexer_scores(const struct problem *p, void *const *t, int64_t b, const struct indexer_format *format, double *ret)
{
    struct indexer_live live = indexer_live_of(p, t, b);
    double              q[HEADS * D], one[D], scores[KEYS];
    v8                  keys[D] = {0};   /* of entries past the end: whatever stood there before */
    format->q(t, b, q);
    for (int64_t e = 0; e < live.length; e += KEYS) {
        int64_t n = live.length - e < KEYS ? live.length - e : KEYS;
        for (int64_t i = 0; i < n; i++) {
            format->key(t, indexer_slot(live.page, e + i), one);
            for (int d = 0; d < D; d++) ((double *)keys)[d * KEYS + i] = one[d];
        }
        eight_scores(q, (const float *)t[INDEXER_W] + b * HEADS, keys, scores);
        memcpy(ret + e, scores, (size_t)n * sizeof *scores);
    }
    return live.length;
}

void indexer_formula(const struct problem *p, void *const *t, int64_t item, int64_t n, const struct indexer_format *format)
{
    int64_t width = indexer_width(p->dim[INDEXER_MAX_CTX]);
    for (int64_t b = item; b < item + n; b++) {
        double *logits = (double *)t[INDEXER_LOGITS] + b * width;
        for (int64_t e = indexer_scores(p, t, b, format, logits); e < width; e++) logits[e] = unspecified();
    }
}

WIDE static double product(const double *q, const double *key)
{
    double part[KEYS] = {0}, sum = 0;   /* sums side by side, for vectors */
    for (int d = 0; d < D; d += KEYS)
        for (int i = 0; i < KEYS; i++) part[i] += q[d + i] * key[d + i];
    for (int i = 0; i < KEYS; i++) sum += part[i];
    return sum;
}

void indexer_products(void *const *t, const struct indexer_format *format, const double *q, int64_t slot, double ret[INDEXER_HEADS])
{
    double key[D];
    format->key(t, slot, key);
    for (int h = 0; h < HEADS; h++) ret[h] = product(q + h * D, key);
}

/* indexer said as plainly as can be, for the host engine: what the planted kernels about growth share. Bounded by the live lengths
 * alone, so a launch costs the same whatever max_ctx is, unless a plug-in adds something that does not. */
#ifndef KBENCH_PLANTED_SCORE_H
#define KBENCH_PLANTED_SCORE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "indexer.h"
#include "kernel.h"

static inline float *logits_of(const struct call *c, int64_t b)
{
    return (float *)((char *)c->t[INDEXER_LOGITS].p + b * c->t[INDEXER_LOGITS].stride);
}

static inline float bf16_get(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float    ret;
    memcpy(&ret, &bits, sizeof ret);
    return ret;
}

/* One request's queries as floats, so that the loop over entries is a plain product. */
static inline void load_queries(const struct call *c, int64_t b, float *ret)
{
    for (int64_t h = 0; h < INDEXER_HEADS; h++) {
        const struct arg *q = &c->t[INDEXER_Q];
        const uint16_t   *row = (const uint16_t *)((const char *)q->p + (b * INDEXER_HEADS + h) * q->stride);
        for (int d = 0; d < INDEXER_D; d++) ret[h * INDEXER_D + d] = bf16_get(row[d]);
    }
}

static inline void score_request(const struct call *c, int64_t b)
{
    float          q[INDEXER_HEADS * INDEXER_D], key[INDEXER_D];
    const float   *w = (const float *)((const char *)c->t[INDEXER_W].p + b * c->t[INDEXER_W].stride);
    const int32_t *page = (const int32_t *)((const char *)c->t[INDEXER_PAGE_TABLE].p + b * c->t[INDEXER_PAGE_TABLE].stride);
    int32_t        length = *(const int32_t *)((const char *)c->t[INDEXER_LENGTH].p + b * c->t[INDEXER_LENGTH].stride);
    load_queries(c, b, q);
    for (int64_t e = 0; e < length; e++) {
        int64_t         slot = (int64_t)page[e / INDEXER_PAGE] * INDEXER_PAGE + e % INDEXER_PAGE;
        const uint16_t *row = (const uint16_t *)((const char *)c->t[INDEXER_KEYS].p + slot * c->t[INDEXER_KEYS].stride);
        double          sum = 0;
        for (int d = 0; d < INDEXER_D; d++) key[d] = bf16_get(row[d]);
        for (int h = 0; h < INDEXER_HEADS; h++) {
            float dot = 0;
            for (int d = 0; d < INDEXER_D; d++) dot += q[h * INDEXER_D + d] * key[d];
            sum += w[h] * fmaxf(dot, 0);
        }
        logits_of(c, b)[e] = (float)sum;
    }
}

static inline int score_all(const struct call *c)
{
    for (int64_t b = 0; b < c->problem->dim[INDEXER_BATCH]; b++) score_request(c, b);
    return 0;
}

/* What no one asked for: a chain over the whole width of every row, as a framework runs it, before the live part is computed. */
static inline void mask_width(const struct call *c)
{
    const struct problem *p = c->problem;
    int64_t               width = indexer_width(p->dim[INDEXER_MAX_CTX]);
    for (int64_t b = 0; b < p->dim[INDEXER_BATCH]; b++) {
        float *row = logits_of(c, b);
        for (int pass = 0; pass < 4; pass++) {
            for (int64_t e = 0; e < width; e++) row[e] = (float)(e + pass);
            for (int64_t e = 0; e < width; e++) row[e] = sqrtf(row[e]) / 3;
            for (int64_t e = 0; e < width; e++) row[e] = fmaxf(row[e], 0);
        }
        for (int64_t e = 0; e < width; e++) row[e] = -INFINITY;
    }
}

#endif

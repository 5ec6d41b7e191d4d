/* The chain of a framework's operators over the whole maximum, for indexer and indexer_fp8: gather, cast, product, relu, weight,
 * sum, scale and mask, whatever the length is. Each is a pass of its own over a chunk of BLOCK pages, as frameworks cut tensors
 * that are too long for memory; a chunk stays in the last cache, so that cost is linear in max_ctx from small maxima on.
 * Includer: host_keys.h of its format before it (so: no include guard).
 */
#include <omp.h>

#include "indexer/host_score.h"

enum { BLOCK = 64 };   /* pages: 4,096 entries, 4.5 MB of intermediate tensors */

/* Intermediate tensors of a chunk. */
struct chain {
    uint16_t bf16[BLOCK * PAGE * D] __attribute__((aligned(64)));        /* [entries][128] gathered */
    float    fp32[BLOCK * PAGE * STRIDE] __attribute__((aligned(64)));   /* [entries][STRIDE], where the product takes floats */
    float    s[BLOCK * PAGE * HEADS] __attribute__((aligned(64)));       /* [entries][64] */
    float    scale[BLOCK * PAGE];                                        /* gathered, where the format has scales */
};

static size_t full_workspace(const struct problem *p, const struct device *device, const int32_t *tune)
{
    (void)p, (void)device, (void)tune;
    return sizeof(struct chain);
}

/* A page of keys, and its scales, to their place in a dense tensor. No page is taken for page 0, as frameworks do. */
static void full_gather(const struct call *c, int32_t page, int64_t j, struct chain *x)
{
    int64_t         stride;
    uint16_t       *to = x->bf16 + j * PAGE * D;
    struct keys     keys = keys_of(c, page > 0 ? page : 0);
    const uint16_t *from = keys_bf16(keys, PAGE, to, &stride);
    for (int64_t e = 0; from != to && e < PAGE; e++) memcpy(to + e * D, (const char *)from + e * stride, D * 2);
    if (keys_scales(keys)) memcpy(x->scale + j * PAGE, keys_scales(keys), PAGE * 4);
}

HOST_CLONES static void full_relu(float *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) s[i] = s[i] < 0 ? 0 : s[i];
}

HOST_CLONES static void full_weight(float *s, const float *w, int64_t entries)
{
    for (int64_t e = 0; e < entries; e++)
        for (int h = 0; h < HEADS; h++) s[e * HEADS + h] *= w[h];
}

HOST_CLONES static void full_sum(const float *s, int64_t entries, float *ret)
{
    for (int64_t e = 0; e < entries; e++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int h = 0; h < HEADS; h++) sum += s[e * HEADS + h];
        ret[e] = sum;
    }
}

/* What one thread does of n pages of a request: every pass is over before the next begins. */
static void full_block(const struct scorer *x, const int32_t *table, int64_t n, const struct call *c, struct chain *t,
                       const struct score_scratch *m, float *logits)
{
#pragma omp for schedule(static)
    for (int64_t j = 0; j < n; j++) full_gather(c, table[j], j, t);
    if (!x->pairs) {
#pragma omp for schedule(static)
        for (int64_t j = 0; j < n; j++) score_widen(t->bf16 + j * PAGE * D, D * 2, PAGE, t->fp32 + j * PAGE * STRIDE);
    }
#pragma omp for schedule(static)
    for (int64_t j = 0; j < n; j++) {
        const float *keys = x->pairs ? (const float *)(t->bf16 + j * PAGE * D) : t->fp32 + j * PAGE * STRIDE;
        x->gemm(PAGE, HEADS, x->pairs ? D / 2 : D, keys, x->pairs ? D / 2 : STRIDE, 1, m->q, HEADS, t->s + j * PAGE * HEADS, HEADS,
                NULL);
    }
#pragma omp for schedule(static)
    for (int64_t j = 0; j < n; j++) full_relu(t->s + j * PAGE * HEADS, PAGE * HEADS);
#pragma omp for schedule(static)
    for (int64_t j = 0; j < n; j++) full_weight(t->s + j * PAGE * HEADS, m->w, PAGE);
#pragma omp for schedule(static)
    for (int64_t j = 0; j < n; j++) full_sum(t->s + j * PAGE * HEADS, PAGE, logits + j * PAGE);
    if (keys_scales(keys_of(c, 0))) {
#pragma omp for schedule(static)
        for (int64_t e = 0; e < n * PAGE; e++) logits[e] *= t->scale[e];
    }
}

static void full_request(const struct scorer *x, const struct call *c, int64_t b, struct chain *t, struct score_scratch *m)
{
    int64_t        width = indexer_width(c->problem->dim[INDEXER_MAX_CTX]), pages = width / PAGE, length = score_length(c, b);
    const int32_t *table = score_table(c, b);
    float         *logits = (float *)((char *)c->t[INDEXER_LOGITS].p + b * c->t[INDEXER_LOGITS].stride);
    score_request(x, c, b, m);
    for (int64_t j = 0; j < pages; j += BLOCK)
        full_block(x, table + j, pages - j < BLOCK ? pages - j : BLOCK, c, t, m, logits + j * PAGE);
#pragma omp for schedule(static)
    for (int64_t e = 0; e < width; e++) logits[e] = e < length ? logits[e] : -INFINITY;
}

static int full_launch(const struct call *c)
{
    struct scorer x;
    int           error = score_begin(c, &x);
    if (error) return error;
#pragma omp parallel num_threads(c->device->sm_count)
    {
        struct score_scratch m;
        if (x.tiles) amx_begin();
        for (int64_t b = 0; b < c->problem->dim[INDEXER_BATCH]; b++) full_request(&x, c, b, c->workspace, &m);
        if (x.tiles) amx_end();
    }
    return 0;
}

/* A kernel's fields, whatever the format. */
#define FULL_FIELDS                                                                                \
    .engine = HOST, .promises = CLEAN, .growth = {{"ctx", 0}, {"max_ctx", 1}},                     \
    .tunable = {{"path", {AUTO}, AUTO, ANY}}, .workspace = full_workspace, .open = paths_open,     \
    .close = paths_close, .launch = full_launch

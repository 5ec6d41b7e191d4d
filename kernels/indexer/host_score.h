/* Scores of one page for all heads, as a matrix product, for indexer, indexer_fp8 and index_select. Includer: host_keys.h of the
 * format before it (so: no include guard).
 *  s[entry, head] = k[entry, :] . q[:, head] with heads side by side in the vector lanes, by the products of attn/host_products.h:
 * bf16 operands are read as pairs, keys where they lie; for fp32 ones they are widened first. Then a score is the sum of a row of
 * s, cut off at 0 and weighted.
 */
#include <math.h>

#include "attn/host_paths.h"

/* STRIDE: of rows of 128 floats, off the power of two that would put all rows into the same few sets of a cache. */
enum { D = INDEXER_D, HEADS = INDEXER_HEADS, PAGE = INDEXER_PAGE, STRIDE = D + 16, QUANTUM = 16 };

/* The product that a launch takes. */
struct scorer {
    gemm_fn *gemm;
    bool     pairs;   /* operands are pairs of bf16 */
    bool     tiles;   /* each thread begins with amx_begin() and ends with amx_end() */
};

/* A thread's memory. */
struct score_scratch {
    float    q[D * HEADS] __attribute__((aligned(64)));       /* [128][64], or pairs [64][64] */
    float    keys[PAGE * STRIDE] __attribute__((aligned(64)));
    float    s[PAGE * HEADS] __attribute__((aligned(64)));
    uint16_t bf16[PAGE * D] __attribute__((aligned(64)));
    float    w[HEADS];
};

static int score_begin(const struct call *c, struct scorer *ret)
{
    enum path path;
    int error = paths_choose(c, &path);
    if (!error) *ret = (struct scorer){mma_gemm(path), path_takes_pairs(path), path == AMX};
    return error;
}

/* length[b], at least 0 */
static inline int64_t score_length(const struct call *c, int64_t b)
{
    int32_t length = *(const int32_t *)((const char *)c->t[INDEXER_LENGTH].p + b * c->t[INDEXER_LENGTH].stride);
    return length > 0 ? length : 0;
}

static inline const int32_t *score_table(const struct call *c, int64_t b)
{
    return (const int32_t *)((const char *)c->t[INDEXER_PAGE_TABLE].p + b * c->t[INDEXER_PAGE_TABLE].stride);
}

HOST_CLONES static void score_turn(const uint16_t *row, int64_t h, bool pairs, float *q)
{
    if (pairs)
        for (int d = 0; d < D / 2; d++) memcpy(q + d * HEADS + h, row + d * 2, 4);
    else
        for (int d = 0; d < D; d++) q[d * HEADS + h] = host_f32(row[d]);
}

/* Queries and weights of request b, heads side by side. */
static void score_request(const struct scorer *x, const struct call *c, int64_t b, struct score_scratch *m)
{
    for (int64_t h = 0; h < HEADS; h++) score_turn(query_bf16(c, b * HEADS + h, m->bf16), h, x->pairs, m->q);
    memcpy(m->w, (const char *)c->t[INDEXER_W].p + b * c->t[INDEXER_W].stride, sizeof m->w);
}

HOST_CLONES static void score_widen(const uint16_t *from, int64_t stride, int64_t entries, float *ret)
{
    for (int64_t e = 0; e < entries; e++) {
        const uint16_t *row = (const uint16_t *)((const char *)from + e * stride);
        for (int d = 0; d < D; d++) ret[e * STRIDE + d] = host_f32(row[d]);
    }
}

/* ret[e] = sum_h w[h] * max(0, s[e][h]); NaN stays NaN */
HOST_CLONES static void score_sum(const float *s, const float *w, const float *scale, int64_t entries, float *ret)
{
    for (int64_t e = 0; e < entries; e++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int h = 0; h < HEADS; h++) {
            float x = s[e * HEADS + h];
            sum += w[h] * (x < 0 ? 0 : x);
        }
        ret[e] = scale ? sum * scale[e] : sum;
    }
}

/* Scores of the first `entries` of a page: ret[entries]. Keys of up to QUANTUM - 1 more are looked at, all within the page. */
static inline void score_page(const struct scorer *x, struct keys keys, int64_t entries, struct score_scratch *m, float *ret)
{
    int64_t         padded = (entries + QUANTUM - 1) / QUANTUM * QUANTUM, stride;
    const uint16_t *row = keys_bf16(keys, padded, m->bf16, &stride);
    if (x->pairs) {
        x->gemm(padded, HEADS, D / 2, (const float *)row, stride / 4, 1, m->q, HEADS, m->s, HEADS, NULL);
    } else {
        score_widen(row, stride, padded, m->keys);
        x->gemm(padded, HEADS, D, m->keys, STRIDE, 1, m->q, HEADS, m->s, HEADS, NULL);
    }
    score_sum(m->s, m->w, keys_scales(keys), entries, ret);
}

/* Pages [from, to) of a request, of which those before its length are live: scores to ret[0 ...]. The next page is asked for while
 * one is computed. */
static inline void score_pages(const struct scorer *x, const struct call *c, int64_t b, int64_t from, int64_t to,
                               struct score_scratch *m, float *ret)
{
    const int32_t *table = score_table(c, b);
    int64_t        length = score_length(c, b), end = (length + PAGE - 1) / PAGE;
    if (to > end) to = end;
    if (from < to) score_request(x, c, b, m);
    for (int64_t j = from; j < to; j++, ret += PAGE) {
        int64_t entries = length - j * PAGE < PAGE ? length - j * PAGE : PAGE;
        if (j + 1 < to)
            for (int64_t e = 0; e < PAGE; e++) keys_prefetch(keys_of(c, table[j + 1]), e);
        score_page(x, keys_of(c, table[j]), entries, m, ret);
    }
}

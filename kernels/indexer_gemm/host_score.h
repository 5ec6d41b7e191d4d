/* indexer_gemm on the CPU: blocks of keys times the packed queries of a request, by the matrix products of attention, then relu,
 * weights and the sum over heads while the block is in cache. Includer: SCORE_BF16, 0 or 1, which twins are read
 * (so: no include guard).
 *  A thread takes pieces of a request. Keys are read where they lie: fp32 rows, or rows of pairs of bf16; they are copied only
 * where a block is short, or where bf16 has to be widened for a processor without bf16 products.
 */
#include <omp.h>

#include "indexer_gemm.h"
#include "kernel.h"
#include "attn/host_paths.h"

enum { HEADS = INDEXER_GEMM_HEADS, D = INDEXER_GEMM_D, ROWS = 64, PIECE = 8 * ROWS, LANES = 16 };

/* A thread's memory; elements of 4 bytes. */
struct scratch {
    float q[D * HEADS];      /* [128][64], or pairs of dims [64][64] */
    float k[ROWS * D];       /* keys, where they can't stay where they lie */
    float dot[ROWS * HEADS];
};

struct score {
    const struct call *call;
    gemm_fn           *gemm;
    bool               pairs;      /* operands are pairs of bf16 */
    int64_t            quantum;    /* rows of a block are padded to a multiple of it */
    int64_t            entries, pieces;
};

static const char *score_request(const struct score *x, int tensor, int64_t b)
{
    const struct arg *t = &x->call->t[tensor];
    return (const char *)t->p + b * t->stride;
}

/* Heads side by side, dim after dim, or pair after pair of them. */
HOST_CLONES static void score_pack_q(const void *from, bool pairs, float *ret)
{
    const float    *q32 = from;
    const uint16_t *q16 = from;
    for (int64_t h = 0; h < HEADS; h++) {
        if (pairs)
            for (int64_t d = 0; d < D / 2; d++) memcpy(ret + d * HEADS + h, q16 + h * D + d * 2, 4);
        else
            for (int64_t d = 0; d < D; d++) ret[d * HEADS + h] = SCORE_BF16 ? host_f32(q16[h * D + d]) : q32[h * D + d];
    }
}

HOST_CLONES static void score_widen(const uint16_t *from, int64_t n, float *ret)
{
    for (int64_t i = 0; i < n; i++) ret[i] = host_f32(from[i]);
}

/* Keys first .. first + n - 1 as the product takes them, `padded` rows. */
static const float *score_keys(const struct score *x, struct scratch *w, int64_t b, int64_t first, int64_t n, int64_t padded)
{
    const int64_t row = x->pairs ? D / 2 : D;
    const char   *from = score_request(x, SCORE_BF16 ? INDEXER_GEMM_K16 : INDEXER_GEMM_K32, b);
    if (SCORE_BF16 && !x->pairs)
        score_widen((const uint16_t *)from + first * D, n * D, w->k);
    else if (n == padded)
        return (const float *)from + first * row;
    else
        memcpy(w->k, from + first * row * 4, (size_t)(n * row * 4));
    memset(w->k + n * row, 0, (size_t)((padded - n) * row * 4));
    return w->k;
}

/* A fixed order of additions: 16 sums side by side, then their sum. */
HOST_CLONES static void score_sum(const float *dot, const float *weight, int64_t n, float *ret)
{
    for (int64_t i = 0; i < n; i++, dot += HEADS) {
        float sum[LANES] = {0}, all = 0;
        for (int h = 0; h < HEADS; h += LANES)
            for (int l = 0; l < LANES; l++) sum[l] += weight[h + l] * (dot[h + l] > 0 ? dot[h + l] : 0);
        for (int l = 0; l < LANES; l++) all += sum[l];
        ret[i] = all;
    }
}

static void score_piece(const struct score *x, struct scratch *w, int64_t b, int64_t first)
{
    const int64_t end = first + PIECE < x->entries ? first + PIECE : x->entries;
    const float  *weight = (const float *)score_request(x, INDEXER_GEMM_W, b);
    float        *logits = (float *)score_request(x, INDEXER_GEMM_LOGITS, b);
    for (; first < end; first += ROWS) {
        int64_t n = end - first < ROWS ? end - first : ROWS, padded = (n + x->quantum - 1) / x->quantum * x->quantum;
        const float *k = score_keys(x, w, b, first, n, padded);
        x->gemm(padded, HEADS, x->pairs ? D / 2 : D, k, x->pairs ? D / 2 : D, 1, w->q, HEADS, w->dot, HEADS, NULL);
        score_sum(w->dot, weight, n, logits + first);
    }
}

static void score_run(const struct score *x, int64_t batch, int32_t threads, bool tiles)
{
    struct scratch *scratch = x->call->workspace;
#pragma omp parallel num_threads(threads)
    {
        struct scratch *w = &scratch[omp_get_thread_num()];
        int64_t         packed = -1;
        if (tiles) amx_begin();
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < batch * x->pieces; i++) {
            int64_t b = i / x->pieces;
            if (b != packed) {
                score_pack_q(score_request(x, SCORE_BF16 ? INDEXER_GEMM_Q16 : INDEXER_GEMM_Q32, b), x->pairs, w->q);
                packed = b;
            }
            score_piece(x, w, b, i % x->pieces * PIECE);
        }
        if (tiles) amx_end();
    }
}

static size_t score_workspace(const struct problem *p, const struct device *device, const int32_t *tune)
{
    (void)p, (void)tune;
    return (size_t)device->sm_count * sizeof(struct scratch);
}

static int score_open(const struct problem *p, const struct device *device, void **state)
{
    (void)p, (void)device;
    return paths_open_for(SCORE_BF16, state);
}

static int score_launch(const struct call *c)
{
    enum path path;
    int error = paths_choose(c, &path);
    if (error) return error;
    struct score x = {
        .call = c, .gemm = mma_gemm(path), .pairs = path_takes_pairs(path), .quantum = path == AMX ? 32 : 8,
        .entries = indexer_gemm_entries(c->problem),
    };
    x.pieces = (x.entries + PIECE - 1) / PIECE;
    score_run(&x, c->problem->dim[INDEXER_GEMM_BATCH], c->device->sm_count, path == AMX);
    return 0;
}

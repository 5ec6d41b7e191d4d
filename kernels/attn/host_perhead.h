/* Attention head by head, as the stock kernels do it, for attn and attn_fp8. Include host_rows.h of the op
 * before it (so: no include guard).
 *
 * One thread takes a (request, head) pair, walks the slots and reads each KV row: logits of 16 rows, their weights, and the
 * weighted sum while the 16 rows are still in the first-level cache. Nothing is kept for the next head, which reads, and converts,
 * the same rows again: 64 heads move 64 times the bytes.
 */
#include <math.h>
#include <omp.h>

#include "host.h"
#include "attn/host_lists.h"

/* A row is read as 256 pairs: the vectors of even and of odd dims then need no shuffling. Queries and sums lie that way too. */
enum { D = ATTN_D, PAIRS = D / 2, ROWS = 16 };

HOST_INLINE float perhead_even(uint32_t pair) { return host_float(pair << 16); }
HOST_INLINE float perhead_odd(uint32_t pair) { return host_float(pair & 0xffff0000u); }

/* s[i] = q.row[i] for 4 rows at a time; row has a multiple of 4. q: even dims, then odd ones */
HOST_CLONES static void perhead_logits(const float *q, const uint32_t *const *row, int32_t rows, float *s)
{
    for (int32_t i = 0; i < rows; i += 4) {
        const uint32_t *a = row[i], *b = row[i + 1], *c = row[i + 2], *d = row[i + 3];
        float sa = 0, sb = 0, sc = 0, sd = 0;
#pragma omp simd reduction(+ : sa, sb, sc, sd)
        for (int j = 0; j < PAIRS; j++) {
            float even = q[j], odd = q[PAIRS + j];
            sa += even * perhead_even(a[j]) + odd * perhead_odd(a[j]);
            sb += even * perhead_even(b[j]) + odd * perhead_odd(b[j]);
            sc += even * perhead_even(c[j]) + odd * perhead_odd(c[j]);
            sd += even * perhead_even(d[j]) + odd * perhead_odd(d[j]);
        }
        s[i] = sa;
        s[i + 1] = sb;
        s[i + 2] = sc;
        s[i + 3] = sd;
    }
}

/* out[:] += p[i] * row[i][:] */
HOST_CLONES static void perhead_add(const float *p, const uint32_t *const *row, int32_t rows, float *out)
{
    for (int32_t i = 0; i < rows; i += 4) {
        const uint32_t *a = row[i], *b = row[i + 1], *c = row[i + 2], *d = row[i + 3];
        float pa = p[i], pb = p[i + 1], pc = p[i + 2], pd = p[i + 3];
#pragma omp simd
        for (int j = 0; j < PAIRS; j++) {
            out[j] += (pa * perhead_even(a[j]) + pb * perhead_even(b[j])) + (pc * perhead_even(c[j]) + pd * perhead_even(d[j]));
            out[PAIRS + j] += (pa * perhead_odd(a[j]) + pb * perhead_odd(b[j])) + (pc * perhead_odd(c[j]) + pd * perhead_odd(d[j]));
        }
    }
}

/* Logits to weights under the running maximum; out and sum are rescaled when it rises. */
HOST_CLONES static void perhead_weigh(float *s, int32_t rows, float *m, float *sum, float *out)
{
    float most = *m;
    for (int32_t i = 0; i < rows; i++) most = s[i] > most ? s[i] : most;
    if (most > *m) {
        float scale = host_exp(*m - most);
        for (int j = 0; j < D; j++) out[j] *= scale;
        *sum *= scale;
        *m = most;
    }
    for (int32_t i = 0; i < ROWS; i++) s[i] = host_exp(s[i] - most);
    for (int32_t i = 0; i < rows; i++) *sum += s[i];
}

static void perhead_head(const struct call *c, int64_t b, int64_t h)
{
    int64_t         head = b * c->problem->dim[ATTN_HEADS] + h;
    const uint16_t *q_bf16 = (const uint16_t *)((const char *)c->t[ATTN_Q].p + head * c->t[ATTN_Q].stride);
    const struct caches caches = caches_of(c);
    struct row      next[ROWS];
    const uint32_t *row[ROWS];
    uint32_t        spare[ROWS][PAIRS];
    float           q[D], out[D] = {0}, m = -INFINITY, sum = 0;
    for (int j = 0; j < D; j++) q[j % 2 * PAIRS + j / 2] = host_f32(q_bf16[j]) * 0.04419417382f;   /* 512^-0.5 */
    struct walk walk = walk_of(c, b);
    for (int32_t rows = rows_next(&caches, &walk, ROWS, next); rows > 0;) {
        int32_t padded = (rows + 3) / 4 * 4;
        float   s[ROWS] = {0};
        for (int32_t i = 0; i < padded; i++) row[i] = i < rows ? row_bf16(next[i], spare[i]) : row[0];
        int32_t following = rows_next(&caches, &walk, ROWS, next);
        for (int32_t i = 0; i < following; i++) row_prefetch(next[i]);
        perhead_logits(q, row, padded, s);
        perhead_weigh(s, rows, &m, &sum, out);
        for (int32_t i = rows; i < padded; i++) s[i] = 0;
        perhead_add(s, row, padded, out);
        rows = following;
    }

    float     sink = ((const float *)c->t[ATTN_SINK].p)[h], all = sum + expf(sink - m);
    uint16_t *ret = (uint16_t *)((char *)c->t[ATTN_OUT].p + head * c->t[ATTN_OUT].stride);
    for (int j = 0; j < D; j++) ret[j] = host_bf16(sum > 0 ? out[j % 2 * PAIRS + j / 2] / all : 0);
    ((float *)((char *)c->t[ATTN_LSE].p + b * c->t[ATTN_LSE].stride))[h] = m + logf(sum);
}

static int perhead_launch(const struct call *c)
{
    int64_t heads = c->problem->dim[ATTN_HEADS], pairs = c->problem->dim[ATTN_BATCH] * heads;
#pragma omp parallel for schedule(dynamic) num_threads(c->device->sm_count)
    for (int64_t i = 0; i < pairs; i++) perhead_head(c, i / heads, i % heads);
    return 0;
}

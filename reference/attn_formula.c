/* The formula of attn.h in double precision, whatever the format of an entry. See attn_formula.h. */
#include "attn_formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn_inputs.h"
#include "dtype.h"

enum { D = ATTN_D };

typedef double v4 __attribute__((vector_size(32), aligned(8)));

/* s[h][0..3] = q[h].kv[0..3] for two heads at a time: eight sums run side by side, so that none waits for its last addition. */
WIDE static void four_logits(const double *q, int64_t n_heads, const double *kv, double *s, int64_t stride)
{
    for (int64_t h = 0; h < n_heads; h += 2) {
        int64_t       next = h + 1 < n_heads ? h + 1 : h;
        const double *a = q + h * D, *b = q + next * D;
        v4            sum[8] = {0};
        for (int d = 0; d < D; d += 4) {
            v4 x = *(const v4 *)(a + d), y = *(const v4 *)(b + d);
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                v4 k = *(const v4 *)(kv + i * D + d);
                sum[i] += x * k;
                sum[4 + i] += y * k;
            }
        }
        for (int i = 0; i < 4; i++) {
            s[h * stride + i] = sum[i][0] + sum[i][1] + sum[i][2] + sum[i][3];
            s[next * stride + i] = sum[4 + i][0] + sum[4 + i][1] + sum[4 + i][2] + sum[4 + i][3];
        }
    }
}

/* out[h] += p[h][0..3] * kv[0..3] */
WIDE static void four_added(const double *p, int64_t stride, int64_t n_heads, const double *kv, double *out)
{
    for (int64_t h = 0; h < n_heads; h++) {
        const double *w = p + h * stride;
        double       *o = out + h * D;
        for (int d = 0; d < D; d++) o[d] += w[0] * kv[d] + w[1] * kv[D + d] + w[2] * kv[2 * D + d] + w[3] * kv[3 * D + d];
    }
}

WIDE void attn_widen_bf16(const uint16_t *bf16, int64_t n, double *ret)
{
    for (int64_t i = 0; i < n; i++) ret[i] = f32_from_bf16(bf16[i]);
}

/* The entries of a request that count, in the order of its lists. */
struct entries {
    int64_t  n, n_window;
    int32_t *slot;
};

static void gather(const struct problem *p, void *const *t, int64_t b, struct entries *e)
{
    e->n = 0;
    for (int window = 1; window >= 0; window--) {
        struct attn_list list = attn_list_of(p, t, window, b);
        for (int32_t i = 0; i < list.length; i++)
            if (list.slot[i] >= 0) e->slot[e->n++] = list.slot[i];
        if (window) e->n_window = e->n;
    }
}

/* Entries i..i+3 as doubles; those past the end are zero and get zero weight. */
static void widen_four(const struct problem *p, void *const *t, attn_widen *widen, const struct entries *e, int64_t i, double *kv)
{
    for (int64_t j = i; j < i + 4; j++, kv += D) {
        if (j < e->n)
            widen(p, t, j < e->n_window, e->slot[j], kv);
        else
            memset(kv, 0, D * sizeof *kv);
    }
}

/* Logits s[0..n) of one head to weights in place; returns the lse. */
static double soften(double *s, int64_t n, double sink)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, s[i]);
    if (n == 0) return -INFINITY;
    double m = fmax(most, sink);
    for (int64_t i = 0; i < n; i++) sum += exp(s[i] - most);
    double scale = 1 / (sum * exp(most - m) + exp(sink - m));
    for (int64_t i = 0; i < n; i++) s[i] = exp(s[i] - m) * scale;
    return most + log(sum);
}

/* One request at a time, all its logits before the first weight: nothing is rescaled, and each entry is widened twice in all. */
void attn_formula(const struct problem *p, void *const *t, int64_t item, int64_t n, attn_widen *widen)
{
    int64_t        H = p->dim[ATTN_HEADS], stride = (p->dim[ATTN_WINDOW] + p->dim[ATTN_TOPK] + 3) / 4 * 4;
    struct entries e = {.slot = attn_memory((size_t)stride * sizeof *e.slot)};
    double        *q = attn_memory((size_t)(H * D) * sizeof *q), *s = attn_memory((size_t)(H * stride) * sizeof *s);
    double        *kv = attn_memory(4 * D * sizeof *kv);
    for (int64_t b = item; b < item + n; b++) {
        double *out = (double *)t[ATTN_OUT] + b * H * D, *lse = (double *)t[ATTN_LSE] + b * H;
        gather(p, t, b, &e);
        attn_widen_bf16((const uint16_t *)t[ATTN_Q] + b * H * D, H * D, q);
        for (int64_t i = 0; i < H * D; i++) q[i] *= 1 / sqrt(D);
        for (int64_t i = 0; i < e.n; i += 4) {
            widen_four(p, t, widen, &e, i, kv);
            four_logits(q, H, kv, s + i, stride);
        }
        for (int64_t h = 0; h < H; h++) {
            lse[h] = soften(s + h * stride, e.n, ((const float *)t[ATTN_SINK])[h]);
            for (int64_t i = e.n; i % 4; i++) s[h * stride + i] = 0;
        }
        memset(out, 0, (size_t)(H * D) * sizeof *out);
        for (int64_t i = 0; i < e.n; i += 4) {
            widen_four(p, t, widen, &e, i, kv);
            four_added(s + i, stride, H, kv, out);
        }
    }
    free(kv);
    free(s);
    free(q);
    free(e.slot);
}

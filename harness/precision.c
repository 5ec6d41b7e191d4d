#include "precision.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "dtype.h"
#include "host.h"

enum { HEADS = PRECISION_HEADS, D = PRECISION_D, KV = PRECISION_KV, WINDOW = PRECISION_WINDOW };

const char *const precision_format_name[FORMATS] = {"bf16 keys", "fp8 keys", "fp8 keys, queries"};

/* The e4m3 value nearest to x, |x| up to 448, ties to even: three bits of mantissa, or steps of 2^-9 below 2^-6. */
HOST_INLINE float nearest_e4m3(float x)
{
    uint32_t bits = bits_of_f32(x);
    float    normal = f32_of_bits((bits + 0x7ffff + (bits >> 20 & 1)) & 0xfff00000u);
    float    small = (x + 24576.0f) - 24576.0f;   /* 1.5 * 2^14: what is left of x are steps of 2^-9 */
    return fabsf(x) < 0x1p-6f ? small : normal;
}

HOST_CLONES static void round_bf16(const float *from, float *ret)
{
    for (int d = 0; d < D; d++) ret[d] = f32_from_bf16(bf16_from_finite(from[d]));
}

HOST_CLONES static void round_fp8(const float *from, float *ret)
{
    float most = 0;
    for (int d = 0; d < D; d++) most = fmaxf(most, fabsf(from[d]));
    float scale = most > 0 ? most / 448 : 1;
    for (int d = 0; d < D; d++) ret[d] = nearest_e4m3(from[d] / scale) * scale;
}

void precision_round(enum precision_format format, const float *from, float *ret)
{
    if (format == FORMAT_BF16) round_bf16(from, ret);
    else round_fp8(from, ret);
}

typedef float   lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t masks __attribute__((vector_size(64)));

HOST_CLONES float precision_score(const struct precision_index *index, const float *key)
{
    lanes dot[HEADS / 16] = {{0}};
    float sum = 0;
    for (int d = 0; d < D; d++)
#pragma GCC unroll 4
        for (int i = 0; i < HEADS / 16; i++) dot[i] += *(const lanes *)&index->q[d][i * 16] * key[d];
#pragma GCC unroll 4
    for (int i = 0; i < HEADS / 16; i++) {
        lanes positive = (lanes)((masks)dot[i] & (dot[i] > 0)), weighted = positive * *(const lanes *)&index->w[i * 16];
        for (int l = 0; l < 16; l++) sum += weighted[l];
    }
    return sum;
}

struct ranked {
    float   score;
    int32_t entry;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

int64_t precision_select(const float *score, int64_t n, int64_t k, int32_t *ret)
{
    struct ranked *rank = must_alloc((size_t)n + 1, sizeof *rank);
    for (int64_t i = 0; i < n; i++) rank[i] = (struct ranked){score[i], (int32_t)i};
    qsort(rank, (size_t)n, sizeof *rank, by_rank);
    k = k < n ? k : n;
    for (int64_t i = 0; i < k; i++) ret[i] = rank[i].entry;
    free(rank);
    return k;
}

double precision_recall(const float *true_score, const int32_t *best, const int32_t *selected, int64_t n)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) found += true_score[selected[i]] >= true_score[best[n - 1]];
    return n ? (double)found / (double)n : 1;
}

HOST_CLONES static double dot_kv(const float *x, const float *y)
{
    double part[16] = {0}, sum = 0;
    for (int d = 0; d < KV; d += 16)
        for (int i = 0; i < 16; i++) part[i] += (double)x[d + i] * (double)y[d + i];
    for (int i = 0; i < 16; i++) sum += part[i];
    return sum;
}

HOST_CLONES static void add_kv(double weight, const float *kv, double *sum)
{
    for (int d = 0; d < KV; d++) sum[d] += weight * (double)kv[d];
}

void precision_attend(const float *q, const float *sink, const float *kv, int64_t n, double *ret)
{
    double *logit = must_alloc((size_t)n + 1, sizeof *logit);
    memset(ret, 0, HEADS * KV * sizeof *ret);
    for (int h = 0; h < HEADS; h++) {
        double most = sink[h], sum;
        for (int64_t i = 0; i < n; i++) {
            logit[i] = dot_kv(q + h * KV, kv + i * KV) / sqrt(KV);
            most = fmax(most, logit[i]);
        }
        sum = exp(sink[h] - most);
        for (int64_t i = 0; i < n; i++) {
            double weight = exp(logit[i] - most);
            sum += weight;
            add_kv(weight, kv + i * KV, ret + h * KV);
        }
        for (int d = 0; d < KV; d++) ret[h * KV + d] /= sum;
    }
    free(logit);
}

double precision_distance(const double *x, const double *from, int64_t n)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        error += (x[i] - from[i]) * (x[i] - from[i]);
        norm += from[i] * from[i];
    }
    return error > 0 ? sqrt(error / norm) : 0;
}

/* A request: true scores and those of each format. */
struct scores {
    int64_t n;
    float  *of[FORMATS + 1];   /* the last: true ones */
};

/* Queries of a format, with the scale of a head in its weight where they are fp8. */
static void round_queries(enum precision_format format, const struct precision_index *from, struct precision_index *ret)
{
    *ret = *from;
    for (int h = 0; format == FORMAT_FP8_Q && h < HEADS; h++) {
        float q[D], rounded[D];
        for (int d = 0; d < D; d++) q[d] = from->q[d][h];
        precision_round(format, q, rounded);
        for (int d = 0; d < D; d++) ret->q[d][h] = rounded[d];
    }
}

static void score_request(const struct precision_problem *p, int64_t b, struct scores *ret)
{
    struct precision_index *index = must_alloc(FORMATS + 1, sizeof *index);
    ret->n = p->ctx / PRECISION_RATIO;
    precision_queries(p, b, &index[FORMATS]);
    for (int f = 0; f <= FORMATS; f++) ret->of[f] = must_alloc((size_t)ret->n + 1, sizeof(float));
    for (int f = 0; f < FORMATS; f++) round_queries((enum precision_format)f, &index[FORMATS], &index[f]);
    for (int64_t i = 0; i < ret->n; i++) {
        float key[D], rounded[D];
        precision_key(p, b, i, key);
        ret->of[FORMATS][i] = precision_score(&index[FORMATS], key);
        for (int f = 0; f < FORMATS; f++) {
            precision_round((enum precision_format)f, key, rounded);
            ret->of[f][i] = precision_score(&index[f], rounded);
        }
    }
    free(index);
}

/* rms of the error over the standard deviation of true scores. */
static double score_error(const float *got, const float *want, int64_t n)
{
    double error = 0, sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        sum += want[i];
        square += (double)want[i] * want[i];
    }
    double spread = square - sum * sum / (double)n;
    return spread > 0 ? sqrt(error / spread) : 0;
}

/* Attention over the window and the selected entries. */
static void attend_selected(const struct precision_problem *p, int64_t b, const int32_t *selected, int64_t n, double *ret)
{
    float *q = must_alloc(HEADS * KV, sizeof *q), *kv = must_alloc((size_t)(WINDOW + n) * KV, sizeof *kv), sink[HEADS];
    precision_attention_queries(p, b, q, sink);
    for (int64_t i = 0; i < WINDOW; i++) precision_kv(p, b, -1 - i, kv + i * KV);
    for (int64_t i = 0; i < n; i++) precision_kv(p, b, selected[i], kv + (WINDOW + i) * KV);
    precision_attend(q, sink, kv, WINDOW + n, ret);
    free(q);
    free(kv);
}

static int by_entry(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* Results of one request; the mean fields hold its values. Sets in order of entry, so that equal sets give equal bits. */
static void run_request(const struct precision_problem *p, int64_t b, struct precision_result ret[FORMATS])
{
    struct scores s;
    score_request(p, b, &s);
    int32_t *best = must_alloc((size_t)p->k * 3 + 1, sizeof *best), *selected = best + p->k, *sorted = selected + p->k;
    double  *want = must_alloc(2 * HEADS * KV, sizeof *want), *got = want + HEADS * KV;
    int64_t  n = precision_select(s.of[FORMATS], s.n, p->k, best);
    memcpy(sorted, best, (size_t)n * sizeof *best);
    qsort(sorted, (size_t)n, sizeof *sorted, by_entry);
    attend_selected(p, b, sorted, n, want);
    for (int f = 0; f < FORMATS; f++) {
        precision_select(s.of[f], s.n, p->k, selected);
        ret[f].recall_mean = precision_recall(s.of[FORMATS], best, selected, n);
        ret[f].score_err = score_error(s.of[f], s.of[FORMATS], s.n);
        qsort(selected, (size_t)n, sizeof *selected, by_entry);
        attend_selected(p, b, selected, n, got);
        ret[f].out_mean = precision_distance(got, want, HEADS * KV);
    }
    for (int f = 0; f <= FORMATS; f++) free(s.of[f]);
    free(best);
    free(want);
}

void precision_run(const struct precision_problem *p, struct precision_result ret[FORMATS])
{
    struct precision_result(*one)[FORMATS] = must_alloc((size_t)p->batch, sizeof *one);
#pragma omp parallel for schedule(dynamic)
    for (int64_t b = 0; b < p->batch; b++) run_request(p, b, one[b]);
    for (int f = 0; f < FORMATS; f++) {
        struct precision_result all = {.recall_worst = 2};
        for (int64_t b = 0; b < p->batch; b++) {
            const struct precision_result *r = &one[b][f];
            all.score_err += r->score_err / (double)p->batch;
            all.recall_mean += r->recall_mean / (double)p->batch;
            all.out_mean += r->out_mean / (double)p->batch;
            all.out_worst = fmax(all.out_worst, r->out_mean);
            if (r->recall_mean < all.recall_worst) all.recall_worst = r->recall_mean, all.worst_request = b;
        }
        ret[f] = all;
    }
    free(one);
}

/* What precision of the indexer's keys costs: bf16 and fp8 keys against true fp32 ones, by what is selected and by what attention
 * makes of it. Runs on the CPU; knows no kernel and no device.
 *
 * Data is made, not recorded. A request has T = ctx / 4 entries with an index key (128) and a KV vector (512) each, 64 index heads
 * and 64 attention heads. Two models, since results depend on how scores crowd at the edge of the selection:
 *
 *   noise   Keys, queries and KV are independent gaussians. No entry stands out, so the 512th and the 513th score lie as close as
 *           they ever will, and what attention weighs has nothing to do with what the index scores: the worst case of both.
 *   text    What is known of such keys: neighbours are alike (entries of a segment of 64 share half of their variance), all keys
 *           share a direction, as they do after a learned norm, and 1 entry in 64 is relevant: it leans, by an amount that is
 *           distributed exponentially, towards a direction that the request's queries share, in the index and in attention alike.
 *           A few entries stand out; the rest of the selection fills up from the crowd.
 *
 * Index keys have the norm 128^0.5, as after their RMS norm; weights of heads are N(0.5, 1), so some are negative; attention
 * logits of entries that are not relevant have a standard deviation of 2, and at the edge of the selection no entry weighs less for
 * it, which overstates what a swap there moves. Real keys may be correlated otherwise, outliers in single dims above all: a
 * rotation spreads those before keys are quantised, which is why none are made here. Take results as an order of magnitude.
 *
 * Formats: bf16; fp8, e4m3 codes with an fp32 scale an entry (its largest magnitude over 448); and fp8 with queries in fp8 too, one
 * scale a head, as it is served. Scores are fp32 products and sums in each case, so that rounding of the operands alone counts.
 */
#ifndef KBENCH_PRECISION_H
#define KBENCH_PRECISION_H

#include <stdint.h>

enum {
    PRECISION_HEADS = 64,    /* of the index, and of attention */
    PRECISION_D = 128,       /* of an index key */
    PRECISION_KV = 512,      /* of a KV vector */
    PRECISION_WINDOW = 128,  /* entries that attention sees besides the selected ones, whatever is selected */
    PRECISION_RATIO = 4,     /* tokens an entry */
};

enum precision_model { MODEL_NOISE, MODEL_TEXT, MODELS };
enum precision_format { FORMAT_BF16, FORMAT_FP8, FORMAT_FP8_Q, FORMATS };

extern const char *const precision_model_name[MODELS], *const precision_format_name[FORMATS];

struct precision_problem {
    enum precision_model model;
    int64_t              batch, ctx, k;  /* k: entries selected */
    uint64_t             seed;
};

/* One format against true keys; over the requests. */
struct precision_result {
    double  score_err;                  /* rms error of a score over the standard deviation of scores; mean */
    double  recall_mean, recall_worst;  /* share of the selected whose true score is among the k best */
    int64_t worst_request;              /* by recall, the first of equals */
    double  out_mean, out_worst;        /* relative L2 of attention's output against that with the true selection */
};

/* Deterministic by the problem, whatever the number of threads. */
void precision_run(const struct precision_problem *, struct precision_result ret[FORMATS]);

/* The pieces. */

/* Index queries [128][64] with heads side by side, and their weights. */
struct precision_index {
    float q[PRECISION_D][PRECISION_HEADS], w[PRECISION_HEADS];
};
void precision_queries(const struct precision_problem *, int64_t b, struct precision_index *ret);
void precision_key(const struct precision_problem *, int64_t b, int64_t entry, float ret[PRECISION_D]);
/* Attention queries [64][512] and sinks; KV of an entry, or of the window where entry is -1 - i. */
void precision_attention_queries(const struct precision_problem *, int64_t b, float *ret_q, float *ret_sink);
void precision_kv(const struct precision_problem *, int64_t b, int64_t entry, float ret[PRECISION_KV]);

/* What a format leaves of 128 values. */
void precision_round(enum precision_format, const float *from, float *ret);

float precision_score(const struct precision_index *, const float *key);

/* The k best of n by score, the lower entry first among equals: entries, best first. Returns how many: k, or n if less. */
int64_t precision_select(const float *score, int64_t n, int64_t k, int32_t *ret);

/* Share of the n selected whose true score is at least the n-th best; best: of the true scores. */
double precision_recall(const float *true_score, const int32_t *best, const int32_t *selected, int64_t n);

/* out[64][512] over n vectors of kv[n][512], with sinks; 512^-0.5 is the scale. */
void precision_attend(const float *q, const float *sink, const float *kv, int64_t n, double *ret);

double precision_distance(const double *x, const double *from, int64_t n);   /* relative L2; 0 where both are 0 */

#endif

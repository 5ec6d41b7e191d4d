/* What precision costs: its pieces on cases known by hand, and that a run says the same however it is run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "precision.h"

enum { D = PRECISION_D, HEADS = PRECISION_HEADS, KV = PRECISION_KV };

/* Over a whole entry: the largest value sets the scale, and each other one is the nearest that the format has. */
static void rounding_is_the_formats(void **state)
{
    (void)state;
    const float most[] = {448, 1, 3.7f, 1e-3f, 2000};
    for (int m = 0; m < 5; m++)
        for (int i = 0; i < 4000; i += D - 1) {
            float x[D], bf16[D], fp8[D];
            x[0] = m % 2 ? -most[m] : most[m];
            for (int d = 1; d < D; d++) x[d] = most[m] * (float)((i + d) % 4001 - 2000) / 2000 * (d % 3 ? 1 : 0x1p-9f);
            precision_round(FORMAT_BF16, x, bf16);
            precision_round(FORMAT_FP8, x, fp8);
            float scale = most[m] / 448;
            for (int d = 0; d < D; d++) {
                assert_true(bf16[d] == f32_from_bf16(bf16_from_f64(x[d])));
                assert_true(fp8[d] == (float)f64_from_e4m3(e4m3_from_f64(x[d] / scale)) * scale);
            }
        }
    float zero[D] = {0}, got[D];
    precision_round(FORMAT_FP8, zero, got);
    assert_memory_equal(zero, got, sizeof got);
}

static void a_score_by_hand(void **state)
{
    (void)state;
    static struct precision_index index;
    float key[D] = {[0] = 1, [5] = 2};
    for (int h = 0; h < HEADS; h++) index.w[h] = 100;
    index.q[0][0] = 1, index.q[5][0] = 1, index.w[0] = 2;        /* 2 * 3 */
    index.q[0][1] = -1;                                          /* cut off by relu */
    index.q[5][63] = 4, index.w[63] = -0.5f;                     /* -0.5 * 8 */
    assert_true(precision_score(&index, key) == 2);
}

static void selection_and_recall_by_hand(void **state)
{
    (void)state;
    const float true_score[] = {9, 1, 8, 7, 6, 5}, rounded[] = {9, 1, 8, 6, 7, 5};
    int32_t     best[6], selected[6];
    assert_int_equal(precision_select(true_score, 6, 3, best), 3);
    assert_true(best[0] == 0 && best[1] == 2 && best[2] == 3);
    precision_select(rounded, 6, 3, selected);
    assert_true(selected[0] == 0 && selected[1] == 2 && selected[2] == 4);
    assert_true(precision_recall(true_score, best, selected, 3) == 2 / 3.0);
    precision_select(rounded, 6, 4, selected);                   /* the same four in another order */
    precision_select(true_score, 6, 4, best);
    assert_true(precision_recall(true_score, best, selected, 4) == 1);
    assert_int_equal(precision_select(true_score, 6, 100, best), 6);

    const float equal[] = {4, 5, 4, 4};                          /* of equal scores any will do, and the lower entry comes first */
    precision_select(equal, 4, 2, best);
    assert_true(best[0] == 1 && best[1] == 0);
    const int32_t other[] = {1, 3};
    assert_true(precision_recall(equal, best, other, 2) == 1);
}

/* Without queries all entries weigh the same: the output is their mean, and what one entry moves is known. */
static void attention_by_hand(void **state)
{
    (void)state;
    float  *q = calloc(HEADS * KV, sizeof *q), *kv = calloc(2 * KV, sizeof *kv), sink[HEADS];
    double *two = calloc(HEADS * KV, sizeof *two), *one = calloc(HEADS * KV, sizeof *one);
    for (int h = 0; h < HEADS; h++) sink[h] = -INFINITY;
    kv[0] = 1, kv[KV + 1] = 1;
    precision_attend(q, sink, kv, 2, two);
    precision_attend(q, sink, kv, 1, one);
    assert_true(two[0] == 0.5 && two[1] == 0.5 && two[2] == 0 && two[63 * KV + 1] == 0.5);
    assert_true(one[0] == 1 && one[1] == 0);
    assert_true(fabs(precision_distance(two, one, HEADS * KV) - sqrt(0.5)) < 1e-15);
    assert_true(precision_distance(two, two, HEADS * KV) == 0);
    sink[7] = 0;                                                 /* a sink weighs like an entry with this logit, and has no value */
    precision_attend(q, sink, kv, 2, two);
    assert_true(fabs(two[7 * KV] - 1 / 3.0) < 1e-15 && two[8 * KV] == 0.5);
    q[0] = 2 * sqrtf(KV) * logf(2), sink[0] = -INFINITY;         /* head 0: logits 2 ln 2 and 0, weights 4 : 1 */
    precision_attend(q, sink, kv, 2, two);
    assert_true(fabs(two[0] - 0.8) < 1e-7 && fabs(two[1] - 0.2) < 1e-7);
    free(q), free(kv), free(two), free(one);
}

/* Norms of keys; a key is the same whenever it is made; neighbours of a segment are alike in the text alone. */
static void data_is_as_said(void **state)
{
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        struct precision_problem p = {(enum precision_model)m, 1, 1 << 16, 512, 3};
        double alike = 0, apart = 0;
        for (int64_t i = 0; i < 4000; i++) {
            float  key[D], next[D], other[D];
            double square = 0;
            precision_key(&p, 0, i, key);
            precision_key(&p, 0, i ^ 1, next);
            precision_key(&p, 0, i + 8000, other);
            for (int d = 0; d < D; d++) square += key[d] * key[d], alike += key[d] * next[d], apart += key[d] * other[d];
            assert_true(fabs(square - D) < 1e-2);
        }
        alike /= 4000 * D, apart /= 4000 * D;
        if (m == MODEL_NOISE) assert_true(fabs(alike) < 0.01 && fabs(apart) < 0.01);
        else assert_true(alike > apart + 0.3 && apart > 0.05 && apart < 0.4);
    }
}

static void runs_repeat(void **state)
{
    (void)state;
    struct precision_problem p = {MODEL_TEXT, 3, 6000, 100, 5}, other = p;
    struct precision_result  a[FORMATS], b[FORMATS];
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    precision_run(&p, a);
    omp_set_num_threads(3);
    precision_run(&p, b);
    assert_memory_equal(a, b, sizeof a);
    other.seed = 6;
    precision_run(&other, b);
    assert_memory_not_equal(a, b, sizeof a);
    omp_set_num_threads(threads);
}

/* More bits cost less; what fits into the selection costs nothing. */
static void results_are_sane(void **state)
{
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        struct precision_problem p = {(enum precision_model)m, 2, 16384, 128, 1};
        struct precision_result  r[FORMATS];
        precision_run(&p, r);
        for (int f = 0; f < FORMATS; f++)
            assert_true(r[f].recall_worst > 0.8 && r[f].recall_worst <= r[f].recall_mean && r[f].recall_mean <= 1 &&
                        r[f].out_mean <= r[f].out_worst && r[f].out_worst < 1);
        assert_true(r[FORMAT_BF16].recall_mean > r[FORMAT_FP8].recall_mean && r[FORMAT_FP8].recall_mean < 1);
        assert_true(r[FORMAT_BF16].score_err < 0.2 * r[FORMAT_FP8].score_err);
        assert_true(r[FORMAT_FP8].score_err < r[FORMAT_FP8_Q].score_err);
        assert_true(r[FORMAT_BF16].score_err > 3e-4 && r[FORMAT_BF16].score_err < 5e-3);
        p.ctx = 4 * 100;
        precision_run(&p, r);
        for (int f = 0; f < FORMATS; f++) assert_true(r[f].recall_worst == 1 && r[f].out_worst == 0 && r[f].score_err > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_is_the_formats), cmocka_unit_test(a_score_by_hand),
        cmocka_unit_test(selection_and_recall_by_hand), cmocka_unit_test(attention_by_hand), cmocka_unit_test(data_is_as_said),
        cmocka_unit_test(runs_repeat), cmocka_unit_test(results_are_sane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

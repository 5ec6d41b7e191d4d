/* The op indexer_gemm: twins agree, the reference is the formula; and its host kernels on every path of this processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "bind.h"
#include "indexer_gemm.h"
#include "registry.h"

extern const struct op op_indexer_gemm;
extern const struct kernel kernel_indexer_gemm_host_fp32, kernel_indexer_gemm_host_bf16;

enum { HEADS = INDEXER_GEMM_HEADS, D = INDEXER_GEMM_D };

static struct problem problem(int64_t batch, int64_t ctx)
{
    return (struct problem){&op_indexer_gemm, {batch, ctx}, 7};
}

static void layout_is_the_headers(void **state)
{
    (void)state;
    assert_true(layout_hash(&op_indexer_gemm) == indexer_gemm_layout);
}

/* bf16 holds exactly what fp32 holds, and values are neither constant nor the same in the next row, request or set. */
static void twins_hold_the_same(void **state)
{
    (void)state;
    struct problem p = problem(3, 4 * 37 + 3);
    struct bound   b = bind_problem(&p, 2, 0), other = bind_problem(&p, 3, 0);
    const int      twins[][3] = {{INDEXER_GEMM_Q32, INDEXER_GEMM_Q16, 3 * HEADS * D},
                                 {INDEXER_GEMM_K32, INDEXER_GEMM_K16, 3 * 37 * D}};
    for (int i = 0; i < 2; i++) {
        const float    *wide = b.dense[twins[i][0]], *next = other.dense[twins[i][0]];
        const uint16_t *narrow = b.dense[twins[i][1]];
        int             same = 0, same_set = 0;
        for (int e = 0; e < twins[i][2]; e++) {
            assert_true(wide[e] == f32_from_bf16(narrow[e]) && fabsf(wide[e]) < 4);
            same += e >= D && wide[e] == wide[e - D];
            same_set += wide[e] == next[e];
        }
        assert_in_range(same, 0, twins[i][2] / 20);
        assert_in_range(same_set, 0, twins[i][2] / 20);
    }
    bind_free(&b);
    bind_free(&other);
}

/* Any row alone gives the same bytes as the whole. */
static void fill_is_pure(void **state)
{
    (void)state;
    struct problem p = problem(4, 100);
    for (int t = 0; t < INDEXER_GEMM_LOGITS; t++) {
        int64_t bytes = op_indexer_gemm.tensor[t].row_bytes(&p);
        char   *whole = calloc(4, (size_t)bytes), *one = calloc(1, (size_t)bytes);
        op_indexer_gemm.fill(&p, t, 5, 0, 4, whole);
        for (int64_t r = 0; r < 4; r++) {
            op_indexer_gemm.fill(&p, t, 5, r, 1, one);
            assert_memory_equal(one, whole + r * bytes, (size_t)bytes);
        }
        free(one);
        free(whole);
    }
}

/* Straight from the formula, from the fp32 twins. */
static void reference_equals_naive(void **state)
{
    (void)state;
    struct problem p = problem(3, 4 * 21 + 1);
    struct bound   b = bind_problem(&p, 1, 0);
    const float   *q = b.dense[INDEXER_GEMM_Q32], *k = b.dense[INDEXER_GEMM_K32], *w = b.dense[INDEXER_GEMM_W];
    const double  *got = b.dense[INDEXER_GEMM_LOGITS];
    int            negative = 0;
    for (int64_t r = 0; r < 3 * 21; r++) {
        long double sum = 0;
        for (int64_t h = 0; h < HEADS; h++) {
            long double dot = 0;
            for (int d = 0; d < D; d++) dot += (long double)q[(r / 21 * HEADS + h) * D + d] * k[r * D + d];
            if (dot > 0) sum += w[r / 21 * HEADS + h] * dot;
        }
        negative += sum < 0;
        assert_true(fabsl(got[r] - sum) <= 1e-12L);
    }
    assert_in_range(negative, 5, 58);   /* scores of either sign */
    bind_free(&b);
}

/* By hand: head 0 scores 3, head 1 is cut off by relu, head 2 weighs in negatively; all others are 0. */
static void a_score_by_hand(void **state)
{
    (void)state;
    struct problem p = problem(1, 4);
    struct bound   b = bind_problem(&p, 0, 0);
    float         *w = b.dense[INDEXER_GEMM_W];
    uint16_t      *q = b.dense[INDEXER_GEMM_Q16], *k = b.dense[INDEXER_GEMM_K16];
    memset(q, 0, HEADS * D * 2);
    memset(k, 0, D * 2);
    k[0] = bf16_from_f32(1), k[5] = bf16_from_f32(2);
    q[0] = bf16_from_f32(1), q[5] = bf16_from_f32(1);
    q[D] = bf16_from_f32(-1);
    q[2 * D + 5] = bf16_from_f32(4);
    for (int h = 0; h < HEADS; h++) w[h] = 100;
    w[0] = 2, w[1] = 1000, w[2] = -0.5f;
    op_indexer_gemm.reference(&p, b.dense, 0, 1);
    assert_true(*(double *)b.dense[INDEXER_GEMM_LOGITS] == 2 * 3 - 0.5 * 8);
    bind_free(&b);
}

static void items_are_requests(void **state)
{
    (void)state;
    struct problem p = problem(5, 60);
    struct bound   b = bind_problem(&p, 1, 0);
    double        *alone = bind_memory(5 * 15 * 8, 0xff);
    void          *t[MAX_TENSORS];
    memcpy(t, b.dense, sizeof t);
    t[INDEXER_GEMM_LOGITS] = alone;
    assert_int_equal(op_indexer_gemm.items(&p), 5);
    for (int64_t item = 4; item >= 0; item--) {
        int64_t row, rows;
        op_indexer_gemm.item_rows(&p, INDEXER_GEMM_LOGITS, item, &row, &rows);
        assert_true(row == item && rows == 1 && isnan(alone[row * 15]));
        op_indexer_gemm.reference(&p, t, item, 1);
    }
    assert_memory_equal(alone, b.dense[INDEXER_GEMM_LOGITS], 5 * 15 * 8);
    free(alone);
    bind_free(&b);
}

/* Counted by hand for 3 requests of 25 entries. */
static void cost_is_counted(void **state)
{
    (void)state;
    struct problem p = problem(3, 103);
    double logits = 3 * 25 * 4, w = 3 * 64 * 4;
    assert_true(op_indexer_gemm.flop(&p, NULL) == 2.0 * 3 * 25 * 64 * 128);
    assert_true(op_indexer_gemm.bytes(&p, NULL, INDEXER_GEMM_READS_BF16) == logits + w + 3 * (64 + 25) * 256.0);
    assert_true(op_indexer_gemm.bytes(&p, NULL, INDEXER_GEMM_READS_F32) == logits + w + 3 * (64 + 25) * 512.0);
    assert_true(op_indexer_gemm.bytes(&p, NULL, 0) == op_indexer_gemm.bytes(&p, NULL, INDEXER_GEMM_READS_BF16));
}

/* NaN into what a kernel says that it does not read, as the check does. */
static void poison_unread(struct bound *b, const struct kernel *k)
{
    bind_spread(b);
    for (int t = 0; t < INDEXER_GEMM_LOGITS; t++)
        if (!(k->reads >> t & 1)) memset(b->arg[t].p, 0xff, (size_t)(b->p.op->tensor[t].rows(&b->p) * b->arg[t].stride));
}

/* Every path of both kernels that this processor has; how many ran. */
static int check_paths(struct problem p, uint32_t set, int64_t pad)
{
    const struct kernel *kernels[] = {&kernel_indexer_gemm_host_fp32, &kernel_indexer_gemm_host_bf16};
    struct bound b = bind_problem(&p, set, pad);
    int          ran = 0;
    for (int i = 0; i < 2 * 6 * 3; i++) {
        const struct kernel *k = kernels[i % 2];
        const int32_t tune[MAX_TUNABLES] = {1 + i / 2 % 6}, threads[] = {2, 1, 7};
        struct device device = {.sm_count = threads[i / 12], .l2_bytes = 32 << 20};
        poison_unread(&b, k);
        int code = bind_launch(&b, k, &device, tune);
        if (code == ENOTSUP && tune[0] > 2) continue;
        if (code) fail_msg("%s path=%d: code %d", k->name, tune[0], code);
        if (!(bind_error(&b, INDEXER_GEMM_LOGITS) < INFINITY)) fail_msg("%s path=%d: beyond the tolerance", k->name, tune[0]);
        ran++;
    }
    bind_free(&b);
    return ran;
}

/* Entries around the blocks of 8, 64 and 512, rows with gaps, and rows so short that they are dense. */
static void host_kernels_are_right(void **state)
{
    (void)state;
    const int64_t entries[] = {1, 3, 7, 8, 9, 63, 64, 65, 511, 512, 513, 1100};
    for (int i = 0; i < 12; i++)
        assert_true(check_paths(problem(1 + i % 3, entries[i] * 4 + i % 4), (uint32_t)i, i % 2 * 48) >= 12);
}

/* bf16 products are exact in fp32: what path and how many threads must not show beyond the order of additions, and not at all where
 * the path is the same. */
static void threads_do_not_show(void **state)
{
    (void)state;
    struct problem p = problem(3, 3000);
    const struct kernel *k = &kernel_indexer_gemm_host_bf16;
    struct bound a = bind_problem(&p, 0, 0), b = bind_problem(&p, 0, 0);
    const int32_t tune[MAX_TUNABLES] = {1};
    struct device one = {.sm_count = 1}, many = {.sm_count = 5};
    assert_int_equal(bind_launch(&a, k, &one, tune), 0);
    assert_int_equal(bind_launch(&b, k, &many, tune), 0);
    assert_memory_equal(a.arg[INDEXER_GEMM_LOGITS].p, b.arg[INDEXER_GEMM_LOGITS].p, 3 * 750 * 4);
    bind_free(&a);
    bind_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_the_headers), cmocka_unit_test(twins_hold_the_same), cmocka_unit_test(fill_is_pure),
        cmocka_unit_test(reference_equals_naive), cmocka_unit_test(a_score_by_hand), cmocka_unit_test(items_are_requests),
        cmocka_unit_test(cost_is_counted), cmocka_unit_test(host_kernels_are_right), cmocka_unit_test(threads_do_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

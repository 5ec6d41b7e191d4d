/* The op hc_pre: twins agree, the reference is the formula; and its host kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bind.h"
#include "hc_pre.h"
#include "registry.h"

extern const struct op op_hc_pre;
extern const struct kernel kernel_hc_pre_host_fp32, kernel_hc_pre_host_bf16;

enum { K = HC_PRE_K, N = HC_PRE_N };

static struct problem problem(int64_t batch)
{
    return (struct problem){&op_hc_pre, {batch}, 7};
}

static void layout_is_the_headers(void **state)
{
    (void)state;
    assert_true(layout_hash(&op_hc_pre) == hc_pre_layout);
}

/* bf16 holds exactly what fp32 holds; another set has other weights too, as another layer has. */
static void twins_hold_the_same(void **state)
{
    (void)state;
    struct problem p = problem(3);
    struct bound   b = bind_problem(&p, 2, 0), other = bind_problem(&p, 3, 0);
    const int      twins[][3] = {{HC_PRE_X32, HC_PRE_X16, 3}, {HC_PRE_W32, HC_PRE_W16, N}};
    for (int i = 0; i < 2; i++) {
        const float    *wide = b.dense[twins[i][0]], *next = other.dense[twins[i][0]];
        const uint16_t *narrow = b.dense[twins[i][1]];
        int             same_row = 0, same_set = 0;
        for (int e = 0; e < twins[i][2] * K; e++) {
            assert_true(wide[e] == f32_from_bf16(narrow[e]));
            same_row += e >= K && wide[e] == wide[e - K];
            same_set += wide[e] == next[e];
        }
        assert_in_range(same_row, 0, twins[i][2] * K / 20);
        assert_in_range(same_set, 0, twins[i][2] * K / 20);
    }
    bind_free(&b);
    bind_free(&other);
}

static void fill_is_pure(void **state)
{
    (void)state;
    struct problem p = problem(4);
    for (int t = 0; t < HC_PRE_MIX; t++) {
        int64_t rows = op_hc_pre.tensor[t].rows(&p), bytes = op_hc_pre.tensor[t].row_bytes(&p);
        char   *whole = calloc((size_t)rows, (size_t)bytes), *one = calloc(1, (size_t)bytes);
        op_hc_pre.fill(&p, t, 5, 0, rows, whole);
        for (int64_t r = 0; r < rows; r++) {
            op_hc_pre.fill(&p, t, 5, r, 1, one);
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
    struct problem p = problem(3);
    struct bound   b = bind_problem(&p, 1, 0);
    const float   *x = b.dense[HC_PRE_X32], *w = b.dense[HC_PRE_W32];
    for (int r = 0; r < 3; r++) {
        long double square = 0;
        for (int n = 0; n < N; n++) {
            long double sum = 0;
            for (int k = 0; k < K; k++) sum += (long double)x[r * K + k] * w[n * K + k];
            assert_true(fabsl(((double *)b.dense[HC_PRE_MIX])[r * N + n] - sum) <= 1e-11L);
        }
        for (int k = 0; k < K; k++) square += (long double)x[r * K + k] * x[r * K + k];
        assert_true(fabsl(((double *)b.dense[HC_PRE_SQSUM])[r] - square) <= 1e-8L);
    }
    bind_free(&b);
}

/* By hand: one element of x at each end of the row. */
static void a_map_by_hand(void **state)
{
    (void)state;
    struct problem p = problem(1);
    struct bound   b = bind_problem(&p, 0, 0);
    uint16_t      *x = b.dense[HC_PRE_X16], *w = b.dense[HC_PRE_W16];
    memset(x, 0, K * 2);
    x[0] = bf16_from_f32(2), x[K - 1] = bf16_from_f32(-3);
    for (int n = 0; n < N; n++) w[n * K] = bf16_from_f32((float)n), w[n * K + K - 1] = bf16_from_f32(0.5f);
    op_hc_pre.reference(&p, b.dense, 0, 1);
    for (int n = 0; n < N; n++) assert_true(((double *)b.dense[HC_PRE_MIX])[n] == 2 * n - 1.5);
    assert_true(*(double *)b.dense[HC_PRE_SQSUM] == 13);
    bind_free(&b);
}

static void items_are_tokens(void **state)
{
    (void)state;
    struct problem p = problem(3);
    struct bound   b = bind_problem(&p, 1, 0);
    double        *mix = bind_memory(3 * N * 8, 0xff), *square = bind_memory(3 * 8, 0xff);
    void          *t[MAX_TENSORS];
    memcpy(t, b.dense, sizeof t);
    t[HC_PRE_MIX] = mix;
    t[HC_PRE_SQSUM] = square;
    assert_int_equal(op_hc_pre.items(&p), 3);
    for (int64_t item = 2; item >= 0; item--) {
        int64_t row, rows;
        op_hc_pre.item_rows(&p, HC_PRE_SQSUM, item, &row, &rows);
        assert_true(row == item && rows == 1 && isnan(mix[row * N]) && isnan(square[row]));
        op_hc_pre.reference(&p, t, item, 1);
    }
    assert_memory_equal(mix, b.dense[HC_PRE_MIX], 3 * N * 8);
    assert_memory_equal(square, b.dense[HC_PRE_SQSUM], 3 * 8);
    free(mix);
    free(square);
    bind_free(&b);
}

static void cost_is_counted(void **state)
{
    (void)state;
    struct problem p = problem(5);
    double outputs = 5 * 25 * 4;
    assert_true(op_hc_pre.flop(&p, NULL) == 2.0 * 5 * 25 * 16384);
    assert_true(op_hc_pre.bytes(&p, NULL, HC_PRE_READS_BF16) == outputs + (5 + 24) * 32768.0);
    assert_true(op_hc_pre.bytes(&p, NULL, HC_PRE_READS_F32) == outputs + (5 + 24) * 65536.0);
    assert_true(op_hc_pre.bytes(&p, NULL, 0) == op_hc_pre.bytes(&p, NULL, HC_PRE_READS_BF16));
}

/* NaN into what the kernel says that it does not read; any number of threads gives the same bits. */
static void host_kernels_are_right(void **state)
{
    (void)state;
    const struct kernel *kernels[] = {&kernel_hc_pre_host_fp32, &kernel_hc_pre_host_bf16};
    const int64_t        batches[] = {1, 2, 3, 8, 17};
    const int32_t        tune[MAX_TUNABLES] = {0};
    for (int i = 0; i < 2 * 5; i++) {
        struct problem p = problem(batches[i / 2]);
        struct bound   b = bind_problem(&p, (uint32_t)i, i % 4 * 16);
        const struct kernel *k = kernels[i % 2];
        for (int t = 0; t < HC_PRE_MIX; t++)
            if (!(k->reads >> t & 1)) memset(b.arg[t].p, 0xff, (size_t)(op_hc_pre.tensor[t].rows(&p) * b.arg[t].stride));
        float first[24], got[24];
        for (int32_t threads = 1; threads <= 40; threads += 13) {
            struct device device = {.sm_count = threads};
            assert_int_equal(bind_launch(&b, k, &device, tune), 0);
            if (!(bind_error(&b, HC_PRE_MIX) < INFINITY)) fail_msg("%s: mix is beyond the tolerance", k->name);
            if (!(bind_error(&b, HC_PRE_SQSUM) < INFINITY)) fail_msg("%s: sqsum is beyond the tolerance", k->name);
            memcpy(threads == 1 ? first : got, b.arg[HC_PRE_MIX].p, sizeof first);
            if (threads > 1) assert_memory_equal(first, got, sizeof first);
        }
        bind_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_the_headers), cmocka_unit_test(twins_hold_the_same), cmocka_unit_test(fill_is_pure),
        cmocka_unit_test(reference_equals_naive), cmocka_unit_test(a_map_by_hand), cmocka_unit_test(items_are_tokens),
        cmocka_unit_test(cost_is_counted), cmocka_unit_test(host_kernels_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

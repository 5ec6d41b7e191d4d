/* Comparison of outputs: what must never pass does not, and the words say where. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compare.h"

enum { ROWS = 6, COLUMNS = 8 };

static int64_t rows(const struct problem *p) { return p->dim[0] * p->dim[1]; }
static int64_t row_bytes(const struct problem *p) { return p->dim[2] * (int64_t)sizeof(float); }

/* out[batch, heads, width] in fp32, 1e-3 a row. */
static const struct op op = {
    .name = "toy",
    .dim = {{.name = "batch"}, {.name = "heads"}, {.name = "width"}},
    .tensor = {{.name = "out", .shape = "[batch, heads, width]", .dtype = F32, .role = OUT, .tolerance = {1e-3, 0}, .rows = rows,
        .row_bytes = row_bytes}},
};
static const struct problem problem = {.op = &op, .dim = {2, 3, COLUMNS}};

struct data {
    float   got[ROWS][COLUMNS];
    double  ref[ROWS * COLUMNS];
    uint8_t checked[ROWS];
};

static struct data equal_data(void)
{
    struct data d;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            d.ref[r * COLUMNS + c] = 1 + r * 0.25 + c;
            d.got[r][c] = (float)d.ref[r * COLUMNS + c];
        }
    memset(d.checked, 1, sizeof d.checked);
    return d;
}

static struct worst compare_as(const struct data *d, bool clean)
{
    return compare_rows(&problem, 0, d->got, sizeof d->got[0], 0x7b, clean, d->ref, d->checked);
}

static struct worst compare(const struct data *d)
{
    return compare_as(d, false);
}

static void equal_passes(void **state)
{
    (void)state;
    struct data d = equal_data();
    struct worst w = compare(&d);
    assert_true(w.excess == 0);
    assert_int_equal(w.failed_rows, 0);
    assert_int_equal(w.rows, ROWS);
}

static void nan_and_inf_never_pass(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        struct data d = equal_data();
        d.got[4][5] = bad[i];
        struct worst w = compare(&d);
        assert_false(w.excess <= 1);
        assert_true(w.nan);
        assert_int_equal(w.row, 4);
        assert_int_equal(w.column, 5);
    }
    struct data d = equal_data();   /* a number where the reference has -inf fails too; -inf there passes */
    d.ref[0] = -INFINITY;
    assert_false(compare(&d).excess <= 1);
    d.got[0][0] = -INFINITY;
    assert_true(compare(&d).excess <= 1);
}

/* Elements that the op leaves open hold anything, but -inf where the kernel promises that; an honest NaN is not open. */
static void open_elements(void **state)
{
    (void)state;
    const float any[] = {NAN, INFINITY, -INFINITY, 1e30f, 0};
    assert_true(isnan(unspecified()) && is_unspecified(unspecified()));
    assert_false(is_unspecified(NAN) || is_unspecified(-NAN) || is_unspecified(0));
    for (int i = 0; i < 5; i++) {
        struct data d = equal_data();
        d.ref[2 * COLUMNS + 1] = unspecified();
        d.got[2][1] = any[i];
        assert_true(compare(&d).excess == 0);
        struct worst w = compare_as(&d, true);
        assert_true(i == 2 ? w.excess == 0 : w.excess == INFINITY);
        if (i == 2) continue;
        assert_int_equal(w.row, 2);
        assert_int_equal(w.column, 1);
        assert_true(w.want == -INFINITY);
    }
    struct data d = equal_data();   /* the others are held to their tolerance all the same */
    d.ref[0] = unspecified();
    d.got[0][1] += 1;
    assert_false(compare(&d).excess <= 1);
    d = equal_data();
    d.ref[0] = NAN, d.got[0][0] = 1;
    assert_false(compare(&d).excess <= 1);
    for (int c = 0; c < COLUMNS; c++) d.ref[c] = unspecified(), d.got[0][c] = NAN;   /* a row of nothing else */
    assert_false(compare(&d).excess > 0);
    assert_false(compare_as(&d, true).excess <= 1);
}

/* The row bound and the element bound each bite on their own. */
static void bounds(void **state)
{
    (void)state;
    struct data d = equal_data();
    for (int c = 0; c < COLUMNS; c++) d.got[2][c] *= 1.0009f;
    assert_true(compare(&d).excess <= 1);
    for (int c = 0; c < COLUMNS; c++) d.got[2][c] = (float)(d.ref[2 * COLUMNS + c] * 1.0011);
    struct worst w = compare(&d);
    assert_true(w.excess > 1 && w.excess < 1.2);
    assert_int_equal(w.row, 2);
    assert_int_equal(w.failed_rows, 1);
    assert_true(fabs(w.err_rel - 1.1e-3) < 1e-5);
}

enum { WIDE = 1024 };
static int64_t one_row(const struct problem *p) { return p->dim[0]; }
static int64_t wide_bytes(const struct problem *p) { (void)p; return WIDE * 2; }

/* The nearest bf16 is right whatever stands beside it; one further on is not. */
static void nearest_number_of_the_format_passes(void **state)
{
    (void)state;
    const struct op bf16 = {
        .name = "toy", .dim = {{.name = "batch"}},
        .tensor = {{.name = "out", .shape = "[batch, 1024]", .dtype = BF16, .role = OUT, .tolerance = {1e-3, 0}, .rows = one_row,
            .row_bytes = wide_bytes}},
    };
    const struct problem p = {.op = &bf16, .dim = {1}};
    uint16_t got[WIDE];
    double   ref[WIDE];
    for (int i = 0; i < WIDE; i++) {
        got[i] = 0x3d80;   /* 1/16 */
        ref[i] = 0.0625;
    }
    got[7] = 0x3f00;       /* 0.5, and 0.50390625 comes next: four times what the row's rms allows an element to be off */
    ref[7] = 0.5 + 0.0019531;
    uint8_t checked = 1;
    assert_true(compare_rows(&p, 0, got, sizeof got, 0x7b, false, ref, &checked).excess <= 1);
    got[7] = 0x3f02;
    struct worst w = compare_rows(&p, 0, got, sizeof got, 0x7b, false, ref, &checked);
    assert_true(w.excess > 1);
    assert_int_equal(w.column, 7);
}

static void unwritten_is_told(void **state)
{
    (void)state;
    struct data d = equal_data();
    memset(&d.got[5][7], 0x7b, sizeof(float));
    struct worst w = compare(&d);
    assert_true(w.untouched);
    char where[64];
    assert_string_equal(element_text(&problem, 0, w.row, w.column, where, sizeof where), "out[1, 2, 7]");
}

static void rows_without_a_reference_are_left_out(void **state)
{
    (void)state;
    struct data d = equal_data();
    d.got[3][0] = NAN;
    d.checked[3] = 0;
    struct worst w = compare(&d);
    assert_true(w.excess <= 1);
    assert_int_equal(w.rows, ROWS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_passes), cmocka_unit_test(nan_and_inf_never_pass),
        cmocka_unit_test(open_elements), cmocka_unit_test(bounds), cmocka_unit_test(nearest_number_of_the_format_passes),
        cmocka_unit_test(unwritten_is_told), cmocka_unit_test(rows_without_a_reference_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The reference of large problems: an oracle where the CPU has no time, held against what the CPU did have time for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"
#include "bound.h"
#include "workload.h"

enum { X, Y, ITEMS = 4096, COLUMNS = 8 };
static const double SLOW_S = 0.02, BUDGET_S = 0.04;   /* an item of the reference; all of it */

static int64_t rows(const struct problem *p) { return p->dim[0]; }
static int64_t row_bytes(const struct problem *p) { (void)p; return COLUMNS * 4; }

static float input(uint32_t set, int64_t row, int64_t column)
{
    return (float)(row * COLUMNS + column + (set ? 1000 : 0));
}

static int fills;

static void fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t n, void *host)
{
    (void)p, (void)t;
    fills++;
    for (int64_t i = 0; i < n * COLUMNS; i++) ((float *)host)[i] = input(set, row + i / COLUMNS, i % COLUMNS);
}

/* y = 2 x + 1; column 6 is NaN, column 7 open. */
static double right(double x, int64_t column)
{
    return column == 7 ? unspecified() : column == 6 ? NAN : 2 * x + 1;
}

static void reference(const struct problem *p, void *const *t, int64_t item, int64_t n)
{
    (void)p;
    for (double until = now_s() + SLOW_S; now_s() < until;) {}
    for (int64_t i = item * COLUMNS; i < (item + n) * COLUMNS; i++) ((double *)t[Y])[i] = right(((float *)t[X])[i], i % COLUMNS);
}

static void item_rows(const struct problem *p, int t, int64_t item, int64_t *ret_row, int64_t *ret_rows)
{
    (void)p, (void)t;
    *ret_row = item, *ret_rows = 1;
}

static double bytes(const struct problem *p, void *const *t, uint64_t reads) { (void)t, (void)reads; return (double)rows(p); }

static const struct op op = {
    .name = "toy", .dim = {{.name = "rows"}},
    .tensor = {[X] = {.name = "x", .shape = "[rows, 8]", .dtype = F32, .role = IN, .rows = rows, .row_bytes = row_bytes},
        [Y] = {.name = "y", .shape = "[rows, 8]", .dtype = F32, .role = OUT, .rows = rows, .row_bytes = row_bytes}},
    .fill = fill, .items = rows, .reference = reference, .item_rows = item_rows, .bytes = bytes,
};

/* What an oracle may get wrong in row 0, which the CPU always has time for. */
enum fault { NONE, SUM_ORDER, VALUE, NOT_A_NUMBER, WRITES_OPEN, LEAVES_OPEN, ANSWERS_NAN, OPEN_FOR_NAN };

static int launch_with(const struct call *call, enum fault fault)
{
    int64_t n = call->problem->dim[0];
    for (int64_t i = 0; i < n * COLUMNS; i++) {
        const float *x = (const float *)((const char *)call->t[X].p + i / COLUMNS * call->t[X].stride);
        double *y = (double *)((char *)call->t[Y].p + i / COLUMNS * call->t[Y].stride) + i % COLUMNS;
        *y = right(x[i % COLUMNS], i % COLUMNS);
        if (fault == SUM_ORDER) *y *= 1 + 1e-15;
        if (fault == VALUE && i == 3) *y += 1e-6;
        if (fault == NOT_A_NUMBER && i == 3) *y = NAN;
        if (fault == WRITES_OPEN && i == 7) *y = 1;
        if (fault == LEAVES_OPEN && i == 3) *y = unspecified();
        if (fault == ANSWERS_NAN && i == 6) *y = 5;
        if (fault == OPEN_FOR_NAN && i == 6) *y = unspecified();
    }
    return 0;
}

#define ORACLE_OF(name_, fault)                                                                        \
    static int launch_##name_(const struct call *call) { return launch_with(call, fault); }            \
    static const struct kernel name_ = {.name = "toy/" #name_, .op = "toy", .promises = ORACLE, .launch = launch_##name_}
ORACLE_OF(exact, NONE);
ORACLE_OF(other_order, SUM_ORDER);
ORACLE_OF(off, VALUE);
ORACLE_OF(nan_at, NOT_A_NUMBER);
ORACLE_OF(writes_open, WRITES_OPEN);
ORACLE_OF(leaves_open, LEAVES_OPEN);
ORACLE_OF(number_for_nan, ANSWERS_NAN);
ORACLE_OF(open_for_nan, OPEN_FOR_NAN);

static int prepare_in(struct workload *w, int64_t n, const struct kernel *oracle, double budget_s)
{
    struct problem problem = {.op = &op, .dim = {n}, .seed = 3};
    *w = (struct workload){.dev = dev_open_host(), .memory = memfd_create("reference", 0)};
    assert_true(w->memory >= 0);
    return workload_prepare(w, &problem, oracle, budget_s);
}

static int prepare(struct workload *w, int64_t n, const struct kernel *oracle)
{
    return prepare_in(w, n, oracle, BUDGET_S);
}

static void finish(struct workload *w)
{
    workload_close(w);
    close(w->memory);
    w->dev->ops->close(w->dev);
}

static void a_share_without_an_oracle(void **state)
{
    (void)state;
    struct workload w;
    assert_int_equal(prepare(&w, ITEMS, NULL), 0);
    assert_true(w.head->checked_pct >= 100.0 * 2 / ITEMS && w.head->checked_pct < 100);
    for (int set = 0; set < CHECK_SETS; set++) {
        int checked = 0;
        for (int r = 0; r < ITEMS; r++) checked += w.checked[set][Y][r];
        assert_true(w.checked[set][Y][0] && 100.0 * checked / ITEMS >= w.head->checked_pct);
    }
    finish(&w);
}

static void an_oracle_does_the_rest(void **state)
{
    (void)state;
    const struct kernel *const oracles[] = {&exact, &other_order};
    for (int k = 0; k < 2; k++) {
        struct workload w;
        assert_int_equal(prepare(&w, ITEMS, oracles[k]), 0);
        assert_true(w.head->checked_pct == 100);
        for (int set = 0; set < CHECK_SETS; set++)
            for (int i = 0; i < ITEMS * COLUMNS; i++) {
                double want = right(input(set ? CHECK_SET : 0, i / COLUMNS, i % COLUMNS), i % COLUMNS);
                double got = ((double *)w.ref[set][Y])[i];
                assert_true(w.checked[set][Y][i / COLUMNS]);
                assert_true(is_unspecified(got) == is_unspecified(want) && isnan(got) == isnan(want));
                assert_true(isnan(want) || fabs(got - want) <= 1e-11 * fabs(want));
            }
        finish(&w);
    }
}

/* Where all of it fits the budget nobody asks the oracle. */
static void small_problems_are_the_cpus(void **state)
{
    (void)state;
    struct workload w;
    assert_int_equal(prepare(&w, 2, &off), 0);
    assert_true(w.head->checked_pct == 100);
    assert_true(((double *)w.ref[0][Y])[3] == right(input(0, 0, 3), 3));
    finish(&w);
}

static int items_checked(const struct workload *w, int set)
{
    int n = 0;
    for (int r = 0; r < ITEMS; r++) n += w->checked[set][Y][r];
    return n;
}

/* 0 s: the two items that the CPU always has time for, whether an oracle does the rest or not; negative: none at all. */
static void no_time_is_two_items(void **state)
{
    (void)state;
    struct workload w;
    assert_int_equal(prepare_in(&w, ITEMS, NULL, 0), 0);
    assert_true(w.head->referenced && w.head->checked_pct == 100.0 * 2 / ITEMS);
    for (int set = 0; set < CHECK_SETS; set++) assert_int_equal(items_checked(&w, set), 2);
    finish(&w);
    assert_int_equal(prepare_in(&w, ITEMS, &exact, 0), 0);
    assert_true(w.head->checked_pct == 100);
    finish(&w);
    assert_int_equal(prepare_in(&w, ITEMS, &off, 0), DEV_FORBIDDEN);   /* those two still judge the oracle */
    finish(&w);
    assert_int_equal(prepare_in(&w, ITEMS, &exact, -1), 0);
    assert_false(w.head->referenced);
    finish(&w);
}

static void more_time_is_more_items(void **state)
{
    (void)state;
    struct workload w;
    assert_int_equal(prepare_in(&w, ITEMS, NULL, 20 * SLOW_S), 0);
    for (int set = 0; set < CHECK_SETS; set++) assert_in_range(items_checked(&w, set), 3, ITEMS - 1);
    finish(&w);
}

/* Nothing is compared against either; the words name both, the element, what each says, and what to do. */
static void disagreement_is_said_in_words(void **state)
{
    (void)state;
    const struct { const struct kernel *oracle; const char *words; } wrong[] = {
        {&off, "oracle toy/off and the CPU's reference of toy disagree at y[0, 3]: 7.000001 and 7, so neither can judge a kernel; "
            "correct the one that is wrong"},
        {&nan_at, "oracle toy/nan_at and the CPU's reference of toy disagree at y[0, 3]: nan and 7, "},
        {&writes_open, "disagree at y[0, 7]: 1 and left open, "},
        {&leaves_open, "disagree at y[0, 3]: left open and 7, "},
        {&number_for_nan, "disagree at y[0, 6]: 5 and nan, "}, {&open_for_nan, "disagree at y[0, 6]: left open and nan, "},
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        struct workload w;
        int error = prepare(&w, ITEMS, wrong[i].oracle);
        assert_int_equal(error, DEV_FORBIDDEN);
        if (!strstr(w.error, wrong[i].words)) fail_msg("said: %s\nwanted: %s", w.error, wrong[i].words);
        struct bound bound = {.w = &w};
        struct verdict verdict = verdict_of_error(&bound, error, "inputs and references");
        assert_int_not_equal(verdict.status, STATUS_OK);
        assert_non_null(strstr(verdict.reason, wrong[i].words));
        assert_false(w.head->referenced);      /* the next worker on this memory must not take it for done */
        finish(&w);
    }
}

/* What lies in the memory is taken over by the same problem alone: seeds that differ in one bit are two problems. */
static void neighbouring_seeds_are_two_problems(void **state)
{
    (void)state;
    struct workload w = {.dev = dev_open_host(), .memory = memfd_create("seeds", 0)};
    for (uint64_t seed = 0; seed < 64; seed++)
        for (int again = 0; again < 2; again++) {
            struct problem problem = {.op = &op, .dim = {2}, .seed = seed};
            fills = 0;
            assert_int_equal(workload_prepare(&w, &problem, NULL, -1), 0);
            assert_int_equal(fills > 0, !again);
            assert_true(w.head->key != 0);
            workload_release(&w);
        }
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_without_an_oracle), cmocka_unit_test(an_oracle_does_the_rest),
        cmocka_unit_test(small_problems_are_the_cpus), cmocka_unit_test(no_time_is_two_items),
        cmocka_unit_test(more_time_is_more_items),
        cmocka_unit_test(neighbouring_seeds_are_two_problems), cmocka_unit_test(disagreement_is_said_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

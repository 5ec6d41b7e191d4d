/* Statistics on known samples with known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "stats.h"

static void assert_close(double got, double expected)
{
    if (isnan(expected)) {
        assert_true(isnan(got));
        return;
    }
    if (!(fabs(got - expected) <= 1e-12 * fmax(1, fabs(expected)))) fail_msg("%.17g, expected %.17g", got, expected);
}

/* Coverage of [x(lo), x(n-1-lo)] by adding up Pascal's triangle: exact for n <= 60. */
static double coverage(int n, int lo)
{
    double row[64] = {1}, tail = 0;
    for (int i = 1; i <= n; i++) {
        for (int k = i; k > 0; k--) row[k] += row[k - 1];
    }
    for (int k = 0; k <= lo; k++) tail += row[k];
    return 1 - 2 * tail / exp2(n);
}

static void test_ranks_match_tables(void **state)
{
    (void)state;
    static const int known[][3] = {{1, 0, 0}, {2, 0, 1}, {5, 0, 4}, {6, 0, 5}, {8, 0, 7}, {9, 1, 7}, {10, 1, 8},
        {15, 3, 11}, {20, 5, 14}, {25, 7, 17}, {30, 9, 20}, {50, 17, 32}, {100, 39, 60}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        int lo, hi;
        stats_median_ranks(known[i][0], 0.95, &lo, &hi);
        assert_int_equal(lo, known[i][1]);
        assert_int_equal(hi, known[i][2]);
    }
}

static void test_ranks_are_exact(void **state)
{
    (void)state;
    static const double levels[] = {0.8, 0.9, 0.95, 0.99, 0.999};
    for (int l = 0; l < 5; l++) {
        for (int n = 6; n <= 60; n++) {
            int lo, hi;
            stats_median_ranks(n, levels[l], &lo, &hi);
            assert_int_equal(hi, n - 1 - lo);
            assert_true(lo == 0 || coverage(n, lo) >= levels[l]);
            assert_true(coverage(n, lo + 1) < levels[l]);
        }
    }
}

/* Large n: the normal approximation lo + 1 = (n - z sqrt n) / 2 is right to a rank or so, and no underflow may get in the way. */
static void test_ranks_of_large_samples(void **state)
{
    (void)state;
    for (int n = 1000; n <= 100000000; n *= 10) {
        int lo, hi;
        stats_median_ranks(n, 0.95, &lo, &hi);
        assert_true(fabs(lo + 1 - (n - 1.959964 * sqrt(n)) / 2) < 1.5);
        assert_int_equal(hi, n - 1 - lo);
    }
}

static void test_small_samples(void **state)
{
    (void)state;
    static const double x[] = {3, 1, 2};
    struct summary s = stats_summarise(x, 0, 0.95);
    assert_int_equal(s.n, 0);
    assert_true(isnan(s.median) && isnan(s.lo) && isnan(s.hi) && isnan(s.min) && isnan(s.max) && isnan(s.mean) && isnan(s.lag1));
    s = stats_summarise(x, 1, 0.95);
    assert_true(s.median == 3 && s.lo == 3 && s.hi == 3 && s.q1 == 3 && s.q3 == 3 && s.mean == 3 && isnan(s.lag1));
    s = stats_summarise(x, 2, 0.95);
    assert_true(s.median == 2 && s.lo == 1 && s.hi == 3 && s.min == 1 && s.max == 3 && isnan(s.lag1));
    s = stats_summarise(x, 3, 0.95);
    assert_true(s.median == 2 && s.lo == 1 && s.hi == 3 && s.q1 == 1.5 && s.q3 == 2.5 && !s.bimodal && !s.drifting);
    assert_close(s.lag1, -0.5);  /* (1*-1 + -1*0) / 2 */
    assert_true(x[0] == 3 && x[2] == 2);
}

static void test_nan_goes_through(void **state)
{
    (void)state;
    double x[20];
    for (int i = 0; i < 20; i++) x[i] = i;
    x[7] = NAN;
    struct summary s = stats_summarise(x, 20, 0.95);
    assert_int_equal(s.n, 20);
    assert_true(isnan(s.median) && isnan(s.lo) && isnan(s.hi) && isnan(s.min) && isnan(s.q3) && isnan(s.mean) && isnan(s.lag1));
    assert_true(!s.bimodal && !s.drifting && s.outliers == 0);
    assert_true(isnan(stats_median(x, 20)) && isnan(stats_geomean(x, 20)) && isnan(stats_median(x, 0)));
}

static void test_infinity_is_a_value(void **state)
{
    (void)state;
    static const double x[] = {1, INFINITY, 2, INFINITY, 3, INFINITY, INFINITY};
    struct summary s = stats_summarise(x, 7, 0.95);
    assert_true(isinf(s.median) && s.min == 1 && isinf(s.hi) && !s.bimodal);
}

static void test_ties(void **state)
{
    (void)state;
    double x[30];
    for (int i = 0; i < 30; i++) x[i] = 5;
    struct summary s = stats_summarise(x, 30, 0.95);
    assert_true(s.median == 5 && s.lo == 5 && s.hi == 5 && s.q1 == 5 && s.outliers == 0 && isnan(s.lag1));
    assert_true(!s.bimodal && !s.drifting);
    x[11] = 5.001;  /* no spread: even this one lies outside the fences */
    s = stats_summarise(x, 30, 0.95);
    assert_int_equal(s.outliers, 1);
    assert_false(s.bimodal);
}

/* Repeatable noise in [-1, 1). */
static double noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / (1 << 23) - 1;
}

static void test_bimodal(void **state)
{
    (void)state;
    double x[40];
    uint32_t seed = 1;
    for (int i = 0; i < 40; i++) x[i] = (i % 4 == 1 ? 130 : 100) + 2 * noise(&seed);
    struct summary s = stats_summarise(x, 40, 0.95);
    assert_true(s.bimodal && !s.drifting);
    assert_true(fabs(s.mode_low - 100) < 1.5 && fabs(s.mode_high - 130) < 1.5);

    for (int i = 0; i < 40; i++) x[i] = (i < 3 ? 130 : 100) + 2 * noise(&seed);  /* 7.5 % are no mode */
    assert_false(stats_summarise(x, 40, 0.95).bimodal);
    for (int i = 0; i < 40; i++) x[i] = (i % 2 ? 100.5 : 100);  /* two ticks of a clock, half a percent apart */
    s = stats_summarise(x, 40, 0.95);
    assert_false(s.bimodal);
    assert_true(isnan(s.mode_low) && isnan(s.mode_high));
}

static void test_one_mode_is_no_two(void **state)
{
    (void)state;
    uint32_t seed = 7;
    static const int sizes[] = {6, 10, 20, 50, 200};
    for (int k = 0; k < 5; k++) {
        int flat = 0, bell = 0, drift = 0;
        for (int turn = 0; turn < 500; turn++) {
            double x[200];
            for (int i = 0; i < sizes[k]; i++) x[i] = 100 + 10 * noise(&seed);
            flat += stats_summarise(x, sizes[k], 0.95).bimodal;
            for (int i = 0; i < sizes[k]; i++) x[i] = 100 + noise(&seed) + noise(&seed) + noise(&seed) + noise(&seed);
            struct summary s = stats_summarise(x, sizes[k], 0.95);
            bell += s.bimodal;
            drift += s.drifting;
        }
        assert_true(flat <= 25 && bell <= 15 && drift <= 15);  /* 5 %, 3 %, 3 % */
    }
}

static void test_drifting(void **state)
{
    (void)state;
    double x[30];
    uint32_t seed = 3;
    for (int i = 0; i < 30; i++) x[i] = 100 + i + noise(&seed);
    struct summary s = stats_summarise(x, 30, 0.95);
    assert_true(s.drifting && s.lag1 > 0.7);
    assert_true(stats_summarise(x, 9, 0.95).drifting);
    assert_false(stats_summarise(x, 8, 0.95).drifting);
    for (int i = 0; i < 30; i++) x[i] = 100 - 0.02 * i;  /* 0.4 % from end to end */
    assert_false(stats_summarise(x, 30, 0.95).drifting);
    for (int i = 0; i < 30; i++) x[i] = 100 + (i % 2 ? 5 : -5);
    s = stats_summarise(x, 30, 0.95);
    assert_true(!s.drifting && s.lag1 < -0.9);
}

static void test_outliers_are_counted_not_dropped(void **state)
{
    (void)state;
    double x[20];
    for (int i = 0; i < 20; i++) x[i] = 100 + i % 5;
    x[4] = 1000;
    x[9] = -500;
    struct summary s = stats_summarise(x, 20, 0.95);
    assert_int_equal(s.outliers, 2);
    assert_true(s.max == 1000 && s.min == -500);
    assert_close(s.mean, (18.0 * 100 + 4 * (0 + 1 + 2 + 3) + 2 * 4 + 1000 - 500) / 20);
}

static void test_quartiles(void **state)
{
    (void)state;
    static const double x[] = {7, 15, 36, 39, 40, 41};
    struct summary s = stats_summarise(x, 6, 0.95);
    assert_close(s.q1, 20.25);
    assert_close(s.median, 37.5);
    assert_close(s.q3, 39.75);
}

static void test_geomean(void **state)
{
    (void)state;
    static const double x[] = {1, 10, 100}, with_zero[] = {1, 0}, negative[] = {-1, -1};
    assert_close(stats_geomean(x, 3), 10);
    assert_true(isnan(stats_geomean(with_zero, 2)) && isnan(stats_geomean(negative, 2)) && isnan(stats_geomean(x, 0)));
}

/* The interval holds the true median as often as it says, on skewed and correlated-free noise. */
static void test_interval_covers(void **state)
{
    (void)state;
    uint32_t seed = 11;
    static const int sizes[] = {6, 9, 17, 30};
    for (int k = 0; k < 4; k++) {
        int inside = 0, turns = 2000;
        for (int t = 0; t < turns; t++) {
            double x[30];
            for (int i = 0; i < sizes[k]; i++) x[i] = exp(noise(&seed));  /* median 1 */
            struct summary s = stats_summarise(x, sizes[k], 0.95);
            inside += s.lo <= 1 && s.hi >= 1;
        }
        assert_true(inside >= 0.94 * turns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_match_tables), cmocka_unit_test(test_ranks_are_exact),
        cmocka_unit_test(test_ranks_of_large_samples),
        cmocka_unit_test(test_small_samples), cmocka_unit_test(test_nan_goes_through), cmocka_unit_test(test_infinity_is_a_value),
        cmocka_unit_test(test_ties), cmocka_unit_test(test_bimodal), cmocka_unit_test(test_one_mode_is_no_two),
        cmocka_unit_test(test_drifting), cmocka_unit_test(test_outliers_are_counted_not_dropped), cmocka_unit_test(test_quartiles),
        cmocka_unit_test(test_geomean), cmocka_unit_test(test_interval_covers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

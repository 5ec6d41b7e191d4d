/* Growth: exponents of known samples come back, noise leaves doubt instead of verdicts, and what grows unasked is caught. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include "base.h"
#include "csv.h"
#include "fake.h"
#include "rng.h"
#include "scaling.h"

enum { MOST = 12 };

struct sample_set {
    int                  n;
    struct scaling_point p[MOST];
};

/* t0 + a * x^e at x = 1024, 4096, ..., each with an interval of `width` of t on both sides. */
static struct sample_set powers(int n, double t0, double a, double e, double width)
{
    struct sample_set s = {.n = n};
    for (int i = 0; i < n; i++) {
        double x = 1024 * pow(4, i), t = t0 + a * pow(x / 1024, e);
        s.p[i] = (struct scaling_point){x, t, t * (1 - width), t * (1 + width), t * (1 - width)};
    }
    return s;
}

static void exact_powers_come_back(void **state)
{
    static const double exponents[] = {0.25, 0.5, 1, 1.5, 2, 3};
    (void)state;
    for (int e = 0; e < COUNT(exponents); e++)
        for (int n = 3; n <= 8; n++) {
            struct sample_set s = powers(n, 0, 100, exponents[e], 1e-4);
            struct fit fit = scaling_fit(s.p, n, 0);
            assert_true(fabs(fit.exponent - exponents[e]) < 1e-3);
            assert_true(fit.lo <= fit.exponent && fit.exponent <= fit.hi);
            assert_true(fit.lo > exponents[e] - 0.01 && fit.hi < exponents[e] + 0.01);
            assert_true(fit.t0 < 0.2 && fabs(fit.a * pow(1024, fit.exponent) - 100) < 0.2);
        }
}

static void a_constant_is_flat(void **state)
{
    (void)state;
    for (int n = 3; n <= 8; n++) {
        struct sample_set s = powers(n, 5000, 0, 1, 0.005);
        struct fit fit = scaling_fit(s.p, n, 0);
        assert_true(fit.exponent == 0 && fit.lo == 0 && fit.a == 0);
        assert_true(fabs(fit.t0 - 5000) < 1e-6);
        assert_true(fit.hi > 0 && fit.hi < 0.01);
    }
    struct sample_set s = powers(5, 0, 100, -0.5, 0.01);   /* what falls doesn't grow */
    assert_true(scaling_fit(s.p, 5, 0).exponent == 0);
}

/* A linear part under a constant is seen as such, as soon as it is more than what counts as flat. */
static void mixtures(void **state)
{
    (void)state;
    struct sample_set s = powers(6, 1000, 1, 1, 1e-3);     /* 1001 to 2024 */
    struct fit fit = scaling_fit(s.p, 6, 0);
    assert_true(fabs(fit.exponent - 1) < 0.05 && fabs(fit.t0 - 1000) < 5);
    s = powers(6, 1000, 0.07, 1, 1e-3);                    /* 7 % in all */
    fit = scaling_fit(s.p, 6, 0);
    assert_true(fit.exponent > 0.5 && fit.lo <= 1 && fit.hi >= 1 && fit.t0 > 900);
    s = powers(6, 1000, 0.04, 1, 1e-4);                    /* 4 %: flat, though it can be seen */
    assert_true(scaling_fit(s.p, 6, 0).exponent == 0);
    s = powers(5, 300, 10, 2, 1e-3);
    fit = scaling_fit(s.p, 5, 0);
    assert_true(fabs(fit.exponent - 2) < 0.02 && fabs(fit.t0 - 300) < 10);
}

static double noise(uint64_t seed, int i)
{
    return (double)rng_bits(rng_key(seed, 0, 0, 0), (uint32_t)i) * 0x1p-31 - 1;
}

/* Seeded noise within the intervals: the true exponent lies in the interval nearly always, and flat stays flat. */
static void noise_is_covered(void **state)
{
    int missed = 0, grown = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct sample_set s = powers(6, 200, 100, 1, 0.05), level = powers(6, 1000, 0, 1, 0.05);
        for (int i = 0; i < 6; i++) {
            double by = 1 + 0.04 * noise(seed, i);
            s.p[i].t *= by, s.p[i].lo *= by, s.p[i].hi *= by;
            level.p[i].t *= by, level.p[i].lo *= by, level.p[i].hi *= by;
        }
        struct fit fit = scaling_fit(s.p, 6, 0);
        missed += !(fit.lo <= 1 && fit.hi >= 1);
        grown += scaling_fit(level.p, 6, 0).exponent != 0;
    }
    assert_true(missed <= 10);
    assert_true(grown <= 10);
}

static void unfit_samples(void **state)
{
    (void)state;
    struct sample_set s = powers(4, 0, 1, 1, 0.01);
    assert_true(isnan(scaling_fit(s.p, 2, 0).exponent));
    s.p[1].t = NAN;
    assert_true(isnan(scaling_fit(s.p, 4, 0).exponent));
    s = powers(4, 0, 1, 1, 0.01);
    s.p[2].t = INFINITY;
    assert_true(isnan(scaling_fit(s.p, 4, 0).exponent));
    s = powers(4, 0, 1, 1, 0.01);
    s.p[0].x = 0;
    assert_true(isnan(scaling_fit(s.p, 4, 0).exponent));
}

/* A row of the fake op `scan`: batch grows by 1 at best, max_ctx by 0. */
static struct row make_row(const char *kernel, int64_t batch, int64_t max_ctx, double t, double width)
{
    struct row row;
    row_clear(&row);
    strcpy(row.op, "scan");
    strcpy(row.kernel, kernel);
    strcpy(row.engine, "cuda");
    strcpy(row.status, "ok");
    strcpy(row.cache, "cold");
    row.n_dims = 3;
    row.dim[0] = (struct row_dim){"batch", batch};
    row.dim[1] = (struct row_dim){"max_ctx", max_ctx};
    row.dim[2] = (struct row_dim){"tail", 1};
    row.seed = 1;
    row.t_med_ns = t, row.t_lo_ns = t * (1 - width), row.t_hi_ns = t * (1 + width), row.t_min_ns = t * (1 - width);
    row.bytes = row.flop = 1e6;
    row.checked_pct = 100;
    text(row.repeat, sizeof(row.repeat), "./kbench sweep --row '%s batch=%lld' --seed 1 --device host --plugin ./mine.so", kernel,
        (long long)batch);
    return row;
}

static struct table table_of(struct row *row, int n)
{
    return (struct table){.n = n, .row = row, .n_dims = 3, .dims = {"batch", "max_ctx", "tail"}};
}

static const int64_t SIZES[] = {8192, 65536, 1 << 20};

/* The verdict on a kernel with these times at 8K, 64K and 1M. */
static enum scaling_verdict verdict_on(const double *t, double width, void (*change)(struct row *))
{
    struct row row[3];
    for (int i = 0; i < 3; i++) {
        row[i] = make_row("scan/host_live", 4, SIZES[i], t[i], width);
        if (change) change(&row[i]);
    }
    struct table table = table_of(row, 3);
    struct scalings s = scalings_find(&table);
    assert_int_equal(s.n, 1);
    enum scaling_verdict ret = s.of[0].verdict;
    scalings_free(&s);
    return ret;
}

static void declares_max(struct row *row) { strcpy(row->declared, "batch^1;max_ctx^1"); }
static void declares_half(struct row *row) { strcpy(row->declared, "max_ctx^0.5"); }
static void is_hot(struct row *row) { strcpy(row->cache, "hot"); }
static void is_probe_row(struct row *row) { row->checked_pct = NAN; }
static void of_unknown_op(struct row *row) { strcpy(row->op, "scam"); }
static void on_host(struct row *row) { strcpy(row->engine, "host"); }
static void on_host_max(struct row *row) { declares_max(row), on_host(row); }
static void had_fast_rounds(struct row *row) { row->t_min_ns = 900; }

static void verdicts(void **state)
{
    const double flat[] = {1000, 1004, 1010}, hidden[] = {1000, 1006, 1070}, max[] = {1000, 8000, 128000}, square[] = {1000, 64e3,
        16.4e6}, steep[] = {1000, 1000 * 15.8, 1000 * 601}, falls[] = {1000, 900, 500};
    (void)state;
    assert_int_equal(verdict_on(flat, 0.002, NULL), SCALING_OK);
    assert_int_equal(verdict_on(falls, 0.002, NULL), SCALING_OK);
    assert_int_equal(verdict_on(hidden, 0.002, NULL), SCALING_ABOVE);
    assert_int_equal(verdict_on(hidden, 0.02, NULL), SCALING_OPEN);          /* the intervals leave room for flat */
    assert_int_equal(verdict_on(hidden, 0.002, on_host), SCALING_OPEN);      /* rows of a CPU differ by as much without a reason */
    assert_int_equal(verdict_on(hidden, 0.002, had_fast_rounds), SCALING_OPEN);
    assert_int_equal(verdict_on(max, 0.002, NULL), SCALING_ABOVE);
    assert_int_equal(verdict_on(max, 0.1, on_host), SCALING_ABOVE);
    assert_int_equal(verdict_on(max, 0.002, declares_max), SCALING_OK);
    assert_int_equal(verdict_on(max, 0.002, declares_half), SCALING_ABOVE);
    assert_int_equal(verdict_on(square, 0.002, declares_max), SCALING_ABOVE);
    assert_int_equal(verdict_on(steep, 0.002, declares_max), SCALING_ABOVE);
    assert_int_equal(verdict_on(steep, 0.002, on_host_max), SCALING_OK);     /* caches end there */
    assert_int_equal(verdict_on(square, 0.002, on_host_max), SCALING_ABOVE);
    assert_int_equal(verdict_on(flat, 0.002, declares_max), SCALING_OK);     /* better than declared is no failure */
    assert_int_equal(verdict_on(max, 0.002, is_hot), SCALING_UNJUDGED);
    assert_int_equal(verdict_on(max, 0.002, is_probe_row), SCALING_UNJUDGED);
    assert_int_equal(verdict_on(max, 0.002, of_unknown_op), SCALING_UNJUDGED);
}

/* Flat until the machine is full, then linear: not above linear, although t0 + a * x^e would fit best with more than that. */
static void a_full_machine_is_no_growth(void **state)
{
    struct row row[8];
    (void)state;
    for (int i = 0; i < 8; i++) row[i] = make_row("scan/host_live", 1 << i, 8192, fmax(20, 0.43 * (1 << i)) * 1e3, 0.005);
    struct table table = table_of(row, 8);
    struct scalings s = scalings_find(&table);
    assert_int_equal(s.n, 1);
    assert_true(s.of[0].fit.hinge && fabs(s.of[0].fit.exponent - 1) < 0.01 && fabs(s.of[0].fit.t0 - 20e3) < 10);
    assert_int_equal(s.of[0].verdict, SCALING_OK);
    scalings_free(&s);
}

/* Sizes with less to do are not held against a flat kernel; where too few are left, all count. */
static void less_work_is_no_growth(void **state)
{
    struct row row[5];
    struct table table = table_of(row, 5);
    (void)state;
    for (int i = 0; i < 5; i++) {
        row[i] = make_row("scan/host_live", 4, 1024 << 2 * i, i ? 1000 : 600, 0.002);
        row[i].bytes = i ? 1e6 : 5e5;
    }
    struct scalings s = scalings_find(&table);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.of[0].from, 4096);
    assert_int_equal(s.of[0].points, 4);
    assert_int_equal(s.of[0].verdict, SCALING_OK);
    scalings_free(&s);
    for (int i = 0; i < 5; i++) row[i].bytes = 1e6 * (i + 1);
    s = scalings_find(&table);
    assert_int_equal(s.of[0].from, 1024);
    assert_int_equal(s.of[0].verdict, SCALING_ABOVE);
    scalings_free(&s);
}

static void series_are_found(void **state)
{
    struct row row[40];
    int n = 0;
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int64_t batch = 1; batch <= 16; batch *= 4)
            for (int i = 0; i < 3; i++)
                row[n++] = make_row(k ? "scan/host_full" : "scan/host_live", batch, SIZES[2 - i], (double)batch * 1e3, 0.002);
    row[n] = make_row("scan/host_live", 64, 8192, 64e3, 0.002), strcpy(row[n++].status, "wrong");   /* no size of any series */
    row[n] = make_row("scan/host_live", 2, 8192, 2e3, 0.002), strcpy(row[n++].tune, "splits=4");
    row[n++] = make_row("scan/host_live", 1, 8192, 1010, 0.002);                                      /* measured again */
    struct table table = table_of(row, n);
    struct scalings s = scalings_find(&table);
    assert_int_equal(s.n, 12);   /* two kernels: batch at three max_ctx, max_ctx at three batches */
    for (int i = 0; i < s.n; i++) {
        assert_int_equal(s.of[i].points, 3);
        assert_true(s.of[i].from < s.of[i].to);
        assert_int_equal(s.of[i].verdict, SCALING_OK);
        bool batch = !strcmp(s.of[i].dim, "batch");
        assert_true(batch ? fabs(s.of[i].fit.exponent - 1) < 0.02 : s.of[i].fit.exponent == 0);
        assert_true(s.of[i].ideal == batch && s.of[i].declared == batch);
        assert_string_equal(s.of[i].unit, batch ? "requests" : "tokens");
    }
    scalings_free(&s);
    struct table two = table_of(row + 1, 2);   /* two sizes give no fit */
    s = scalings_find(&two);
    assert_int_equal(s.n, 0);
    scalings_free(&s);
    struct row near[3];                        /* nor do three within a factor of four */
    for (int i = 0; i < 3; i++) near[i] = make_row("scan/host_live", 1, 8192 + 4096 * i, 1e3, 0.002);
    struct table close_by = table_of(near, 3), empty = {0};
    s = scalings_find(&close_by);
    assert_int_equal(s.n, 0);
    s = scalings_find(&empty);
    assert_int_equal(s.n, 0);
}

static void lines_repeat_a_series(void **state)
{
    struct row row[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        row[i] = make_row("scan/host_live", 4, SIZES[i], SIZES[i], 0.002);
        strcpy(row[i].tune, "splits=4;stages=2");
    }
    struct table table = table_of(row, 3);
    struct scalings s = scalings_find(&table);
    assert_string_equal(s.of[0].repeat, "./kbench sweep -k 'scan/host_live' -a batch=4 -a tail=unique -a max_ctx=8K,64K,1M "
        "-t splits=4 -t stages=2 --seed 1 --device host --plugin ./mine.so");
    char *csv = scalings_csv(&s, &table);
    const char *second = strchr(csv, '\n') + 1;
    assert_non_null(strstr(csv, "op,kernel,engine,batch,max_ctx,tail,tune,cache,seed,dim,unit,points,from,to,t_from_ns,"));
    assert_true(!strncmp(second, "scan,scan/host_live,cuda,4,,unique,splits=4;stages=2,cold,1,max_ctx,tokens,3,8192,1048576,", 88));
    assert_non_null(strstr(second, ",0,0,above,"));
    free(csv);
    scalings_free(&s);
}

static void declarations_are_shown(void **state)
{
    char words[64];
    struct row row = make_row("scan/host_full", 1, 8192, 1, 0);
    (void)state;
    assert_string_equal(row_growth_text(&row, words, sizeof(words)), "");
    assert_true(isnan(row_declared(&row, "max_ctx")));
    declares_max(&row);
    assert_string_equal(row_growth_text(&row, words, sizeof(words)), "O(max_ctx)");
    assert_true(row_declared(&row, "max_ctx") == 1 && isnan(row_declared(&row, "max")));
    strcpy(row.declared, "batch^2;max_ctx^0.5");
    assert_string_equal(row_growth_text(&row, words, sizeof(words)), "O(batch^2) O(max_ctx^0.5)");
    strcpy(row.declared, "batch^1;max_ctx^0");
    assert_string_equal(row_growth_text(&row, words, sizeof(words)), "");
    assert_string_equal(kernel_declared_text(&fake_scan_full, words, sizeof(words)), "batch^1;max_ctx^1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_powers_come_back), cmocka_unit_test(a_constant_is_flat), cmocka_unit_test(mixtures),
        cmocka_unit_test(noise_is_covered), cmocka_unit_test(unfit_samples), cmocka_unit_test(verdicts),
        cmocka_unit_test(a_full_machine_is_no_growth), cmocka_unit_test(less_work_is_no_growth),
        cmocka_unit_test(series_are_found), cmocka_unit_test(lines_repeat_a_series), cmocka_unit_test(declarations_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* From samples to a row's numbers: which limit holds, what is implausible, what is marked. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"
#include "measures.h"

static double bytes_of_toy(const struct problem *p, void *const *t, uint64_t reads)
{
    (void)p;
    (void)t;
    return reads ? 250e3 : 1e6;
}

static const struct op op = {.name = "toy", .bytes = bytes_of_toy};

struct bench {
    struct dev      dev;
    struct workload w;
    struct store_head head;
    struct kernel   kernel;
    struct bound    bound;
    struct lane     lane;
    struct job      job;
};

/* A lane with this median on a device that reads 1,000 GB/s and multiplies at 1,000 GFLOP/s: 1 MB takes 1 us. */
static void set_up(struct bench *b, double median_ns, double flop)
{
    *b = (struct bench){.dev = {.timer = "graph", .machine = {.ceilings = {.read_GBps = 1000, .matrix_GFLOPs = 1000,
        .latency_ns = 300}}}};
    b->w = (struct workload){.dev = &b->dev, .op = &op, .problem = {.op = &op}, .head = &b->head, .bytes = 1e6, .flop = flop,
        .sets = 4};
    b->bound = (struct bound){.w = &b->w, .kernel = &b->kernel};
    b->lane = (struct lane){.bound = &b->bound, .n = 20, .stop = "width"};
    b->lane.summary = (struct summary){.n = 20, .median = median_ns, .lo = median_ns * 0.99, .hi = median_ns * 1.01,
        .min = median_ns};
}

static void the_longest_limit_holds(void **state)
{
    (void)state;
    struct ceilings c = {.read_GBps = 1000, .matrix_GFLOPs = 1000, .latency_ns = 300};
    const char *by;
    assert_true(measures_limit_ns(&c, 1e6, 1e5, &by) == 1000);
    assert_string_equal(by, "bytes");
    assert_true(measures_limit_ns(&c, 1e6, 5e6, &by) == 5000);
    assert_string_equal(by, "flop");
    assert_true(measures_limit_ns(&c, 1e3, 1e3, &by) == 300);
    assert_string_equal(by, "latency");
}

static void a_time_under_the_limit_is_implausible(void **state)
{
    (void)state;
    struct bench b;
    struct row row;
    set_up(&b, 940, 0);
    measures_row(&row, &b.job, 0, &b.lane, &b.w, NAN);
    assert_string_equal(row.status, "implausible");
    assert_non_null(strstr(row.reason, "940 ns"));
    set_up(&b, 1500, 0);
    measures_row(&row, &b.job, 0, &b.lane, &b.w, 750);
    assert_string_equal(row.status, "ok");
    assert_true(fabs(row.pct_limit - 66.67) < 0.01 && row.pct_probe == 50);
    set_up(&b, 940, 0);   /* hot: the cache is where its inputs are */
    b.job.group.cache = HOT;
    measures_row(&row, &b.job, 0, &b.lane, &b.w, NAN);
    assert_string_equal(row.status, "ok");
}

/* A kernel that leaves twins alone is held to what it reads. */
static void reads_scale_the_bytes(void **state)
{
    (void)state;
    struct bench b;
    struct row row;
    set_up(&b, 940, 0);
    b.kernel.reads = 2;
    measures_row(&row, &b.job, 0, &b.lane, &b.w, NAN);
    assert_string_equal(row.status, "ok");
    assert_true(row.bytes == 250e3 && row.limit_ns == 300);   /* a quarter of the bytes: latency is longer */
}

static void marks(void **state)
{
    (void)state;
    struct bench b;
    struct row row;
    set_up(&b, 2000, 0);
    b.lane.summary.hi = 2200;
    b.lane.summary.drifting = true;
    measures_row(&row, &b.job, 0, &b.lane, &b.w, NAN);
    assert_string_equal(row.marks, "noisy;drifting");
    set_up(&b, 2000, 0);
    b.lane.summary.bimodal = true;
    b.lane.summary.mode_low = 1900;
    b.lane.summary.mode_high = 1940;   /* 2 % apart: changes no verdict */
    measures_row(&row, &b.job, 0, &b.lane, &b.w, NAN);
    assert_string_equal(row.marks, "");
    b.lane.summary.mode_high = 2100;
    measures_row(&row, &b.job, 0, &b.lane, &b.w, NAN);
    assert_string_equal(row.marks, "bimodal");
    assert_string_equal(row.reason, "two modes: 1.90 us and 2.10 us");
}

/* What the witnesses saw, and the clock that each mode ran at. */
static void marks_of_the_machine(void **state)
{
    (void)state;
    struct bench b;
    struct row row;
    struct sample sample[20];
    set_up(&b, 2000, 0);
    b.lane.sample = sample;
    for (int i = 0; i < 20; i++) sample[i] = (struct sample){.t_ns = i < 12 ? 1900 : 2100, .sm_clock_MHz = i < 12 ? 1980 : 1785};
    sample[3].sm_clock_MHz = NAN;
    b.lane.witness.contended = true;
    b.lane.witness.throttled = true;
    text(b.lane.witness.why, sizeof b.lane.witness.why, "other work: 3 of 20 samples longer");
    b.lane.summary.bimodal = true;
    b.lane.summary.mode_low = 1900;
    b.lane.summary.mode_high = 2100;
    measures_row(&row, &b.job, 0, &b.lane, &b.w, NAN);
    assert_string_equal(row.status, "ok");
    assert_string_equal(row.marks, "throttled;contended;bimodal");
    assert_string_equal(row.reason,
        "other work: 3 of 20 samples longer; two modes: 1.90 us at 1980 MHz and 2.10 us at 1785 MHz");
}

/* NaN is no time, and no row without a lane has one. */
static void nan_never_passes(void **state)
{
    (void)state;
    struct bench b;
    struct row row;
    set_up(&b, NAN, 0);
    measures_row(&row, &b.job, 0, &b.lane, &b.w, NAN);
    assert_string_equal(row.status, "implausible");
    measures_row(&row, &b.job, 0, NULL, &b.w, NAN);
    assert_true(isnan(row.t_med_ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_limit_holds), cmocka_unit_test(a_time_under_the_limit_is_implausible),
        cmocka_unit_test(reads_scale_the_bytes), cmocka_unit_test(marks), cmocka_unit_test(marks_of_the_machine),
        cmocka_unit_test(nan_never_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A machine that is not quiet while it is profiled: found in launches and passes, tried again, and said where it stays. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base.h"
#include "profile.h"
#include "row.h"

enum { SETS = 8, MOST_RECORDS = 1 << 18, PASSES = 7 };

/* A device whose replays leave records of 1 us a call. */
static struct fake {
    const struct dev_ops *ops;
    struct activity      *record;
    int                   n, launches, calls, traces, counts, attempts;
    int                   lost;            /* number of the trace whose records are lost as a whole; 0: none */
    int                   dropped;         /* of the trace that lacks a record */
    bool                  uneven;          /* every third launch is longer, as the ring's first chunk */
    int                   late_ns[8];      /* by which every fifth launch of a trace is longer; of the traces in order */
    int                   late_passes[8];  /* of a count: so many are 4 ms longer */
    double                call_ns[8];      /* of the attempts to time it */
} fake;

static int launch(const struct call *call) { (void)call; fake.calls++; return 0; }

static int replay(struct dev *dev, struct graph *graph)
{
    int before = fake.calls, late = fake.traces && fake.launches % 5 == 1 ? fake.late_ns[fake.traces - 1] : 0;
    if (fake.uneven && fake.launches % 3 == 0) late += 150000;
    TRY(fake.ops->replay(dev, graph));
    uint64_t begin = 1000000 + (uint64_t)fake.launches++ * 100000000;
    for (int i = 0; i < fake.calls - before && fake.n < MOST_RECORDS; i++) {
        uint64_t end = begin + 1000 + (i ? 0 : (uint64_t)late);
        fake.record[fake.n++] = (struct activity){ACTIVITY_KERNEL, (uint32_t)fake.launches, (uint64_t)i + 1, begin, end, 0, "k"};
        begin = end;
    }
    return 0;
}

static int time_graphs(struct dev *dev, struct graph *const *graph, int n, double *ret)
{
    int before = fake.calls;
    TRY(fake.ops->time(dev, graph, n, ret));
    if (fake.call_ns[0] > 0) *ret = fake.call_ns[fake.attempts - 1] * (fake.calls - before);
    return 0;
}

static int begin(struct dev *dev, bool eager, char *why, size_t size)
{
    (void)dev, (void)eager, (void)why, (void)size;
    fake.traces++;
    fake.n = fake.launches = 0;
    return 0;
}

static int end(struct dev *dev, struct recording *ret, char *why, size_t size)
{
    (void)dev;
    if (fake.traces == fake.lost) return text(why, size, "flush failed"), -1;
    ret->dropped = fake.traces == fake.dropped;
    ret->n = fake.n;
    ret->activity = must_alloc((size_t)fake.n + 1, sizeof *ret->activity);
    memcpy(ret->activity, fake.record, (size_t)fake.n * sizeof *ret->activity);
    return 0;
}

static int count(struct dev *dev, enqueue_fn *enqueue, void *arg, struct counters *ret)
{
    (void)dev;
    counters_clear(ret);
    ret->dram_read_B = 4096 * ++fake.counts;
    for (ret->passes = 0; ret->passes < PASSES; ret->passes++) TRY(enqueue(arg));
    return 0;
}

/* Called before each walk; in a pass of the counters other work comes in between. */
static void step(void *arg, const char *what)
{
    int *passes = arg;
    fake.attempts += !strcmp(what, "graphs for untraced replays");
    if (strcmp(what, "counted replays")) return;
    int pass = (*passes)++ - 1;   /* the first is not counted */
    if (pass < 0 || pass % PASSES >= fake.late_passes[pass / PASSES]) return;
    nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
}

static const struct kernel kernel = {.name = "toy/k", .launch = launch};

struct bench {
    struct workload w;
    struct bound    bound;
    struct dev_ops  ops;
    struct trace_ops trace;
    int             passes;
    struct profile  p;
};

static struct bench *bench_new(int sets)
{
    struct bench *b = must_alloc(1, sizeof *b);
    fake = (struct fake){.record = must_alloc(MOST_RECORDS, sizeof *fake.record)};
    b->w = (struct workload){.dev = dev_open_host(), .sets = sets};
    b->w.ring = must_alloc((size_t)sets * MAX_TENSORS, sizeof(struct arg));
    b->bound = (struct bound){.w = &b->w, .kernel = &kernel};
    fake.ops = b->w.dev->ops;
    b->ops = *fake.ops;
    b->ops.replay = replay, b->ops.time = time_graphs;
    b->trace = (struct trace_ops){.begin = begin, .end = end, .count = count};
    b->w.dev->ops = &b->ops, b->w.dev->trace = &b->trace, b->w.dev->machine.engine = CUDA;
    return b;
}

static void bench_free(struct bench *b)
{
    b->w.dev->ops = fake.ops;
    b->w.dev->ops->close(b->w.dev);
    free(b->w.ring), free(fake.record), free(b);
}

static void profile(struct bench *b)
{
    assert_int_equal(profile_run(&b->bound, "toy/k", 1000, 100, 0, step, &b->passes, &b->p), 0);
    assert_string_equal(b->p.note, "");
    assert_string_equal(b->p.replay.failed, "");
}

static const char *doubt(const struct bench *b, double row_ns)
{
    static char words[300];
    struct row row;
    row_clear(&row);
    row.t_med_ns = row_ns;
    return profile_doubt(&b->p, &row, words, sizeof words);
}

static void a_quiet_machine_is_traced_once(void **state)
{
    (void)state;
    struct bench *b = bench_new(SETS);
    profile(b);
    assert_int_equal(fake.traces, 2);   /* replays, and a launch outside of a graph */
    assert_int_equal(fake.counts, 1);
    assert_true(b->p.replay.used >= 3 && b->p.replay.disturbed == 0 && b->p.replay.disturbed_ns == 0 && b->p.disturbed == 0);
    assert_string_equal(doubt(b, 1000), "");
    bench_free(b);
}

static void traced_again_until_it_is_quiet(void **state)
{
    (void)state;
    struct bench *b = bench_new(SETS);
    fake.late_ns[0] = 3000000;
    profile(b);
    assert_int_equal(fake.traces, 3);
    assert_int_equal(b->p.replay.disturbed, 0);
    assert_string_equal(doubt(b, 1000), "");
    bench_free(b);
}

/* Of a ring in three chunks one may be longer: what it is held against is itself. */
static void chunks_may_differ(void **state)
{
    (void)state;
    struct bench *b = bench_new(3 * 200);
    fake.uneven = true;
    profile(b);
    assert_int_equal(fake.traces, 2);
    assert_int_equal(b->p.replay.disturbed, 0);
    bench_free(b);
}

/* Of three that are not quiet the best stays, and words with it. */
static void what_stays_is_said(void **state)
{
    (void)state;
    struct bench *b = bench_new(SETS);
    fake.late_ns[0] = 3000000, fake.late_ns[1] = 1000000, fake.late_ns[2] = 5000000;
    profile(b);
    assert_int_equal(fake.traces, 4);
    assert_int_equal(b->p.replay.disturbed, (b->p.replay.used + 3) / 5);
    assert_int_equal(b->p.replay.disturbed_ns, b->p.replay.disturbed * 1000000);
    assert_non_null(strstr(doubt(b, 1000), "not quiet under the tracer: "));
    assert_null(strstr(doubt(b, 1000), ";"));
    bench_free(b);
}

/* Another try that is no trace, or none to be believed, leaves the one that is. */
static void a_try_in_vain_costs_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bench *b = bench_new(SETS);
        fake.late_ns[0] = 3000000, fake.late_ns[2] = 3000000;
        fake.lost = i ? 0 : 2, fake.dropped = i ? 2 : 0;
        profile(b);
        assert_int_equal(fake.traces, i ? 4 : 3);
        assert_true(b->p.replay.disturbed > 0 && b->p.replay.used > 0 && b->p.eager.launches == 1);
        assert_non_null(strstr(doubt(b, 1000), "not quiet under the tracer: "));
        bench_free(b);
    }
}

static void counted_again_until_it_is_quiet(void **state)
{
    (void)state;
    struct bench *b = bench_new(SETS);
    fake.late_passes[0] = 2, fake.late_passes[1] = 1;
    profile(b);
    assert_int_equal(fake.counts, 3);
    assert_int_equal(b->p.disturbed, 0);
    assert_true(b->p.counters.dram_read_B * b->p.calls == 3 * 4096);
    assert_string_equal(doubt(b, 1000), "");
    bench_free(b);
    b = bench_new(SETS);
    fake.late_passes[0] = 2, fake.late_passes[1] = 1, fake.late_passes[2] = 2;
    profile(b);
    assert_int_equal(b->p.disturbed, 1);
    assert_true(b->p.counters.dram_read_B * b->p.calls == 2 * 4096);
    assert_string_equal(doubt(b, 1000), "not quiet under the counters: 1 of 7 passes took longer");
    bench_free(b);
}

/* The time that a trace is held against: of three tries what is nearest to the row's, or within what another place of data does. */
static void timed_as_the_row_is(void **state)
{
    static const struct { double about_ns, of[3], ns; int attempts; } cases[] = {
        {1e7, {1.05e7, 1e7, 1e7}, 1.05e7, 1}, {1e7, {1.5e7, 0.95e7, 1e7}, 0.95e7, 2}, {1e7, {1.5e7, 0.8e7, 2e7}, 0.8e7, 3},
        {1e7, {0.5e7, 1.3e7, 1.4e7}, 1.3e7, 3}, {NAN, {1.5e7, 1e7, 1e7}, 1.5e7, 1}};
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        struct bench *b = bench_new(SETS);
        double ns;
        memcpy(fake.call_ns, cases[i].of, sizeof cases[i].of);
        assert_int_equal(profile_time(&b->bound, cases[i].about_ns, step, &b->passes, &ns), 0);
        assert_true(fabs(ns / cases[i].ns - 1) < 1e-9);
        assert_int_equal(fake.attempts, cases[i].attempts);
        bench_free(b);
    }
}

/* The row's time may be another by then: it was measured again. */
static void far_from_the_row_is_said(void **state)
{
    (void)state;
    struct bench *b = bench_new(SETS);
    profile(b);
    assert_string_equal(doubt(b, 1080), "");
    assert_string_equal(doubt(b, 1500), "not quiet: untraced, it takes 0.67x of the row's time");
    assert_string_equal(doubt(b, 500), "not quiet: untraced, it takes 2.00x of the row's time");
    bench_free(b);
}

/* Launches, of two chunks by turns, the second of which is twice as long. */
static struct breakdown of_launches(int launches, int chunks, int ns, int late, int late_ns)
{
    struct activity a[40];
    struct breakdown b;
    for (int i = 0; i < launches; i++) {
        uint64_t begin = 1 + (uint64_t)i * 1000000000;
        a[i] = (struct activity){ACTIVITY_KERNEL, (uint32_t)i + 1, 1, begin, begin + (uint64_t)(ns * (1 + i % 2)), 0, "k"};
        if (i == late) a[i].end_ns += (uint64_t)late_ns;
    }
    struct recording r = {.n = launches, .activity = a, .launches = launches, .calls = 1, .nodes = 1, .chunks = chunks,
        .untraced_ns = NAN};
    breakdown_make(&r, &b);
    return b;
}

static void launches_of_a_chunk_are_alike(void **state)
{
    (void)state;
    struct breakdown b = of_launches(20, 2, 1000000, 7, 400000);
    assert_int_equal(b.disturbed, 1);
    assert_int_equal(b.disturbed_ns, 400000);
    assert_true(breakdown_disturbed(&b));
    assert_int_equal(of_launches(20, 2, 1000000, 7, 200000).disturbed, 0);   /* of 2 ms: a kernel has two times of its own */
    assert_int_equal(of_launches(20, 2, 100000, 7, 90000).disturbed, 0);     /* less than a time slice */
    assert_int_equal(of_launches(20, 0, 1000000, -1, 0).disturbed, 10);      /* as if they did the same */
    assert_int_equal(of_launches(5, 2, 1000000, 1, 9000000).disturbed, 0);   /* which of two? */
    assert_int_equal(of_launches(6, 2, 1000000, 1, 9000000).disturbed, 1);
    b = of_launches(40, 2, 100000000, 7, 40000000);
    assert_true(b.disturbed == 1 && !breakdown_disturbed(&b));               /* too little of all to take it again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_machine_is_traced_once), cmocka_unit_test(traced_again_until_it_is_quiet),
        cmocka_unit_test(chunks_may_differ), cmocka_unit_test(a_try_in_vain_costs_nothing),
        cmocka_unit_test(what_stays_is_said),
        cmocka_unit_test(counted_again_until_it_is_quiet),
        cmocka_unit_test(timed_as_the_row_is), cmocka_unit_test(far_from_the_row_is_said),
        cmocka_unit_test(launches_of_a_chunk_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

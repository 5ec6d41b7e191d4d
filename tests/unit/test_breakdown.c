/* Fake record streams, right and with each fault; and what follows from counters. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base.h"
#include "breakdown.h"
#include "csv.h"
#include "machine.h"
#include "profile.h"
#include "profile_files.h"
#include "report_profile.h"
#include "row.h"
#include "tour.h"

enum { LAUNCHES = 20, CALLS = 2, NODES = 3 * CALLS, RECORDS = LAUNCHES * NODES };

/* Replays of two calls, each a kernel of 1000 ns, 50 ns of nothing, a copy of 300 ns, and a kernel of 700 ns that begins 100 ns
 * before the copy ends. Between calls 20 ns. Span of a call's two: 2 * (1000 + 50 + 300 + 600) + 20. */
struct stream {
    struct recording    r;
    struct activity     a[2 * RECORDS];
    struct capture_node node[NODES];
};

enum { CALL_NS = 1000 + 50 + 300 + 600, SPAN_NS = CALLS * CALL_NS + 20 };

static void make(struct stream *s)
{
    static const struct { enum activity_kind kind; int at, ns; const char *name; } of[] = {
        {ACTIVITY_KERNEL, 0, 1000, "first"}, {ACTIVITY_COPY, 1050, 300, "copy"}, {ACTIVITY_KERNEL, 1250, 700, "second"}};
    memset(s, 0, sizeof *s);
    for (int l = 0, n = 0; l < LAUNCHES; l++)
        for (int c = 0; c < CALLS; c++)
            for (int k = 0; k < 3; k++, n++) {
                uint64_t at = 1000000 + (uint64_t)(l * 10000 + c * (CALL_NS + 20) + of[k].at);
                s->a[n] = (struct activity){of[k].kind, 7 + (uint32_t)l, 100 + (uint64_t)(3 * c + k), at, at + (uint64_t)of[k].ns,
                    k == 1 ? 4096 : 0, of[k].name};
            }
    for (int i = 0; i < RECORDS; i++) s->a[i].shape = (struct launch_shape){{i % 3 + 1, 1, 1}, {128, 1, 1}, {0}, 4096};
    for (int i = 0; i < NODES; i++) s->node[i] = (struct capture_node){100 + (uint64_t)i, i % 3 == 2 ? "tail" : ""};
    s->r = (struct recording){.n = RECORDS, .n_nodes = NODES, .activity = s->a, .node = s->node, .launches = LAUNCHES,
        .calls = CALLS, .nodes = NODES, .untraced_ns = SPAN_NS / CALLS};
}

static struct breakdown analyse(struct stream *s)
{
    struct breakdown b;
    breakdown_make(&s->r, &b);
    assert_true(b.busy_ns + b.gap_ns - b.overlap_ns == b.span_ns);
    int64_t busy = 0, gaps = 0;
    for (int i = 0; i < b.n; i++) busy += b.part[i].total_ns, gaps += b.part[i].gap_ns;
    assert_true(busy == b.busy_ns);
    assert_true(gaps == b.gap_ns);
    return b;
}

static void adds_up(void **state)
{
    (void)state;
    struct stream s;
    make(&s);
    struct breakdown b = analyse(&s);
    assert_string_equal(b.failed, "");
    assert_int_equal(b.used, LAUNCHES);
    assert_int_equal(b.span_ns, LAUNCHES * SPAN_NS);
    assert_int_equal(b.busy_ns, LAUNCHES * CALLS * 2000);
    assert_int_equal(b.overlap_ns, LAUNCHES * CALLS * 100);
    assert_int_equal(b.gap_ns, LAUNCHES * (CALLS * 50 + 20));
    assert_true(b.kernels_per_call == 2);
    assert_true(b.ratio == 1);
    assert_true(b.mapped);
    assert_int_equal(b.n, 3);
    assert_string_equal(b.part[0].name, "first");
    assert_string_equal(b.part[1].name, "second");
    assert_string_equal(b.part[1].range, "tail");
    assert_true(b.part[0].shape.grid[0] == 1 && b.part[1].shape.grid[0] == 3 && b.part[1].shape.shared_B == 4096);
    assert_int_equal(b.part[1].count, LAUNCHES * CALLS);
    assert_int_equal(b.part[1].min_ns, 700);
    assert_int_equal(b.part[2].kind, ACTIVITY_COPY);
    assert_int_equal(b.part[2].bytes, LAUNCHES * CALLS * 4096);
    assert_int_equal(b.part[2].gap_ns, LAUNCHES * CALLS * 50);
    assert_true(fabs(breakdown_call_ns(&b) - SPAN_NS / 2.0) < 1e-9);
}

/* Records arrive buffer by buffer, in any order. */
static void order_is_nothing(void **state)
{
    (void)state;
    struct stream s, t;
    make(&s), make(&t);
    for (int i = 0; i < RECORDS; i++) t.a[i] = s.a[(i * 7 + 5) % RECORDS];   /* 7 and 120 have no common divisor */
    struct breakdown x = analyse(&s), y = analyse(&t);
    assert_int_equal(x.span_ns, y.span_ns);
    assert_int_equal(x.gap_ns, y.gap_ns);
    assert_string_equal(y.failed, "");
}

static void one_kernel_inside_another(void **state)
{
    (void)state;
    struct activity a[] = {{ACTIVITY_KERNEL, 1, 0, 100, 900, 0, "long"}, {ACTIVITY_KERNEL, 2, 0, 200, 300, 0, "short"},
        {ACTIVITY_SET, 3, 0, 1000, 1010, 64, "set"}};
    struct stream s = {.r = {.n = 3, .activity = a, .launches = 1, .calls = 1, .untraced_ns = NAN}};
    struct breakdown b = analyse(&s);
    assert_string_equal(b.failed, "");
    assert_int_equal(b.span_ns, 910);
    assert_int_equal(b.overlap_ns, 100);
    assert_int_equal(b.gap_ns, 100);
    assert_true(isnan(b.ratio));
    assert_true(b.kernels_per_call == 2);
}

static void dropped(void **state)
{
    (void)state;
    struct stream s;
    make(&s);
    s.r.dropped = 1;
    struct breakdown b = analyse(&s);
    assert_non_null(strstr(b.failed, "dropped"));
}

/* One launch in twenty may be lost, not two: what is left still adds up, and does not count it. */
static void launches_left_out(struct stream *s, int64_t *(*counter)(struct breakdown *), void (*spoil)(struct stream *, int))
{
    make(s);
    spoil(s, 4);
    struct breakdown b = analyse(s);
    assert_string_equal(b.failed, "");
    assert_int_equal(b.used, LAUNCHES - 1);
    assert_int_equal(*counter(&b), 1);
    assert_int_equal(b.span_ns, (LAUNCHES - 1) * SPAN_NS);
    assert_true(b.kernels_per_call == 2);
    spoil(s, 4 + NODES);
    b = analyse(s);
    assert_int_equal(*counter(&b), 2);
    assert_non_null(strstr(b.failed, "2 of 20 launches"));
}

static int64_t *zero_count(struct breakdown *b) { return &b->zero_time; }
static int64_t *reversed_count(struct breakdown *b) { return &b->reversed; }
static int64_t *double_count(struct breakdown *b) { return &b->duplicates; }
static int64_t *missing_count(struct breakdown *b) { return &b->missing; }
static void spoil_zero(struct stream *s, int i) { s->a[i].start_ns = s->a[i].end_ns = 0; }
static void spoil_end(struct stream *s, int i) { s->a[i].end_ns = 0; }
static void spoil_length(struct stream *s, int i) { s->a[i].end_ns = s->a[i].start_ns; }
static void spoil_order(struct stream *s, int i) { s->a[i].end_ns = s->a[i].start_ns - 5; }
static void spoil_double(struct stream *s, int i) { s->a[s->r.n++] = s->a[i]; }
static void spoil_missing(struct stream *s, int i) { s->a[i] = s->a[--s->r.n]; }

static void faulty_records(void **state)
{
    (void)state;
    struct stream s;
    launches_left_out(&s, zero_count, spoil_zero);
    launches_left_out(&s, zero_count, spoil_end);
    launches_left_out(&s, zero_count, spoil_length);
    launches_left_out(&s, reversed_count, spoil_order);
    launches_left_out(&s, double_count, spoil_double);
    launches_left_out(&s, missing_count, spoil_missing);
}

/* What a whole buffer that came twice, or the loss of the first session, looks like. */
static void whole_buffers(void **state)
{
    (void)state;
    struct stream s;
    make(&s);
    for (int i = 0; i < RECORDS / 2; i++) spoil_double(&s, i);
    struct breakdown b = analyse(&s);
    assert_int_equal(b.duplicates, RECORDS / 2);
    assert_string_not_equal(b.failed, "");
    make(&s);
    s.r.n = 0;
    b = analyse(&s);
    assert_int_equal(b.missing, RECORDS);
    assert_non_null(strstr(b.failed, "no launch of 20"));
    make(&s);
    s.r.n = RECORDS / 2;
    b = analyse(&s);
    assert_int_equal(b.missing, RECORDS / 2);
    assert_non_null(strstr(b.failed, "10 of 20 launches"));
}

static void foreign_records(void **state)
{
    (void)state;
    struct stream s;
    make(&s);
    s.a[s.r.n++] = (struct activity){ACTIVITY_KERNEL, 99, 0, 5, 10, 0, "eager"};
    struct breakdown b = analyse(&s);
    assert_int_equal(b.unmatched, 1);
    assert_non_null(strstr(b.failed, "belong to no launch"));
    make(&s);
    s.a[s.r.n++] = (struct activity){ACTIVITY_KERNEL, 7, 4711, 1000100, 1000200, 0, "of another graph"};
    b = analyse(&s);
    assert_int_equal(b.unmatched, 1);
    assert_string_not_equal(b.failed, "");
    make(&s);
    s.r.n_nodes = 0;   /* no map: the number of nodes still says that one is too many */
    s.a[s.r.n++] = (struct activity){ACTIVITY_KERNEL, 7, 4711, 1000100, 1000200, 0, "of another graph"};
    b = analyse(&s);
    assert_false(b.mapped);
    assert_int_equal(b.unmatched, 1);
    assert_string_not_equal(b.failed, "");
}

/* A whole launch more than was made: somebody else replays our graph, or the tracer was on too early. */
static void one_launch_too_many(void **state)
{
    (void)state;
    struct stream s;
    make(&s);
    for (int i = 0; i < NODES; i++) {
        s.a[s.r.n] = s.a[i];
        s.a[s.r.n].correlation = 99;
        s.a[s.r.n].start_ns += 5000000, s.a[s.r.n++].end_ns += 5000000;
    }
    struct breakdown b = analyse(&s);
    assert_int_equal(b.unmatched, NODES);
    assert_non_null(strstr(b.failed, "belong to no launch"));
}

/* Three kernels in two calls can't be the same in each. */
static void kernels_divide(void **state)
{
    (void)state;
    struct stream s;
    make(&s);
    for (int i = 0; i < RECORDS; i += NODES) s.a[i].kind = ACTIVITY_SET;
    struct breakdown b = analyse(&s);
    assert_non_null(strstr(b.failed, "not the same in each"));
}

static void ratio_to_untraced(void **state)
{
    (void)state;
    struct stream s;
    make(&s);
    s.r.untraced_ns = CALL_NS * 1.2;
    struct breakdown b = analyse(&s);
    assert_non_null(strstr(b.failed, "some are lost"));
    make(&s);
    s.r.untraced_ns = CALL_NS / 3.0;   /* thrice, but less than 3 us a kernel */
    b = analyse(&s);
    assert_string_equal(b.failed, "");
    for (int i = 0; i < RECORDS; i++) s.a[i].start_ns = s.a[i].start_ns * 10, s.a[i].end_ns = s.a[i].end_ns * 10;
    b = analyse(&s);
    assert_non_null(strstr(b.failed, "shows the tracer"));
}

/* Either side of each limit: nine tenths; half as much again, and of that 3 us a kernel. */
static void limits_of_the_ratio(void **state)
{
    static const struct { int times; double ratio; const char *failed; } of[] = {
        {20, 0.899, "some are lost"}, {20, 0.901, ""}, {20, 1.499, ""}, {20, 1.501, "shows the tracer"},
        {20, 2.9, "shows the tracer"}};
    (void)state;
    for (int i = 0; i < COUNT(of); i++) {
        struct stream s;
        make(&s);
        for (int k = 0; k < RECORDS; k++) s.a[k].start_ns *= (uint64_t)of[i].times, s.a[k].end_ns *= (uint64_t)of[i].times;
        s.r.untraced_ns = of[i].times * (SPAN_NS / (double)CALLS) / of[i].ratio;
        struct breakdown b = analyse(&s);
        assert_true(fabs(b.ratio - of[i].ratio) < 1e-9);
        assert_true(*of[i].failed ? strstr(b.failed, of[i].failed) != NULL : !*b.failed);
    }
    for (int more = 0; more < 2; more++) {   /* thrice as long, by 3 us less or more a nanosecond for each of two kernels */
        struct activity a[] = {{ACTIVITY_KERNEL, 1, 0, 1000, 5000, 0, "a"},
            {ACTIVITY_KERNEL, 2, 0, 5000, 9000 + 2 * (uint64_t)more, 0, "b"}};
        struct stream s = {.r = {.n = 2, .activity = a, .launches = 1, .calls = 1, .untraced_ns = 2001}};
        struct breakdown b = analyse(&s);
        assert_int_equal(*b.failed != 0, more);
    }
}

/* A clock that was never read, or ran off: such a length has no room in any sum. */
static void endless_records(void **state)
{
    enum { SECOND = 1000000000 };
    static const uint64_t day = 86400ull * SECOND;
    static const struct { uint64_t start, end, then; bool good; } of[] = {
        {100, UINT64_MAX, 0, false}, {1, UINT64_MAX, 0, false}, {UINT64_MAX - 10, UINT64_MAX, 0, true}, {1, 2 + day, 0, false},
        {1, 1 + day, 0, true}, {100, 200, UINT64_MAX - 10, false}, {100, 200, 101 + day, false}, {100, 200, 100 + day, true}};
    (void)state;
    for (int i = 0; i < COUNT(of); i++) {
        struct activity a[] = {{ACTIVITY_KERNEL, 1, 0, of[i].start, of[i].end, 0, "a"},
            {ACTIVITY_KERNEL, 2, 0, of[i].then, of[i].then + 5, 0, "b"}};
        struct stream s = {.r = {.n = of[i].then ? 2 : 1, .activity = a, .launches = 1, .calls = 1, .untraced_ns = NAN}};
        struct breakdown b = analyse(&s);
        assert_int_equal(b.reversed, !of[i].good);
        assert_int_equal(b.used, of[i].good);
        assert_int_equal(*b.failed != 0, !of[i].good);
        assert_true(b.span_ns >= 0);
    }
}

static void many_names(void **state)
{
    (void)state;
    static struct activity a[MAX_PARTS + 20];
    static char name[MAX_PARTS + 20][16];
    for (int i = 0; i < COUNT(a); i++) {
        text(name[i], sizeof name[i], "kernel%d", i);
        a[i] = (struct activity){ACTIVITY_KERNEL, (uint32_t)i, 0, 1000 + 10 * (uint64_t)i, 1005 + 10 * (uint64_t)i, 0, name[i]};
    }
    struct stream s = {.r = {.n = COUNT(a), .activity = a, .launches = 1, .calls = 1, .untraced_ns = NAN}};
    struct breakdown b = analyse(&s);
    assert_int_equal(b.n, MAX_PARTS);
    assert_string_equal(b.part[0].name, "others");
    assert_int_equal(b.part[0].count, 21);
}

static void short_names(void **state)
{
    (void)state;
    static const char *const of[][2] = {
        {"gather", "gather"}, {"void split_kernel<64, (bool)1>(attn::args, float *)", "split_kernel<64, (bool)1>"},
        {"void (anonymous namespace)::combine<(int)4>(Arg)", "combine<(int)4>"}, {"void a::b<c::d<1>>::run(int (*)(int))", "run"},
        {"sm90_xmma_gemm_bf16", "sm90_xmma_gemm_bf16"}, {"", ""}, {"(anonymous namespace)::k()", "k"}};
    char word[80];
    for (int i = 0; i < COUNT(of); i++) assert_string_equal(kernel_short_name(of[i][0], word, sizeof word), of[i][1]);
}

/* The range first; the whole in what there is room for; nothing twice. */
static void parts_are_named(void **state)
{
    static const struct { const char *range, *name; int most; const char *words; } of[] = {
        {"", "gather", 32, "gather"}, {"tail", "second", 32, "tail: second"},
        {"product", "nvjet_sm90_tss_64x384_64x3_1x2_h_bz_coopB_TNT", 32, "product: nvjet_sm90_tss_64x384.."},
        {"relu", "indexer_relu", 32, "indexer_relu"}, {"relu", "indexer_relu_and_a_long_rest_of_it", 20, "indexer_relu_and_a.."},
        {"Gather", "gather<64, (bool)1>", 32, "gather<64, (bool)1>"}, {"relu", "prelude", 32, "relu: prelude"},
        {"sum", "sum2_sums", 32, "sum: sum2_sums"}, {"q k", "gemm q k", 32, "gemm q k"}, {"", "", 32, ""},
        {"", "abcdef", 6, "abcdef"},
        {"a range as long as a kernel's own name is", "k1", 32, "a range as lon..: k1"},
        {"", "abc\xC3\xA4\xC3\xA4\xC3\xA4", 8, "abc\xC3\xA4.."},
        {"x", "?", 32, "x: ?"}, {":", "a:b", 32, "a:b"}};
    char words[256];
    (void)state;
    for (int i = 0; i < COUNT(of); i++) {
        assert_string_equal(part_text(of[i].range, of[i].name, of[i].most, words, sizeof words), of[i].words);
        assert_true((int)strlen(words) <= of[i].most);
    }
}

static struct row measured(double checked_pct)
{
    struct row row;
    row_clear(&row);
    strcpy(row.status, "ok");
    row.checked_pct = checked_pct, row.t_med_ns = 1000, row.flop = 4e6, row.bytes = 2e6, row.workspace_B = 500;
    return row;
}

/* Amounts by hand: 3 MB from L2, 100 of them a workspace's; half of the ceilings. */
static void derived_from_counters(void **state)
{
    struct machine machine = {.facts.l2_bytes = 1 << 20, .ceilings = {.read_GBps = 4200, .matrix_GFLOPs = 8000}};
    struct profile p = {.read_B = 1e6, .write_B = 900};
    struct row row = measured(100), probe = measured(0);
    (void)state;
    counters_clear(&p.counters);
    struct derived none = profile_derive(&p, &row, &machine);
    assert_true(isnan(none.l2_reread) && isnan(none.workspace_B) && isnan(none.pct_read_ceiling) && none.flop_per_B == 2);
    p.counters.l2_read_B = 3e6 + 100, p.counters.l2_write_B = 1000;
    p.counters.dram_read_B = 2e6, p.counters.dram_write_B = 1e5;
    struct derived d = profile_derive(&p, &row, &machine);
    assert_true(d.workspace_B == 200 && d.l2_reread == 3 && d.dram_reread == 2);
    assert_true(fabs(d.pct_read_ceiling - 50) < 1e-9 && fabs(d.pct_matrix_ceiling - 50) < 1e-9);
    assert_true(fabs(d.flop_per_B - 4e6 / 2.1e6) < 1e-9);

    /* Workspace larger than L2 comes from DRAM as far as L2 has lost it: all of it, or part, and then there is no factor. */
    struct row wide = measured(100);
    wide.workspace_B = 3 << 20;
    p.counters.l2_write_B = 900 + 2e6, p.counters.dram_read_B = 3.5e6;
    d = profile_derive(&p, &wide, &machine);
    assert_true(d.workspace_B == 4e6 && d.dram_reread == 1.5 && !*d.why);
    p.counters.dram_read_B = 2.99e6;
    d = profile_derive(&p, &wide, &machine);
    assert_true(d.workspace_B == 4e6 && isnan(d.dram_reread) && !strcmp(d.why, "the workspace is partly in L2"));
    p.counters.l2_write_B = 1000, p.counters.dram_read_B = 0.7e6;   /* no workspace taken off: a figure, whatever it is */
    d = profile_derive(&p, &wide, &machine);
    assert_true(d.dram_reread == 0.7 && !*d.why);
    p.counters.dram_read_B = NAN;
    assert_true(!*profile_derive(&p, &wide, &machine).why);
    p.counters.dram_read_B = 2e6;

    /* A probe moves the op's bytes, but its arithmetic is nobody's: no place in a roofline. */
    d = profile_derive(&p, &probe, &machine);
    assert_true(isnan(profile_flop(&probe)) && isnan(d.pct_matrix_ceiling) && isnan(d.flop_per_B));
    assert_true(d.l2_reread == 3 && fabs(d.pct_read_ceiling - 50) < 1e-9);
}

static int add_up(void *arg)
{
    volatile double sum = 0;
    for (int i = 0; i < 2000000; i++) sum += i;
    ++*(int *)arg;
    return 0;
}

static int fails(void *arg) { ++*(int *)arg; return 5; }

/* perf_event: figures where the kernel offers it, else none at all and why; and no counter stays open. */
static void host_counters(void **state)
{
    struct counters c;
    int runs = 0, before = dup(0), error = host_count(add_up, &runs, &c);
    (void)state;
    if (!error) {
        assert_true(runs == 1 && c.passes == 1 && c.instructions > 2e6 && c.cycles > 1e5 && c.llc_misses >= 0 && !*c.why);
        assert_int_equal(host_count(fails, &runs, &c), 5);
    }
    if (error) assert_true(runs == 0 && *c.why && c.passes == 0);
    assert_true(isnan(c.instructions) && isnan(c.cycles) && isnan(c.llc_misses));
    int after = dup(0);
    assert_int_equal(after, before + 1);
    close(before), close(after);
}

/* What a tracer of a device refuses, or says that it lost. */
static struct fake_tracer {
    const char *why;
    int         begun, counted, launched, timed;   /* timed: launches of the last graphs that were timed */
} tracer;

static int trace_begin(struct dev *dev, bool eager, char *why, size_t size)
{
    (void)dev, (void)eager;
    tracer.begun++;
    return tracer.why ? text(why, size, "%s", tracer.why), 39 : 0;
}

/* Nothing but a dropped record. */
static int trace_end(struct dev *dev, struct recording *ret, char *why, size_t size)
{
    (void)dev, (void)why, (void)size;
    ret->activity = must_alloc(1, sizeof *ret->activity), ret->dropped = 1;
    return 0;
}

static int trace_count(struct dev *dev, enqueue_fn *enqueue, void *arg, struct counters *ret)
{
    (void)dev;
    counters_clear(ret);
    ret->dram_read_B = 4096, ret->passes = 1;
    tracer.counted++;
    return enqueue(arg);
}

static const struct dev_ops *device_ops;   /* of the device below all these */

static int launch_nothing(const struct call *call) { (void)call; tracer.launched++; return 0; }

static int count_timed(struct dev *dev, struct graph *const *graph, int n, double *ret_ns)
{
    int before = tracer.launched, error = device_ops->time(dev, graph, n, ret_ns);
    tracer.timed = tracer.launched - before;
    return error;
}

/* A tracer that has been on is no tracer off: what a call takes is known before. */
static int time_no_more(struct dev *dev, struct graph *const *graph, int n, double *ret_ns)
{
    (void)dev, (void)graph, (void)n, (void)ret_ns;
    fail_msg("timed beside or after a tracer");
    return 0;
}

static void no_step(void *arg, const char *what) { (void)arg, (void)what; }

/* Profiles a kernel on that tracer. */
static struct profile *profiled(const char *why)
{
    static const struct trace_ops ops = {.begin = trace_begin, .end = trace_end, .count = trace_count};
    static const struct kernel kernel = {.name = "toy/k", .launch = launch_nothing};
    struct workload w = {.dev = dev_open_host(), .sets = 8, .ring = must_alloc(8 * MAX_TENSORS, sizeof(struct arg))};
    struct bound bound = {.w = &w, .kernel = &kernel};
    struct profile *ret = must_alloc(1, sizeof *ret);
    w.dev->machine.engine = CUDA, w.dev->trace = &ops;
    tracer = (struct fake_tracer){.why = why};
    struct dev_ops timing = *w.dev->ops, timeless = timing;
    const struct dev_ops *whole = device_ops = w.dev->ops;
    double untraced_ns;
    timing.time = count_timed;
    w.dev->ops = &timing;
    assert_int_equal(profile_time(&bound, NAN, no_step, NULL, &untraced_ns), 0);
    assert_true(untraced_ns > 0 && !tracer.begun);
    timeless.time = time_no_more;
    w.dev->ops = &timeless;
    assert_int_equal(profile_run(&bound, "toy/k", untraced_ns, 100, 0, no_step, NULL, ret), 0);   /* whatever the tracer says */
    free(w.ring);
    w.dev->ops = whole;
    w.dev->ops->close(w.dev);
    return ret;
}

/* What stands in the run's two files, and on the screen. */
static char *written(const struct profile *p, const char *file)
{
    char folder[] = "/tmp/kbench-profile-XXXXXX", path[100], *ret;
    struct machine machine = {.engine = CUDA};
    struct profile_files files;
    struct row row = measured(100);
    size_t size;
    strcpy(row.op, "toy"), strcpy(row.kernel, "toy/k");
    if (!file) {
        struct report_options options = {.width = 80};
        FILE *f = open_memstream(&ret, &size);
        report_profile(f, &row, p, &machine, &options);
        fclose(f);
        return ret;
    }
    assert_non_null(mkdtemp(folder));
    struct runfolder run = {.path = ""};
    text(run.path, sizeof run.path, "%s", folder);
    assert_int_equal(profile_files_open(&files, &run, false), 0);
    assert_int_equal(profile_files_write(&files, &row, p, &machine), 0);
    profile_files_close(&files);
    assert_int_equal(file_read(text(path, sizeof path, "%s/%s", folder, file), &ret, &size), 0);
    unlink(text(path, sizeof path, "%s/breakdown.csv", folder)), unlink(text(path, sizeof path, "%s/counters.csv", folder));
    rmdir(folder);
    return ret;
}

/* A kernel's phases stand before what ran in them, in the terminal and in Markdown; long names are cut, with a sign of it. */
static void ranges_are_shown(void **state)
{
    struct machine machine = {.engine = CUDA};
    struct row row = measured(100);
    struct stream s;
    struct profile *p = must_alloc(1, sizeof *p);
    (void)state;
    counters_clear(&p->counters);
    make(&s);
    for (int i = 0; i < RECORDS; i += 3) s.a[i].name = "nvjet_sm90_tss_64x384_64x3_1x2_h_bz_coopB_TNT";
    breakdown_make(&s.r, &p->replay);
    for (int markdown = 0; markdown < 2; markdown++) {
        struct report_options options = {.width = 80, .markdown = markdown};
        char *words;
        size_t size;
        FILE *f = open_memstream(&words, &size);
        report_profile(f, &row, p, &machine, &options);
        fclose(f);
        assert_non_null(strstr(words, "\n    tail: second                          1x"));
        assert_non_null(strstr(words, "\n    nvjet_sm90_tss_64x384_64x3_1x2_h..    1x"));
        free(words);
    }
    free(p);
}

/* How a kernel was launched, where it was launched so each time; and eagerly its range, which no node tells. */
static void launches_have_shapes(void **state)
{
    (void)state;
    struct stream s;
    struct profile *p = must_alloc(1, sizeof *p);
    counters_clear(&p->counters);
    make(&s);
    for (int i = 0; i < RECORDS; i += 3) s.a[i].shape.cluster[0] = 2, s.a[i].shape.cluster[1] = s.a[i].shape.cluster[2] = 1;
    s.a[2].shape.shared_B = 8192;
    breakdown_make(&s.r, &p->replay);
    struct activity eager[] = {
        {.kind = ACTIVITY_KERNEL, .correlation = 1, .start_ns = 10, .end_ns = 20, .name = "k", .range = "late"},
        {.kind = ACTIVITY_KERNEL, .correlation = 2, .start_ns = 30, .end_ns = 60, .name = "k"}};
    struct recording r = {.n = 2, .activity = eager, .launches = 1, .calls = 1, .untraced_ns = NAN};
    breakdown_make(&r, &p->eager);
    assert_int_equal(p->eager.n, 2);
    assert_string_equal(p->eager.part[1].range, "late");
    assert_string_equal(p->eager.part[0].range, "");
    char *parts = written(p, "breakdown.csv");
    assert_non_null(strstr(parts, "bytes,grid,block,cluster,shared_B\n"));
    assert_non_null(strstr(parts, ",1x1x1,128x1x1,2x1x1,4096\n"));
    assert_non_null(strstr(parts, ",replay,kernel,second,tail,40,"));
    char *second = strstr(parts, ",second,tail,"), *end = strchr(second, '\n');
    assert_memory_equal(end - 5, ",,,,,", 5);   /* not each time the same */
    free(parts), free(p);
}

static int lines_of(const char *words)
{
    int n = 0;
    for (; *words; words++) n += *words == '\n';
    return n;
}

/* Another tool has the tracer: the row keeps its times by events and its counters, and says why there is no breakdown. */
static void held_by_another_tool(void **state)
{
    const char *why = "another tool holds CUPTI (nsys, ncu, a debugger?); events alone are used beside it";
    struct profile *p = profiled(why);
    char *counters = written(p, "counters.csv"), *parts = written(p, "breakdown.csv"), *screen = written(p, NULL);
    (void)state;
    assert_string_equal(p->note, why);
    assert_true(p->replay.launches == 0 && p->eager.launches == 0 && tracer.begun == 1 && tracer.counted == 1);
    assert_true(p->counters.dram_read_B > 0 && !*p->replay.failed);
    assert_int_equal(lines_of(parts), 1);
    assert_int_equal(lines_of(counters), 2);
    assert_non_null(strstr(counters, why));
    assert_non_null(strstr(screen, "no trace: another tool holds CUPTI"));
    free(counters), free(parts), free(screen), free(p);
}

/* The same graphs: the first call of a graph takes longer than its others. */
static void traced_as_timed(void **state)
{
    struct profile *p = profiled(NULL);
    (void)state;
    assert_true(tracer.timed > 8);   /* more than once round the ring */
    assert_int_equal(p->replay.calls, tracer.timed);
    free(p);
}

static void step_counted(void *arg, const char *what) { *(int *)arg += !strcmp(what, "untraced replays"); }

/* Of a ring that takes five seconds to go round a part is timed, and no walk is longer than a fraction of a second. */
static void long_rings_are_timed_in_part(void **state)
{
    enum { SETS = 1000, CALLS = 20 };
    static const struct kernel kernel = {.name = "toy/k", .launch = launch_nothing};
    struct workload w = {.dev = dev_open_host(), .sets = SETS, .ring = must_alloc(SETS * MAX_TENSORS, sizeof(struct arg))};
    struct bound bound = {.w = &w, .kernel = &kernel};
    int steps = 0;
    double untraced_ns;
    (void)state;
    tracer = (struct fake_tracer){.why = NULL};
    assert_int_equal(profile_time(&bound, 5e6, step_counted, &steps, &untraced_ns), 0);
    assert_true(untraced_ns > 0 && steps > 1);
    assert_int_equal(tracer.launched, steps * CALLS);   /* each walk is a step, so that a time limit is for one */
    free(w.ring);
    w.dev->ops->close(w.dev);
}

/* A breakdown that does not hold leaves no shares behind, only why. */
static void what_failed_is_not_written(void **state)
{
    struct profile *p = profiled(NULL);
    char *counters = written(p, "counters.csv"), *parts = written(p, "breakdown.csv"), *screen = written(p, NULL);
    (void)state;
    assert_string_equal(p->replay.failed, "the tracer dropped 1 records");
    assert_string_equal(p->eager.failed, "the tracer dropped 1 records");
    assert_int_equal(lines_of(parts), 1);
    assert_non_null(strstr(counters, "the tracer dropped 1 records"));
    assert_non_null(strstr(counters, "launch outside of a graph: the tracer dropped 1 records"));
    assert_non_null(strstr(screen, "the breakdown does not hold: the tracer dropped 1 records"));
    free(counters), free(parts), free(screen), free(p);

    struct stream s;   /* whole but for one dropped record: parts are there, and not for anybody's use */
    p = must_alloc(1, sizeof *p);
    counters_clear(&p->counters);
    make(&s);
    s.r.dropped = 1;
    breakdown_make(&s.r, &p->replay);
    parts = written(p, "breakdown.csv");
    assert_int_equal(p->replay.n, 3);
    assert_int_equal(lines_of(parts), 1);
    free(parts);
    make(&s);
    breakdown_make(&s.r, &p->replay);
    parts = written(p, "breakdown.csv");
    assert_int_equal(lines_of(parts), 1 + 3 + 3);
    free(parts), free(p);
}

/* A pass of the counters is about a tenth of a second, at least a call; parts are equal and leave out next to nothing. */
static void passes_are_short(void **state)
{
    static const struct { int sets; double call_ns; int parts, calls; } of[] = {
        {245, 3e3, 1, 245}, {7, 470e3, 1, 7}, {4000, 3e3, 1, 4000}, {245, 4.4e6, 11, 22}, {1, 5e9, 1, 1}, {4, 5e9, 4, 1},
        {5, 50e6, 2, 2}, {127, 1e9, 63, 2}, {3, 60e6, 3, 1}, {900, 243e3, 7, 128}};
    (void)state;
    for (int i = 0; i < COUNT(of); i++) {
        int parts, calls;
        tour_parts(of[i].sets, of[i].call_ns, &parts, &calls);
        assert_int_equal(parts, of[i].parts);
        assert_int_equal(calls, of[i].calls);
    }
    for (int sets = 1; sets < 3000; sets++)
        for (double call_ns = 1e3; call_ns < 2e9; call_ns *= 3) {
            int parts, calls;
            tour_parts(sets, call_ns, &parts, &calls);
            assert_in_range(parts, 1, 64);
            assert_true(calls >= 1 && parts * calls <= sets && parts * calls > sets - parts);
            assert_true(parts == 1 || (calls < 256 && 2 * parts * calls > sets));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_up), cmocka_unit_test(order_is_nothing), cmocka_unit_test(one_kernel_inside_another),
        cmocka_unit_test(dropped), cmocka_unit_test(faulty_records), cmocka_unit_test(whole_buffers),
        cmocka_unit_test(foreign_records), cmocka_unit_test(one_launch_too_many),
        cmocka_unit_test(kernels_divide), cmocka_unit_test(ratio_to_untraced), cmocka_unit_test(limits_of_the_ratio),
        cmocka_unit_test(endless_records),
        cmocka_unit_test(derived_from_counters), cmocka_unit_test(many_names), cmocka_unit_test(short_names),
        cmocka_unit_test(parts_are_named), cmocka_unit_test(ranges_are_shown), cmocka_unit_test(launches_have_shapes),
        cmocka_unit_test(passes_are_short), cmocka_unit_test(held_by_another_tool), cmocka_unit_test(traced_as_timed),
        cmocka_unit_test(long_rings_are_timed_in_part),
        cmocka_unit_test(what_failed_is_not_written),
        cmocka_unit_test(host_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Before, with and after a tracer on a fake device, whose calls take longer where it is loaded, and more once it has been on. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"
#include "breakdown.h"
#include "loaded.h"

enum { SETS = 37, LANES = 2, ROUNDS = 20, BROKEN = 7 };

struct graph {
    double ns;
    int    calls, traced_before;   /* traces there had been when it was captured */
};

struct fake {
    struct dev    dev;
    struct graph *capturing;
    double        left_behind;     /* by a tracer: a call takes so many times as long */
    bool          on, refuses, loses, blind, breaks, not_there, stays, there;
    int           loads, begun, ended, graphs, runs, timed, timed_there, timed_before_load, timed_before_trace, replays_traced;
    int           stays_from;      /* can't be unloaded after so many samples; 0: can */
    double        loaded;          /* what it costs to have it there */
    double        drift;           /* what each sample takes longer than the one before */
    double        uneven;          /* what every other run takes longer than the first */
};

static struct fake *fake_of(struct dev *dev) { return (struct fake *)dev; }

static int launch(const struct call *call)
{
    struct fake *fake = (struct fake *)call->stream;
    fake->capturing->ns += *(const double *)call->state;
    fake->capturing->calls++;
    return 0;
}

static int capture(struct dev *dev, enqueue_fn *enqueue, void *arg, struct graph **ret, int *ret_nodes, char *why, size_t size)
{
    struct fake *fake = fake_of(dev);
    (void)why, (void)size;
    *ret = fake->capturing = must_alloc(1, sizeof **ret);
    (*ret)->traced_before = fake->begun;
    fake->runs += !fake->graphs++;   /* each begins without; the pilots before are as many as lanes */
    int error = enqueue(arg);
    *ret_nodes = (*ret)->calls;
    return error;
}

static int replay(struct dev *dev, struct graph *graph)
{
    struct fake *fake = fake_of(dev);
    assert_int_equal(graph->traced_before, fake->begun);
    fake->replays_traced += fake->on;
    return fake->breaks ? BROKEN : 0;
}

static void drop(struct dev *dev, struct graph *graph)
{
    fake_of(dev)->graphs--;
    free(graph);
}

/* What is timed is timed without the tracer, by graphs that were captured since it was on last. */
static int time_graphs(struct dev *dev, struct graph *const *graph, int n, double *ret)
{
    struct fake *fake = fake_of(dev);
    assert_false(fake->on);
    *ret = 0;
    for (int i = 0; i < n; i++) {
        assert_int_equal(graph[i]->traced_before, fake->begun);
        *ret += graph[i]->ns * (fake->ended ? fake->left_behind : fake->there ? fake->loaded : 1);
    }
    *ret *= 1 + fake->drift * fake->timed + fake->uneven * (fake->runs % 2);
    return 0;
}

static int sync_nothing(struct dev *dev) { return (void)dev, 0; }
static double no_clock(struct dev *dev) { return (void)dev, NAN; }

static int trace_load(struct dev *dev, char *why, size_t size)
{
    struct fake *fake = fake_of(dev);
    assert_false(fake->on);
    if (!fake->loads++) fake->timed_before_load = fake->timed;
    if (fake->not_there) return text(why, size, "no such library"), -1;
    fake->there = true;
    return 0;
}

static int trace_unload(struct dev *dev, char *why, size_t size)
{
    struct fake *fake = fake_of(dev);
    assert_false(fake->on || fake->begun);
    bool stays = fake->stays || (fake->stays_from && fake->timed > fake->stays_from);
    if (fake->there && stays) return text(why, size, "another tool's"), -1;
    fake->there = false;
    return 0;
}

static int trace_begin(struct dev *dev, bool eager, char *why, size_t size)
{
    assert_false(eager);
    struct fake *fake = fake_of(dev);
    assert_false(fake->on);
    if (!fake->begun) fake->timed_before_trace = fake->timed;
    if (fake->refuses) return text(why, size, "another tool holds it"), -1;
    fake->on = fake->there = true;
    fake->begun++;
    return 0;
}

static int trace_end(struct dev *dev, struct recording *ret, char *why, size_t size)
{
    struct fake *fake = fake_of(dev);
    assert_true(fake->on);
    fake->on = false;
    fake->ended++;
    if (fake->loses) return text(why, size, "flush failed"), -1;
    ret->activity = must_alloc(1, sizeof *ret->activity);
    ret->n = !fake->blind;
    return 0;
}

static const struct dev_ops fake_ops = {.capture = capture, .replay = replay, .drop = drop, .time = time_graphs,
    .sync = sync_nothing, .clock_MHz = no_clock};
static const struct trace_ops tracer = {.load = trace_load, .unload = trace_unload, .begin = trace_begin,
    .end = trace_end}, no_tracer = {.load = NULL};

struct bench {
    struct fake     fake;
    struct workload w;
    struct kernel   kernel;
    struct bound    bound[LANES];
    struct lane     lane[LANES];
    struct timer    timer;
    struct loaded   loaded[LANES];
    int             chunk_sets;   /* 0: not cut yet */
    int             error, at;
};

static const double call_ns[LANES] = {12500, 41000};

static void count_samples(void *arg, const char *what)
{
    struct bench *b = arg;
    if (strcmp(what, "timed sample")) return;
    b->fake.timed++;
    b->fake.timed_there += b->fake.there;
    if (!b->chunk_sets) b->chunk_sets = b->timer.chunk_sets;
    assert_int_equal(b->timer.chunk_sets, b->chunk_sets);   /* all blocks are cut alike, however long a call takes by then */
}

static int never_move(void *arg, int placement)
{
    (void)arg, (void)placement;
    fail_msg("data has moved between the blocks");
    return 0;
}

static struct bench *bench_new(const struct trace_ops *trace)
{
    struct bench *b = must_alloc(1, sizeof *b);
    b->fake = (struct fake){.dev = {.ops = &fake_ops, .trace = trace, .machine = {.engine = CUDA}, .sample_s = 0.002},
        .left_behind = 1.5, .loaded = 1.25};
    b->fake.dev.stream = (struct CUstream_st *)&b->fake;
    b->w = (struct workload){.dev = &b->fake.dev, .sets = SETS, .ring = must_alloc(SETS * MAX_TENSORS, sizeof(struct arg))};
    b->kernel = (struct kernel){.promises = PROBE, .launch = launch};   /* the fake computes no outputs to compare */
    for (int l = 0; l < LANES; l++) {
        b->bound[l] = (struct bound){.w = &b->w, .kernel = &b->kernel, .state = (void *)&call_ns[l]};
        b->lane[l] = (struct lane){.bound = &b->bound[l], .verdict = {.status = STATUS_OK}};
    }
    b->timer = (struct timer){.dev = &b->fake.dev, .w = &b->w, .timing = {.rounds = ROUNDS}, .seed = 3, .n_lanes = LANES,
        .lane = b->lane, .placements = 3, .move = never_move, .step = count_samples, .step_arg = b};
    return b;
}

static void run(struct bench *b)
{
    b->at = -1;
    b->error = loaded_run(&b->timer, &b->at, b->loaded);
}

static void bench_free(struct bench *b)
{
    assert_false(b->fake.on);
    timer_free(&b->timer);
    assert_int_equal(b->fake.graphs, 0);
    free(b->w.ring);
    free(b);
}

static bool about(double ns, double of_ns, double ratio) { return fabs(ns / of_ns - ratio) < 1e-9; }

static void sees_what_a_tracer_leaves(void **state)
{
    (void)state;
    struct bench *b = bench_new(&tracer);
    run(b);
    assert_int_equal(b->error, 0);
    for (int l = 0; l < LANES; l++) {
        const double *ns = b->loaded[l].ns;
        assert_string_equal(b->loaded[l].why, "");
        assert_int_equal(b->loaded[l].disturbed, 0);
        assert_true(about(ns[LOADED_FIRST], call_ns[l], 1) && about(ns[LOADED_AGAIN], call_ns[l], 1));
        assert_true(about(ns[LOADED_GONE], call_ns[l], 1) && about(ns[LOADED_OFF], call_ns[l], 1.25));
        assert_true(about(ns[LOADED_TRACED], call_ns[l], 1.5));
        assert_int_equal(b->lane[l].n, ROUNDS);
    }
    assert_int_equal(b->timer.timing.rounds, ROUNDS);
    assert_int_equal(b->fake.begun, LANES);
    assert_int_equal(b->fake.ended, LANES);
    assert_int_equal(b->fake.replays_traced, LANES);
    assert_int_equal(b->fake.timed_before_load, 2 * ROUNDS * LANES);
    assert_int_equal(b->fake.timed_before_trace, 4 * ROUNDS * LANES);
    assert_int_equal(b->fake.timed_there, 2 * ROUNDS * LANES);   /* half of the turns, and once it was on */
    assert_int_equal(b->fake.timed, LOADED_STATES * ROUNDS * LANES);
    bench_free(b);
}

/* Each round longer than the one before, each run other than the one before: as much as this moves runs, rounds by turns tell. */
static void parts_the_tracer_from_time(void **state)
{
    (void)state;
    struct bench *b = bench_new(&tracer);
    b->fake.drift = 1e-4, b->fake.uneven = 0.01;
    run(b);
    for (int l = 0; l < LANES; l++) {
        const double *ns = b->loaded[l].ns;
        assert_true(fabs(ns[LOADED_AGAIN] / ns[LOADED_FIRST] - 1) > 0.003);
        assert_true(fabs(ns[LOADED_GONE] / ns[LOADED_AGAIN] - 1) > 0.003);
        assert_true(fabs(ns[LOADED_OFF] / ns[LOADED_GONE] / 1.25 - 1) < 2e-4);
    }
    bench_free(b);
}

/* A lane that is found wrong is left alone: neither timed nor traced. */
static void leaves_wrong_lanes_out(void **state)
{
    (void)state;
    struct bench *b = bench_new(&tracer);
    b->lane[0].verdict.status = STATUS_WRONG;
    run(b);
    assert_int_equal(b->error, 0);
    for (int block = 0; block < LOADED_STATES; block++) {
        assert_true(isnan(b->loaded[0].ns[block]));
        assert_true(b->loaded[1].ns[block] > 0);
    }
    assert_int_equal(b->fake.begun, 1);
    bench_free(b);
}

static void without_a_tracer_nothing_is_timed(void **state)
{
    (void)state;
    struct bench *b = bench_new(&no_tracer);
    run(b);
    assert_int_equal(b->error, 0);
    assert_int_equal(b->fake.timed, 0);
    for (int l = 0; l < LANES; l++) {
        assert_non_null(strstr(b->loaded[l].why, "no tracer"));
        for (int block = 0; block < LOADED_STATES; block++) assert_true(isnan(b->loaded[l].ns[block]));
    }
    bench_free(b);
}

/* Nor in a process that has had one: its times before are times after. */
static void once_in_a_process(void **state)
{
    (void)state;
    struct bench *b = bench_new(&tracer);
    b->fake.dev.cupti = (struct cupti *)b;
    run(b);
    assert_int_equal(b->error, 0);
    assert_int_equal(b->fake.timed, 0);
    assert_non_null(strstr(b->loaded[0].why, "has been in this process"));
    bench_free(b);
}

/* A tracer that can't begin, hands over nothing, or has seen nothing was not on: what follows would be no answer. */
static void says_why_it_cannot_tell(void **state)
{
    (void)state;
    const char *const why[] = {"another tool holds it", "flush failed", "recorded nothing", "no such library", "another tool's"};
    for (int i = 0; i < COUNT(why); i++) {
        struct bench *b = bench_new(&tracer);
        b->fake.refuses = i == 0, b->fake.loses = i == 1, b->fake.blind = i == 2, b->fake.not_there = i == 3;
        b->fake.stays = i == 4;
        run(b);
        assert_int_equal(b->error, 0);
        assert_int_equal(b->fake.timed, (i < 3 ? LOADED_TRACED : LOADED_GONE) * ROUNDS * LANES);
        for (int l = 0; l < LANES; l++) {
            assert_non_null(strstr(b->loaded[l].why, why[i]));
            assert_true(b->loaded[l].ns[LOADED_AGAIN] > 0 && isnan(b->loaded[l].ns[LOADED_OFF]) == (i >= 3));
            assert_true(isnan(b->loaded[l].ns[LOADED_GONE]) == (i >= 3));
            assert_true(isnan(b->loaded[l].ns[LOADED_TRACED]));
        }
        bench_free(b);
    }
}

/* Preloaded, say: no time in this process is one without it. */
static void not_beside_another_tool(void **state)
{
    (void)state;
    struct bench *b = bench_new(&tracer);
    b->fake.there = b->fake.stays = true;
    run(b);
    assert_int_equal(b->error, 0);
    assert_int_equal(b->fake.timed, 0);
    assert_non_null(strstr(b->loaded[1].why, "another tool's"));
    bench_free(b);
}

/* In the middle: what was timed by turns is no answer any more. */
static void lost_between_rounds(void **state)
{
    (void)state;
    struct bench *b = bench_new(&tracer);
    b->fake.stays_from = 2 * ROUNDS * LANES + 9;
    run(b);
    assert_int_equal(b->error, 0);
    assert_int_equal(b->fake.begun, 0);
    for (int l = 0; l < LANES; l++) {
        assert_non_null(strstr(b->loaded[l].why, "another tool's"));
        assert_true(b->loaded[l].ns[LOADED_AGAIN] > 0 && isnan(b->loaded[l].ns[LOADED_OFF]));
    }
    bench_free(b);
}

static void names_the_lane_that_broke(void **state)
{
    (void)state;
    struct bench *b = bench_new(&tracer);
    b->fake.breaks = true;
    run(b);
    assert_int_equal(b->error, BROKEN);
    assert_int_equal(b->at, 0);
    assert_int_equal(b->fake.ended, 1);
    bench_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_what_a_tracer_leaves),
        cmocka_unit_test(parts_the_tracer_from_time),
        cmocka_unit_test(leaves_wrong_lanes_out),
        cmocka_unit_test(without_a_tracer_nothing_is_timed),
        cmocka_unit_test(once_in_a_process),
        cmocka_unit_test(says_why_it_cannot_tell),
        cmocka_unit_test(not_beside_another_tool),
        cmocka_unit_test(lost_between_rounds),
        cmocka_unit_test(names_the_lane_that_broke),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The timer on a fake device: its clock is ours, its jitter seeded, and the truth known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"
#include "timer.h"

enum { SETS = 37, MOST = 4096 };

/* A graph remembers which sets it visits and what its launches cost. */
struct graph {
    int    n, set[MOST];
    double ns;
};

struct fake {
    struct dev    dev;
    struct graph *capturing;
    uint64_t      random;
    double        jitter;          /* relative, one-sided: other work only ever takes away */
    int           last_visit[SETS], visits, shortest_return;
    int           samples;
};

struct truth {
    struct kernel kernel;          /* first: the harness sees a kernel */
    double        ns;
};

static struct fake *fake_of(struct dev *dev)
{
    return (struct fake *)dev;
}

static double uniform(struct fake *fake)
{
    fake->random = fake->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(fake->random >> 11) * 0x1p-53;
}

static int launch(const struct call *call)
{
    struct fake *fake = (struct fake *)call->stream;
    const struct truth *truth = call->state;
    int set = (int)(intptr_t)call->t[0].p - 1;
    assert_true(fake->capturing->n < MOST);
    fake->capturing->set[fake->capturing->n++] = set;
    fake->capturing->ns += truth->ns;
    return 0;
}

static int capture(struct dev *dev, enqueue_fn *enqueue, void *arg, struct graph **ret, int *ret_nodes, char *why, size_t size)
{
    (void)why;
    (void)size;
    *ret = fake_of(dev)->capturing = calloc(1, sizeof **ret);
    int error = enqueue(arg);
    *ret_nodes = (*ret)->n;
    return error;
}

static int replay(struct dev *dev, struct graph *graph)
{
    (void)dev;
    (void)graph;
    return 0;
}

static void drop(struct dev *dev, struct graph *graph)
{
    (void)dev;
    free(graph);
}

static void visit(struct fake *fake, int set)
{
    fake->visits++;
    int since = fake->visits - fake->last_visit[set];
    if (fake->last_visit[set] && since < fake->shortest_return) fake->shortest_return = since;
    fake->last_visit[set] = fake->visits;
}

static int time_graphs(struct dev *dev, struct graph *const *graph, int n, double *ret)
{
    struct fake *fake = fake_of(dev);
    *ret = 0;
    for (int i = 0; i < n; i++) {
        *ret += graph[i]->ns;
        for (int s = 0; s < graph[i]->n; s++) visit(fake, graph[i]->set[s]);
    }
    fake->samples++;
    *ret *= 1 + fake->jitter * (uniform(fake) + (uniform(fake) < 0.05 ? 20 : 0));
    return 0;
}

static double clock_MHz(struct dev *dev)
{
    (void)dev;
    return NAN;
}

static const struct dev_ops fake_ops = {.capture = capture, .replay = replay, .drop = drop, .time = time_graphs,
    .clock_MHz = clock_MHz};

struct bench {
    struct fake     fake;
    struct workload w;
    struct truth    truth[3];
    struct bound    bound[3];
    struct lane     lane[3];
    struct timer    timer;
};

/* n kernels of these true times; PROBE, so that no outputs are compared: the fake computes none. */
static struct bench *bench_new(int sets, int n, const double *ns, double jitter)
{
    struct bench *b = must_alloc(1, sizeof *b);
    b->fake = (struct fake){.dev = {.ops = &fake_ops, .machine = {.engine = CUDA}, .sample_s = 0.002}, .random = 7,
        .jitter = jitter,
                            .shortest_return = MOST};
    b->fake.dev.stream = (struct CUstream_st *)&b->fake;
    b->w = (struct workload){.dev = &b->fake.dev, .sets = sets, .ring = must_alloc((size_t)sets * MAX_TENSORS, sizeof(struct arg))};
    for (int s = 0; s < sets; s++) b->w.ring[s * MAX_TENSORS].p = (void *)(intptr_t)(s + 1);
    for (int i = 0; i < n; i++) {
        b->truth[i] = (struct truth){.kernel = {.promises = PROBE, .launch = launch}, .ns = ns[i]};
        b->bound[i] = (struct bound){.w = &b->w, .kernel = &b->truth[i].kernel, .state = &b->truth[i]};
        b->lane[i] = (struct lane){.bound = &b->bound[i], .verdict = {.status = STATUS_OK}};
    }
    b->timer = (struct timer){.dev = &b->fake.dev, .w = &b->w, .timing = {.width_pct = 1, .cap_s = 5, .min_rounds = 11,
        .max_rounds = 101},
                              .seed = 3, .n_lanes = n, .lane = b->lane};
    return b;
}

static void bench_free(struct bench *b)
{
    timer_free(&b->timer);
    free(b->w.ring);
    free(b);
}

static void recovers_the_truth(void **state)
{
    (void)state;
    const double ns[] = {12500, 41000, 2100};
    struct bench *b = bench_new(SETS, 3, ns, 0.01);
    int lane;
    assert_int_equal(timer_run(&b->timer, &lane), 0);
    for (int i = 0; i < 3; i++) {
        /* one-sided jitter of 0..1 %: its median is half a per cent above */
        assert_true(fabs(b->lane[i].summary.median / (ns[i] * 1.005) - 1) < 0.004);
        assert_true(b->lane[i].summary.lo <= ns[i] * 1.006 && b->lane[i].summary.hi >= ns[i] * 1.004);
        assert_true(b->lane[i].n >= 11);
    }
    bench_free(b);
}

static void stops_for_the_reason_it_says(void **state)
{
    (void)state;
    const double ns[] = {5000, 9000};
    int lane;
    struct bench *quiet = bench_new(SETS, 2, ns, 0.001);
    assert_int_equal(timer_run(&quiet->timer, &lane), 0);
    assert_string_equal(quiet->lane[0].stop, "width");
    assert_int_equal(quiet->lane[0].n, 11);
    bench_free(quiet);
    struct bench *loud = bench_new(SETS, 2, ns, 0.5);
    loud->timer.timing.max_rounds = 30;
    assert_int_equal(timer_run(&loud->timer, &lane), 0);
    assert_string_equal(loud->lane[1].stop, "rounds");
    assert_int_equal(loud->lane[1].n, 30);
    bench_free(loud);
    struct bench *capped = bench_new(SETS, 2, ns, 0.5);
    capped->timer.timing.cap_s = 0;
    assert_int_equal(timer_run(&capped->timer, &lane), 0);
    assert_string_equal(capped->lane[1].stop, "cap");
    bench_free(capped);
    struct bench *fixed = bench_new(SETS, 2, ns, 0.001);
    fixed->timer.timing.rounds = 17;
    assert_int_equal(timer_run(&fixed->timer, &lane), 0);
    assert_int_equal(fixed->lane[0].n, 17);
    bench_free(fixed);
}

/* Forgets what came before the rounds: pilots stay at the ring's start and are not timed. */
static void forget_visits(void *arg, const char *what)
{
    struct fake *fake = arg;
    if (strcmp(what, "pilot") && strcmp(what, "warm-up")) return;
    memset(fake->last_visit, 0, sizeof fake->last_visit);
    fake->shortest_return = MOST;
}

/* Cold: between two visits of a set, by whatever kernel, all others were visited. */
static void goes_round_the_whole_ring(void **state)
{
    (void)state;
    const double ns[] = {30000, 250000, 700000};
    struct bench *b = bench_new(SETS, 3, ns, 0.001);
    int lane;
    b->timer.timing.rounds = 40;
    b->timer.step = forget_visits;
    b->timer.step_arg = &b->fake;
    assert_int_equal(timer_run(&b->timer, &lane), 0);
    assert_true(b->timer.chunks > 1);
    assert_true(b->fake.visits > 10 * SETS);
    assert_int_equal(b->fake.shortest_return, SETS);
    bench_free(b);
}

static int count_moves(void *arg, int placement)
{
    int *moves = arg;
    assert_int_equal(placement, *moves + 1);
    ++*moves;
    return 0;
}

/* Rounds are shared out over placements, and each sample says at which it was taken. */
static void moves_between_placements(void **state)
{
    (void)state;
    const double ns[] = {5000, 9000};
    struct bench *b = bench_new(SETS, 2, ns, 0.0001);
    int lane, moves = 0;
    b->timer.placements = 3;
    b->timer.move = count_moves;
    b->timer.move_arg = &moves;
    assert_int_equal(timer_run(&b->timer, &lane), 0);
    assert_int_equal(moves, 2);
    assert_int_equal(b->lane[0].n, 12);   /* 11 wanted, 4 at each */
    for (int i = 0; i < 12; i++) {
        assert_int_equal(b->lane[0].sample[i].placement, i / 4);
        assert_int_equal(b->lane[0].sample[i].round, i);
    }
    bench_free(b);
}

struct turns {
    const struct bench *b;
    int told, warm, timed;   /* samples since the last turn */
};

static void count_turns(void *arg, int round)
{
    struct turns *t = arg;
    assert_int_equal(round, t->told++);
    if (round) assert_int_equal(t->timed, t->b->timer.n_lanes);
    t->warm = t->timed = 0;
}

static void count_steps(void *arg, const char *what)
{
    struct turns *t = arg;
    t->warm += !strcmp(what, "warm-up");
    if (!strcmp(what, "timed sample") && !t->timed++) assert_true(t->told && t->warm == t->b->timer.n_lanes);
}

/* Something else by turns: each is told once, warmed up by every lane, and has the order of its neighbour. */
static void rounds_by_turns(void **state)
{
    (void)state;
    const double ns[] = {5000, 9000, 3000};
    struct bench *b = bench_new(SETS, 3, ns, 0.0001);
    struct turns turns = {.b = b};
    int lane;
    b->timer.timing.rounds = 24;
    b->timer.turn = count_turns, b->timer.turn_arg = &turns;
    b->timer.step = count_steps, b->timer.step_arg = &turns;
    assert_int_equal(timer_run(&b->timer, &lane), 0);
    assert_int_equal(turns.told, 24);
    int others = 0;
    for (int l = 0; l < 3; l++)
        for (int i = 0; i < 24; i++) {
            const struct sample *sample = b->lane[l].sample;
            assert_int_equal(sample[i].position, sample[i ^ 1].position);
            others += i > 1 && sample[i].position != sample[i - 2].position;
        }
    assert_true(others > 24);
    bench_free(b);
}

/* In 2 n rounds every lane is twice at every place, and twice behind every other one. */
static void order_is_balanced(void **state)
{
    (void)state;
    enum { MOST_LANES = 13 };
    for (int n = 1; n <= MOST_LANES; n++) {
        int at[MOST_LANES][MOST_LANES] = {{0}}, behind[MOST_LANES][MOST_LANES] = {{0}};
        for (int round = 0; round < 2 * n; round++)
            for (int p = 0; p < n; p++) {
                int lane = timer_order(99, round, p, n);
                assert_in_range(lane, 0, n - 1);
                at[lane][p]++;
                if (p) behind[lane][timer_order(99, round, p - 1, n)]++;
            }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                assert_int_equal(at[i][j], 2);
                assert_int_equal(behind[i][j], i == j ? 0 : 2);
            }
    }
}

/* Twins of which each is slower behind a third kernel differ by what their rounds are short of whole turns, not more. */
static void what_ran_before_is_nobodys(void **state)
{
    (void)state;
    for (int n = 4; n <= 12; n += 2)
        for (uint64_t seed = 0; seed < 12; seed++) {
            int slow[2] = {0}, rounds = 60, before = -1;   /* as doctor --floors takes them */
            for (int round = 0; round < rounds; round++)
                for (int p = 0; p < n; p++) {
                    int lane = timer_order(seed, round, p, n);
                    if (lane >= n - 2) slow[lane - (n - 2)] += before < n - 2;
                    before = lane;
                }
            assert_true(abs(slow[0] - slow[1]) <= 3 && slow[0] > rounds / 2 && slow[1] > rounds / 2);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recovers_the_truth),
        cmocka_unit_test(stops_for_the_reason_it_says),
        cmocka_unit_test(goes_round_the_whole_ring),
        cmocka_unit_test(moves_between_placements),
        cmocka_unit_test(rounds_by_turns),
        cmocka_unit_test(order_is_balanced), cmocka_unit_test(what_ran_before_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Is other work seen, and quiet left alone? Decided on made-up runs of a time-sliced GPU, of which everything is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"
#include "calibrate.h"
#include "devices/host_weather.h"
#include "quiet.h"

enum { LANES = 3, PLACEMENTS = 3, MOST = 400 };

static const double CANARY_S = 1e-4, SAMPLE_S = 2e-3, SLICE_S = 2e-3, BETWEEN_S = 1e-4;

/* Other work: `on_s` of every period_s from phase_s on. While it is there, the device changes hands every slice. */
struct other {
    double period_s, on_s, phase_s;
};

struct run {
    uint64_t      random;
    struct other  other;
    double        now_s;
    double        hiccups;                 /* share of samples that a quiet machine makes longer by chance */
    double        modes;                   /* of kernel 0: every other chunk takes this much longer */
    bool          alone;                   /* one kernel only */
    int           n;
    struct sample sample[LANES][MOST];
};

static double uniform(struct run *run)
{
    run->random = run->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(run->random >> 11) * 0x1p-53;
}

static double normal(struct run *run)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) sum += uniform(run);
    return sum - 6;
}

/* Until when the other process holds the device at `at`; 0 where it doesn't. */
static double held_until(const struct run *run, double at)
{
    const struct other *o = &run->other;
    if (!(o->on_s > 0)) return 0;
    double in = fmod(at - o->phase_s + 100 * o->period_s, o->period_s);
    if (in >= o->on_s || fmod(in, 2 * SLICE_S) >= SLICE_S) return 0;
    return at + fmin(SLICE_S - fmod(in, 2 * SLICE_S), o->on_s - in) + 1e-9;
}

/* Waits for the device. Returns how long. */
static double wait_for_device(struct run *run)
{
    double begin = run->now_s, until = held_until(run, begin);
    if (until > 0) run->now_s = until;
    return run->now_s - begin;
}

/* Work of `need_s` in steps of 20 us, each only while we have the device. Returns how long it took. */
static double work(struct run *run, double need_s)
{
    double begin = run->now_s;
    while (need_s > 0) {
        double step = fmin(need_s, 2e-5), until = held_until(run, run->now_s);
        if (until > 0) run->now_s = until;
        run->now_s += step;
        need_s -= step;
    }
    return run->now_s - begin;
}

static void take(struct run *run, int lane, int round, int rounds)
{
    struct sample *s = &run->sample[lane][round];
    *s = (struct sample){.placement = round * PLACEMENTS / rounds, .round = round, .sm_clock_MHz = 1980, .calls = 100,
        .weather = {NAN, NAN, NAN, 0, -1, NAN, NAN, NAN}};
    s->wait_ns = 1e9 * wait_for_device(run) + 1e4 * uniform(run);
    s->canary_ns = 1e9 * work(run, CANARY_S / 10 * (1 + 0.01 * normal(run)));
    run->now_s += CANARY_S;
    s->at_s = run->now_s;
    double longer = 1 + 0.003 * normal(run) + 0.02 * s->placement;
    if (lane == 0 && round % 2) longer += run->modes;
    if (uniform(run) < run->hiccups) longer += uniform(run);
    wait_for_device(run);
    s->t_ns = 1e9 * work(run, SAMPLE_S * longer) / s->calls;
    run->now_s += BETWEEN_S;
}

/* One row group of so many rounds. Returns how many of its kernels are marked. */
static int group(struct run *run, int rounds, struct witness *w)
{
    int lanes = run->alone ? 1 : LANES, marked = 0;
    for (int round = 0; round < rounds; round++)
        for (int l = 0; l < lanes; l++) take(run, (l + round) % lanes, round, rounds);
    for (int l = 0; l < lanes; l++) w[l] = (struct witness){.n = rounds, .sample = run->sample[l]};
    quiet_judge(w, lanes);
    for (int l = 0; l < lanes; l++) marked += w[l].contended;
    return marked;
}

/* Runs of `run_s` seconds, of which a share is timed, as short rows; how many of them have a marked row. */
static int marked_runs(int runs, double run_s, double timed_share, const struct run *like)
{
    int marked = 0;
    struct run *run = must_alloc(1, sizeof *run);
    for (int r = 0; r < runs; r++) {
        struct witness w[LANES];
        bool any = false;
        *run = *like;
        run->random = (uint64_t)r * 977 + 13;
        run->other.phase_s = run->other.period_s * uniform(run);
        while (run->now_s < run_s && !any) {
            double begin = run->now_s;
            any = group(run, 12 + (int)(20 * uniform(run)), w) > 0;
            run->now_s += (run->now_s - begin) * (1 / timed_share - 1);
        }
        marked += any;
    }
    free(run);
    return marked;
}

static void quiet_runs_are_left_alone(void **state)
{
    (void)state;
    struct run quiet = {0}, uneven = {.hiccups = 0.002};
    assert_int_equal(marked_runs(400, 5, 0.7, &quiet), 0);
    int marked = marked_runs(1000, 8, 0.7, &uneven);
    print_message("of 1000 quiet runs of 8 s: %d marked\n", marked);
    assert_true(marked <= 25);   /* one of 20 is what may be */
}

static void a_fifth_of_the_time_is_seen(void **state)
{
    (void)state;
    static const double periods[] = {0.005, 0.01, 0.05, 0.1, 0.5, 1};
    for (int i = 0; i < COUNT(periods); i++) {
        struct run like = {.other = {.period_s = periods[i], .on_s = 0.2 * periods[i]}};
        int marked = marked_runs(100, 5, 0.5, &like);
        print_message("20 %% of every %g s: %d of 100 runs marked\n", periods[i], marked);
        assert_true(marked >= 98);
    }
}

static void bursts_are_seen(void **state)
{
    (void)state;
    struct run like = {.other = {.period_s = 5, .on_s = 0.05}}, uneven = like;
    uneven.hiccups = 0.002;
    int marked = marked_runs(200, 15, 0.7, &like), with_hiccups = marked_runs(200, 15, 0.7, &uneven);
    print_message("50 ms every 5 s: %d and %d of 200 runs of 15 s marked\n", marked, with_hiccups);
    assert_true(marked >= 190 && with_hiccups >= 190);
    like.alone = true;
    marked = marked_runs(200, 15, 0.7, &like);
    print_message("of one kernel alone: %d of 200\n", marked);
    assert_true(marked >= 170);   /* its rows are short, and who has the device goes by the clock: few canaries are late */
}

/* A kernel with two times of its own is bimodal, not contended, be it alone or not. */
static void a_kernels_own_modes_are_its_own(void **state)
{
    (void)state;
    struct run like = {.modes = 0.3};
    assert_int_equal(marked_runs(100, 3, 0.7, &like), 0);
    like.alone = true;
    assert_int_equal(marked_runs(100, 3, 0.7, &like), 0);
}

/* Longer because the clock was lower: another mark's matter. */
static void slower_clocks_are_no_other_work(void **state)
{
    (void)state;
    struct run *run = must_alloc(1, sizeof *run);
    struct witness w[LANES];
    run->random = 5;
    group(run, 24, w);
    for (int l = 0; l < LANES; l++)
        for (int i = 10; i < 16; i++) {
            run->sample[l][i].t_ns *= 1.5;
            run->sample[l][i].sm_clock_MHz /= 1.5;
        }
    quiet_judge(w, LANES);
    for (int l = 0; l < LANES; l++) assert_false(w[l].contended);
    for (int l = 0; l < LANES; l++)
        for (int i = 10; i < 16; i++) run->sample[l][i].sm_clock_MHz = 1980;
    quiet_judge(w, LANES);   /* without that excuse */
    for (int l = 0; l < LANES; l++) assert_true(w[l].contended && strstr(w[l].why, "other work"));
    free(run);
}

static void words_of_held_clocks(void **state)
{
    (void)state;
    struct sample sample[20] = {0};
    struct witness w = {.n = 20, .sample = sample};
    for (int i = 0; i < 20; i++)
        sample[i] = (struct sample){.t_ns = 100, .at_s = i, .sm_clock_MHz = NAN, .canary_ns = NAN, .wait_ns = NAN,
            .weather = {NAN, NAN, NAN, i < 4 ? HELD_POWER_CAP : 0, -1, NAN, NAN, NAN}};
    quiet_judge(&w, 1);
    assert_false(w.throttled || w.contended);   /* a fifth under the power cap is usual */
    for (int i = 0; i < 6; i++) sample[i].weather.held = HELD_POWER_CAP;
    quiet_judge(&w, 1);
    assert_true(w.throttled && !w.contended);
    assert_string_equal(w.why, "held back by the power cap in 6 of 20 samples");
    sample[9].weather.held = HELD_THERMAL;
    quiet_judge(&w, 1);
    assert_non_null(strstr(w.why, "heat in 1 of 20"));
    for (int i = 0; i < 20; i++) sample[i].weather = (struct weather){NAN, NAN, NAN, -1, -1, NAN, NAN, NAN};
    quiet_judge(&w, 1);
    assert_false(w.throttled);                  /* unknown is not held */
}

/* Where the machine counts how long threads waited, that decides, and a noisy kernel proves nothing. */
static void counted_waiting_decides(void **state)
{
    (void)state;
    struct run *run = must_alloc(1, sizeof *run);
    struct witness w[LANES];
    run->random = 5;
    run->other = (struct other){0.05, 0.02, 0};
    assert_true(group(run, 24, w) > 0);
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 24; i++) run->sample[l][i].weather.waited_pct = 0.5;
    quiet_judge(w, LANES);
    for (int l = 0; l < LANES; l++) assert_false(w[l].contended);
    for (int i = 0; i < 24; i++) run->sample[1][i].weather.waited_pct = 30;
    quiet_judge(w, LANES);
    assert_true(!w[0].contended && w[1].contended && strstr(w[1].why, "waited for a CPU 30 %"));
    for (int i = 0; i < 24; i++) run->sample[2][i].weather.stolen_pct = 5;
    quiet_judge(w, LANES);
    assert_true(w[2].contended && strstr(w[2].why, "5 % were stolen"));
    free(run);
}

static void what_differs_between_placements_is_no_drift(void **state)
{
    (void)state;
    struct run *run = must_alloc(1, sizeof *run);
    struct sample sample[36] = {0};
    run->random = 9;
    for (int i = 0; i < 36; i++) {
        double longer = 0.05 * (i / 12) + 0.001 * normal(run);
        sample[i] = (struct sample){.placement = i / 12, .t_ns = 100 * (1 + longer)};
    }
    assert_false(quiet_drifts(sample, 36));
    for (int i = 0; i < 36; i++) sample[i].t_ns *= 1 + 0.004 * (i % 12);
    assert_true(quiet_drifts(sample, 36));
    free(run);
}

static void spins_are_right_within_limits(void **state)
{
    (void)state;
    assert_true(spin_right(1000, 1099) && spin_right(1000, 901) && !spin_right(1000, 1101) && !spin_right(1000, 899));
    assert_true(spin_right(50e3, 52.4e3) && !spin_right(50e3, 52.6e3) && !spin_right(50e3, NAN));
}

static void nothing_to_judge(void **state)
{
    (void)state;
    struct witness w[2] = {{0}, {0}};
    quiet_judge(w, 2);
    assert_false(w[0].contended || w[1].throttled);
    quiet_judge(w, 0);
}

static void how_far_from_quiet(void **state)
{
    (void)state;
    assert_int_equal(quiet_badness(""), 0);
    assert_int_equal(quiet_badness("noisy"), 0);
    assert_int_equal(quiet_tries("noisy"), 0);
    assert_true(quiet_badness("noisy;contended") > quiet_badness("throttled;drifting;bimodal"));
    assert_true(quiet_badness("drifting") > quiet_badness("bimodal") && quiet_badness("bimodal") > 0);
    assert_int_equal(quiet_tries("contended"), 2);
    assert_int_equal(quiet_tries("bimodal"), 1);
    assert_int_equal(quiet_badness("uncontended;x"), 0);
}

/* A folder like /sys/fs/cgroup: groups and how often each was held back. */
static void plant(const char *root, const char *group, int held)
{
    char path[300];
    FILE *file;
    for (const char *p = group; *p && (p = strchr(p + 1, '/'));)
        mkdir(text(path, sizeof path, "%s%.*s", root, (int)(p - group), group), 0700);
    mkdir(text(path, sizeof path, "%s%s", root, group), 0700);
    assert_non_null(file = fopen(text(path, sizeof path, "%s%s/cpu.stat", root, group), "w"));
    if (held >= 0) fprintf(file, "usage_usec 12\nnr_periods 900\nnr_throttled %d\nthrottled_usec 3\n", held);
    else fputs("usage_usec 12\n", file);
    fclose(file);
}

/* The quota may be our own group's, or that of one around it, and a group beside us is nobody's business. */
static void quotas_of_our_cgroups(void **state)
{
    static const struct { const char *words; double held; } of[] = {
        {"0::/\n", NAN},                                      /* a root group keeps none */
        {"0::/user.slice/run.scope\n", 7 + 30}, {"0::/user.slice\n", 30}, {"0::/gone/run\n", NAN},
        {"0::/../other\n", NAN}, {"", NAN}, {"nonsense\n1:2\n", NAN},
        {"3:cpuset:/user.slice\n2:cpu,cpuacct:/job\n1:name=systemd:/user.slice\n0::/\n", 500 + 4}, {"2:cpu:/\n", 60},
        {"2:cpuacct:/job\n", NAN}, {"2:cpuacct,cpu:/a\n", 8},
    };
    char root[] = "/tmp/kbench-cgroup-XXXXXX", words[64], remove[100];
    (void)state;
    assert_non_null(mkdtemp(root));
    plant(root, "", -1), plant(root, "/user.slice", 30), plant(root, "/user.slice/run.scope", 7);
    plant(root, "/user.slice/other", 99), plant(root, "/cpuacct,cpu/a", 8);
    plant(root, "/cpu,cpuacct", 4), plant(root, "/cpu,cpuacct/job", 500), plant(root, "/cpu", 60), plant(root, "/cpuacct/job", 1);
    text(words, sizeof words, "%s/membership", root);
    for (int i = 0; i < COUNT(of); i++) {
        FILE *file = fopen(words, "w");
        assert_non_null(file);
        fputs(of[i].words, file), fclose(file);
        double held = host_held_back(words, root);
        if (!(held == of[i].held || (isnan(held) && isnan(of[i].held)))) fail_msg("%s: %g", of[i].words, held);
    }
    assert_true(isnan(host_held_back("/nowhere", root)));
    assert_int_equal(system(text(remove, sizeof remove, "rm -r %s", root)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_runs_are_left_alone), cmocka_unit_test(a_fifth_of_the_time_is_seen),
        cmocka_unit_test(bursts_are_seen), cmocka_unit_test(a_kernels_own_modes_are_its_own),
        cmocka_unit_test(slower_clocks_are_no_other_work), cmocka_unit_test(words_of_held_clocks),
        cmocka_unit_test(counted_waiting_decides), cmocka_unit_test(nothing_to_judge),
        cmocka_unit_test(what_differs_between_placements_is_no_drift), cmocka_unit_test(spins_are_right_within_limits),
        cmocka_unit_test(how_far_from_quiet),
        cmocka_unit_test(quotas_of_our_cgroups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

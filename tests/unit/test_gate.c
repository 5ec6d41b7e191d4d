#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include "gate.h"   /* before cmocka, which has a macro of the name fail */
#include <cmocka.h>

#include <math.h>
#include "base.h"
#include "fake.h"

static char why[1200];

static const struct registry registry = {COUNT(builtin_kernels) - 1, (struct entry *)builtin_kernels};

static const struct static_fact facts[] = {
    {"mix/cuda", "90a", "mix_run<2>", {168, 0, 1024, 900, 32, 8, 0, 0}},
    {"mix/cuda", "120a", "mix_run<2>", {240, 0, 1024, 900, 32, 8, 0, 0}},
    {"scan/early", "90a", "scan_early", {64, 32, 0, 300, 0, 0, 0, 11}},
    {0},
};
static const struct static_fact no_facts[] = {{0}};

static const struct gatefile *parsed(struct gatefile *file, const char *content)
{
    *file = (struct gatefile){0};
    int error = gatefile_parse("g.ini", content, strlen(content), file, why, sizeof why);
    if (error) print_error("%s\n", why);
    assert_int_equal(error, 0);
    return file;
}

/* What is wrong with the words or with the names in them. */
static const char *refused(const char *content, const struct table *run)
{
    struct gatefile file = {0};
    strcpy(why, "accepted");
    if (!gatefile_parse("g.ini", content, strlen(content), &file, why, sizeof why))
        gatefile_names(&file, &registry, facts, run, why, sizeof why);
    gatefile_free(&file);
    return why;
}

#define RATIO "[r]\nkernel = scan/host_live\nover = scan/host_full\nat-least = 10\n"

static void test_grammar(void **state)
{
    struct gatefile file;
    (void)state;
    parsed(&file, "[global]\nsweep = small\n" RATIO "max_ctx = 512K,1M\ndevice = host\n"
                  "[s]\nkernels = mix/* , scan/early\nregisters = 168\nshared = 48K\narch = 90a\ntoolkit = 13.0\n");
    assert_string_equal(file.sweep, "small");
    assert_int_equal(file.n, 2);
    assert_false(file.gate[0].is_static);
    assert_string_equal(file.gate[0].kernel, "scan/host_live");
    assert_string_equal(file.gate[0].over, "scan/host_full");
    assert_true(file.gate[0].at_least == 10 && file.gate[0].has_device && file.gate[0].device == HOST);
    assert_int_equal(file.gate[0].n_axes, 1);
    assert_int_equal(file.gate[0].axis[0].value[1], 1 << 20);
    assert_true(file.gate[1].is_static);
    assert_int_equal(file.gate[1].n_globs, 2);
    assert_string_equal(file.gate[1].glob[0].word, "mix/*");
    assert_int_equal(file.gate[1].most[STATIC_REGISTERS], 168);
    assert_int_equal(file.gate[1].most[STATIC_SHARED], 48 << 10);
    assert_int_equal(file.gate[1].most[STATIC_LOCAL], -1);
    gatefile_free(&file);
    parsed(&file, "[r]\nkernel = scan/host_live\nover = scan/host_full\nat-least = 0.95\n");
    assert_true(file.gate[0].at_least == 0.95);
    gatefile_free(&file);
}

static void test_refusals(void **state)
{
    static const char *const cases[][2] = {
        {"", "g.ini: no section in it besides [global]; say what has to hold"},
        {"[global]\nsweeps = x\n" RATIO,
            "g.ini:2: sweeps: [global] of a gate file holds sweep and include alone; did you mean 'sweep'?"},
        {"[r]\nkernel = scan/host_live\nat-least = 2\n", "g.ini:1: [r]: over is missing; a ratio has kernel, over and at-least"},
        {"[r]\nover = scan/host_live\nat-least = 2\n", "g.ini:1: [r]: kernel is missing; a ratio has kernel, over and at-least"},
        {"[r]\nkernel = scan/host_live\nover = scan/host_full\n",
            "g.ini:1: [r]: at-least is missing; a ratio has kernel, over and at-least"},
        {"[r]\nmax_ctx = 1K\n", "g.ini:1: [r]: kernel is missing; a ratio has kernel, over and at-least"},
        {"[r]\nkernel = scan/host_live\nover = scan/host_live\nat-least = 2\n",
            "g.ini:3: over = scan/host_live: is the kernel itself, whose ratio is always 1"},
        {"[r]\nkernel = scan/host_live\nover = mix/host_mma\nat-least = 2\n",
            "g.ini:3: scan/host_live and mix/host_mma: kernels of two ops never compete"},
        {"[r]\nkernel = scan/*\n", "g.ini:2: kernel = scan/*: one kernel is compared with one other"},
        {"[r]\nat-least = ten\n", "g.ini:2: at-least = ten: is not a ratio above 0, as in 10 or 0.95"},
        {"[r]\nat-least = 2x\n", "g.ini:2: at-least = 2x: is not a ratio above 0, as in 10 or 0.95"},
        {"[r]\nat-least = 0\n", "g.ini:2: at-least = 0: is not a ratio above 0, as in 10 or 0.95"},
        {"[r]\nat-least = -3\n", "g.ini:2: at-least = -3: is not a ratio above 0, as in 10 or 0.95"},
        {"[r]\nat-least = nan\n", "g.ini:2: at-least = nan: is not a ratio above 0, as in 10 or 0.95"},
        {"[r]\nat-least = 1e999\n", "g.ini:2: at-least = 1e999: is not a ratio above 0, as in 10 or 0.95"},
        {"[r]\nat-lest = 3\n",
            "g.ini:2: at-lest: neither a key of gates nor a limit, and no op has such a dimension; did you mean 'at-least'?"},
        {RATIO "batsh = 1\n",
            "g.ini:5: batsh: neither a key of gates nor a limit, and no op has such a dimension; did you mean 'batch'?"},
        {RATIO "topk = 8\n", "g.ini:5: topk: op scan has no dimension of that name"},
        {RATIO "batch = 1:x\n", NULL},
        {RATIO "batch = 1:4096:+1\nmax_ctx = 1K,2K\n", "g.ini:6: max_ctx: more than 4096 problems in this section"},
        {RATIO "device = gpu\n", "g.ini:5: device = gpu: is not one of host, cuda"},
        {RATIO "registers = 3\n", "g.ini:5: registers: is of static limits, kernel = and over = of a ratio; make two sections"},
        {"[s]\nkernels = mix/*\n", "g.ini:1: [s]: no limit; say registers, stack, shared, local or instructions"},
        {"[s]\nregisters = 3\n", "g.ini:1: [s]: kernels is missing; static limits are of kernels"},
        {"[s]\nkernels = mix/*\nregisters = many\n", "g.ini:3: registers = many: is not a whole number from 0 on"},
        {"[s]\nkernels = mix/*\nregisters = -1\n", "g.ini:3: registers = -1: is not a whole number from 0 on"},
        {"[s]\nkernels = mix/*\nregisters = 3\nbatch = 1\n", "g.ini:4: batch: code is the same for every run; remove it"},
        {"[s]\nkernels = mix/*,\nregisters = 3\n", "g.ini:2: kernels = mix/*,: a word is empty or too long"},
        {"[s]\nkernels = mix/*\ntensor = 3\n", NULL},
        {"[s]\nkernels = mix/*\nregisters = 3\narch = 99\n",
            "g.ini:4: arch = 99: no build has such an architecture, as 90a or 120a; did you mean '89'?"},
        {"[s]\nkernels = mix/*\nregisters = 3\narch = 90\n",
            "g.ini:4: arch = 90: no build has such an architecture, as 90a or 120a; did you mean '90a'?"},
        {"[s]\nkernels = mix/*\nregisters = 3\narch =\n", NULL},
        {"[s]\nkernels = mix/*\nregisters = 3\narch = 100a\n", "accepted"},
        {"[s]\nkernels = mix/*\nregisters = 3\narch = 120a\n", "accepted"},
        {"[s]\nkernels = scan/erly\nregisters = 3\n",
            "g.ini:2: scan/erly: no CUDA kernel of this build; did you mean 'scan/early'?"},
        {"[r]\nkernel = scan/host_life\nover = scan/host_full\nat-least = 2\n",
            "g.ini:2: scan/host_life: no such kernel in this build; did you mean 'scan/host_live'?"},
        {"[r]\nkernel = scan/host_live\nover = scan/host_ful\nat-least = 2\n",
            "g.ini:3: scan/host_ful: no such kernel in this build; did you mean 'scan/host_full'?"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        const char *said = refused(cases[i][0], NULL);
        if (cases[i][1]) assert_string_equal(said, cases[i][1]);
        else assert_ptr_equal(strstr(said, "g.ini:"), said);
    }
}

/* A run: rows of scan with times lo, med, hi. */
static struct row *add_row(struct table *run, const char *kernel, int64_t max_ctx, double med, double spread)
{
    run->row = must_grow(run->row, (size_t)run->n + 1, sizeof *run->row);
    struct row *row = &run->row[run->n++];
    row_clear(row);
    strcpy(row->op, "scan"), strcpy(row->engine, "host"), strcpy(row->status, "ok"), strcpy(row->cache, "cold");
    text(row->kernel, sizeof row->kernel, "%s", kernel);
    row->n_dims = 1;
    strcpy(row->dim[0].name, "max_ctx");
    row->dim[0].value = max_ctx;
    row->seed = 1;
    row->t_med_ns = med, row->t_lo_ns = med * (1 - spread), row->t_hi_ns = med * (1 + spread);
    text(row->repeat, sizeof row->repeat, "./kbench sweep --row '%s'", kernel);
    return row;
}

static struct findings judged(const char *content, const struct table *run, bool strict)
{
    static struct gatefile file;   /* findings point into it */
    gatefile_free(&file);
    parsed(&file, content);
    return gate_judge(&file, run, NULL, facts, "13.0.88", strict);
}

/* The verdict on one pair. */
static enum verdict pair(double over, double spread, const char *marks, bool strict)
{
    struct table run = {0};
    add_row(&run, "scan/host_full", 1 << 20, over, spread);
    strcpy(add_row(&run, "scan/host_live", 1 << 20, 100, spread)->marks, marks);
    struct findings all = judged(RATIO, &run, strict);
    assert_int_equal(all.n, 1);
    enum verdict verdict = all.finding[0].verdict;
    findings_free(&all);
    free(run.row);
    return verdict;
}

/* A mark is no better on the slower side: noise there makes the other look fast. */
static void test_marks_of_either_row(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct table run = {0};
        char         wanted[100];
        add_row(&run, "scan/host_live", 1 << 20, 100, 0.01), add_row(&run, "scan/host_full", 1 << 20, 1500, 0.01);
        strcpy(run.row[which].marks, "contended");
        struct findings all = judged(RATIO, &run, false);
        assert_int_equal(all.finding[0].verdict, GATE_OPEN);
        text(wanted, sizeof wanted, "%s is marked contended, and the limit is not twice away", run.row[which].kernel);
        assert_string_equal(all.finding[0].why, wanted);
        findings_free(&all);
        run.row[1].t_med_ns *= 2, run.row[1].t_lo_ns *= 2, run.row[1].t_hi_ns *= 2;
        for (int strict = 0; strict < 2; strict++) {   /* three times the limit: believed unless --strict */
            all = judged(RATIO, &run, strict);
            assert_int_equal(all.finding[0].verdict, strict ? GATE_OPEN : GATE_HOLDS);
            findings_free(&all);
        }
        free(run.row);
    }
}

/* Times of either row as a damaged file may have them, where lo and hi alone may keep the limit. */
static void test_times_that_are_none(void **state)
{
    static const char outside[] = "has a median outside of its own interval", none[] = "has no interval";
    static const struct { double med, lo, hi; const char *why; } of[] = {
        {1e308, 99, 101, outside}, {1e-308, 99, 101, outside}, {98, 99, 101, outside}, {102, 99, 101, outside},
        {INFINITY, 99, 101, outside}, {100, 101, 99, none}, {100, -1, 101, none}, {100, 0, 101, none}, {100, 99, INFINITY, none},
        {100, NAN, 101, none}, {100, 99, NAN, none}, {99, 99, 101, ""}, {101, 99, 101, ""}};
    (void)state;
    for (int i = 0; i < COUNT(of); i++)
        for (int which = 0; which < 2; which++) {
            struct table run = {0};
            char         wanted[200] = "";
            add_row(&run, "scan/host_live", 1 << 20, 100, 0.01), add_row(&run, "scan/host_full", 1 << 20, 5000, 0.01);
            struct row *row = &run.row[which];
            double      times = which ? 50 : 1;
            row->t_med_ns = times * of[i].med, row->t_lo_ns = times * of[i].lo, row->t_hi_ns = times * of[i].hi;
            struct findings all = judged(RATIO, &run, false);
            if (*of[i].why) text(wanted, sizeof wanted, "%s %s", row->kernel, of[i].why);
            assert_int_equal(all.finding[0].verdict, *of[i].why ? GATE_OPEN : GATE_HOLDS);
            assert_string_equal(all.finding[0].why, wanted);
            findings_free(&all);
            free(run.row);
        }
    struct table run = {0};
    add_row(&run, "scan/host_live", 1 << 20, 1e-9, 0.01), add_row(&run, "scan/host_full", 1 << 20, 1e300, 0.01);
    struct findings all = judged(RATIO, &run, false);
    assert_int_equal(all.finding[0].verdict, GATE_OPEN);
    assert_string_equal(all.finding[0].why, "scan/host_live is too far from the other for a ratio");
    findings_free(&all);
    free(run.row);
}

static void test_verdicts(void **state)
{
    (void)state;
    assert_int_equal(pair(5000, 0.01, "", false), GATE_HOLDS);
    assert_int_equal(pair(1030, 0.01, "", false), GATE_HOLDS);
    assert_int_equal(pair(1010, 0.01, "", false), GATE_OPEN);      /* 9.9 to 10.3 */
    assert_int_equal(pair(990, 0.01, "", false), GATE_OPEN);
    assert_int_equal(pair(970, 0.01, "", false), GATE_BROKEN);
    assert_int_equal(pair(500, 0.4, "", false), GATE_OPEN);
    assert_int_equal(pair(5000, 0.01, "noisy", false), GATE_HOLDS);  /* five times the limit: no mark explains that */
    assert_int_equal(pair(1500, 0.01, "noisy", false), GATE_OPEN);
    assert_int_equal(pair(700, 0.01, "contended", false), GATE_OPEN);
    assert_int_equal(pair(300, 0.01, "contended", false), GATE_BROKEN);
    assert_int_equal(pair(5000, 0.01, "noisy", true), GATE_OPEN);
    assert_int_equal(pair(NAN, 0.01, "", false), GATE_BROKEN);       /* no time is no pass */
    assert_int_equal(pair(5000, NAN, "", false), GATE_OPEN);
    assert_int_equal(pair(5000, 1, "", false), GATE_OPEN);         /* from 0 on: no interval */
    assert_int_equal(pair(INFINITY, 0.01, "", false), GATE_OPEN);
}

#define FLOORS(rows) "{\"schema\": 1, \"device\": \"H200\", \"uuid\": \"GPU-1\", \"rows\": [" rows "]}"
#define FLOOR(kernel, max_ctx, pct)                                                                       \
    "{\"op\": \"scan\", \"kernel\": \"" kernel "\", \"dims\": {\"max_ctx\": " max_ctx "}, \"tune\": \"\", " \
    "\"cache\": \"cold\", \"floor_pct\": " pct ", \"disturbed\": 0, \"ratios\": [1]}"

/* What the same kernel differs from itself by is no difference: it widens the interval, on both sides of the limit. */
static void test_noise_floors(void **state)
{
    static const struct { double over; const char *pct; enum verdict verdict; } of[] = {
        {1030, "0", GATE_HOLDS}, {1030, "0.5", GATE_HOLDS}, {1030, "3", GATE_OPEN}, {970, "0.5", GATE_BROKEN},
        {970, "3", GATE_OPEN}};
    (void)state;
    for (int i = 0; i < COUNT(of); i++)
        for (int which = 0; which < 3; which++) {   /* of either kernel, or of another problem */
            struct table        run = {0};
            struct noise_floors floors = {0};
            struct gatefile     file;
            char                json[600];
            add_row(&run, "scan/host_full", 1 << 20, of[i].over, 0.01), add_row(&run, "scan/host_live", 1 << 20, 100, 0.01);
            text(json, sizeof json, FLOORS(FLOOR("%s", "%d", "%s") "," FLOOR("scan/host_live", "1024", "99")),
                which ? "scan/host_live" : "scan/host_full", which == 2 ? 4096 : 1 << 20, of[i].pct);
            assert_int_equal(noise_floors_parse(json, "H200", &floors), 0);
            assert_int_equal(floors.n, 2);
            struct findings all = gate_judge(parsed(&file, RATIO), &run, &floors, facts, "13.0.88", false);
            assert_int_equal(all.finding[0].verdict, which == 2 ? pair(of[i].over, 0.01, "", false) : of[i].verdict);
            assert_true(which == 2 ? isnan(all.finding[0].floor_pct) : all.finding[0].floor_pct == strtod(of[i].pct, NULL));
            findings_free(&all), noise_floors_free(&floors), gatefile_free(&file);
            free(run.row);
        }
}

static void test_files_of_floors(void **state)
{
    static const char *const bad[] = {"", "{", "[]", "{\"rows\": []}", "{\"device\": \"H200\"}", FLOORS("1"), FLOORS("{}"),
        FLOORS(FLOOR("a", "1", "null")), FLOORS(FLOOR("a", "1", "-1")), FLOORS(FLOOR("a", "1", "1e999")),
        FLOORS(FLOOR("a", "\"x\"", "1")), FLOORS(FLOOR("a", "1", "\"1\"")), FLOORS(FLOOR("a", "1", "1") "," "{\"op\": \"b\"}")};
    struct noise_floors floors = {0};
    struct row          row;
    (void)state;
    for (int i = 0; i < COUNT(bad); i++) {
        assert_int_not_equal(noise_floors_parse(bad[i], "H200", &floors), 0);
        assert_int_equal(floors.n, 0);
    }
    assert_int_equal(noise_floors_parse(FLOORS(FLOOR("a", "1", "1")), "another CPU", &floors), 0);   /* not this device's */
    assert_int_equal(floors.n, 0);
    row_clear(&row);
    assert_true(isnan(noise_floor_pct(&floors, &row)) && isnan(noise_floor_pct(NULL, &row)));
    noise_floors_free(&floors);
}

/* Coverage: what is not there, or did not pass its check, turns a gate red. */
static void test_coverage(void **state)
{
    struct table    run = {0};
    struct findings all;
    (void)state;
    add_row(&run, "scan/host_full", 1 << 19, 5000, 0.01);
    add_row(&run, "scan/host_live", 1 << 19, 100, 0.01);
    all = judged(RATIO "max_ctx = 512K,1M\n", &run, false);
    assert_int_equal(all.count[GATE_HOLDS], 1);
    assert_int_equal(all.count[GATE_BROKEN], 1);
    assert_string_equal(all.finding[1].what, "max_ctx=1M");
    assert_string_equal(all.finding[1].why, "the run has no row of scan/host_live");
    assert_int_equal(findings_code(&all), EXIT_REGRESSION);
    findings_free(&all);

    add_row(&run, "scan/host_live", 1 << 20, 100, 0.01);
    all = judged(RATIO, &run, false);                               /* no dimension named: every problem of the kernel */
    assert_int_equal(all.n, 2);
    assert_string_equal(all.finding[1].why, "the run has no time of scan/host_full");
    findings_free(&all);

    struct row *over = add_row(&run, "scan/host_full", 1 << 20, 9000, 0.01);
    strcpy(over->status, "wrong"), strcpy(over->reason, "row 3");
    all = judged(RATIO "max_ctx = 1M\n", &run, false);
    assert_int_equal(all.finding[0].verdict, GATE_BROKEN);
    assert_string_equal(all.finding[0].why, "scan/host_full is wrong: row 3");
    assert_string_equal(all.finding[0].repeat, "./kbench sweep --row 'scan/host_full'");
    findings_free(&all);

    strcpy(over->status, "ok");
    strcpy(add_row(&run, "scan/host_live", 1 << 20, 90, 0.01)->tune, "splits=2");   /* the faster of two tunings counts */
    all = judged(RATIO "max_ctx = 1M\n", &run, false);
    assert_int_equal(all.n, 1);
    assert_true(all.finding[0].ratio == 100);
    findings_free(&all);

    strcpy(run.row[run.n - 1].status, "crash");                    /* a crash of one tuning is a crash */
    all = judged(RATIO "max_ctx = 1M\n", &run, false);
    assert_int_equal(all.finding[0].verdict, GATE_BROKEN);
    findings_free(&all);

    all = judged(RATIO "device = cuda\n", &run, false);
    assert_int_equal(all.finding[0].verdict, GATE_LEFT_OUT);
    assert_int_equal(findings_code(&all), EXIT_INCONCLUSIVE);       /* nothing was judged */
    findings_free(&all);
    free(run.row);
}

/* Rows of another build name kernels that this one lacks. */
static void test_names_of_run(void **state)
{
    static const char content[] = "[r]\nkernel = scan/new\nover = scan/host_full\nat-least = 2\n";
    struct table      run = {0};
    (void)state;
    add_row(&run, "scan/old", 1 << 20, 100, 0.01);
    assert_string_equal(refused(content, &run), "g.ini:2: scan/new: no such kernel, neither in this build nor in the run");
    add_row(&run, "scan/new", 1 << 20, 100, 0.01);
    assert_string_equal(refused(content, &run), "accepted");
    free(run.row);
}

static void test_static_limits(void **state)
{
    struct gatefile file;
    struct findings all = judged("[s]\nkernels = mix/*\nregisters = 168\narch = 90a\n", NULL, false);
    (void)state;
    assert_int_equal(all.n, 1);
    assert_int_equal(all.finding[0].verdict, GATE_HOLDS);
    assert_int_equal(findings_code(&all), EXIT_OK);
    findings_free(&all);

    all = judged("[s]\nkernels = mix/*\nregisters = 168\n", NULL, false);   /* 240 on the other architecture */
    assert_int_equal(all.n, 1);
    assert_string_equal(all.finding[0].what, "mix/cuda, sm 120a, mix_run<2>");
    assert_string_equal(all.finding[0].why, "registers is 240, at most 168 is allowed: registers of a thread");
    assert_int_equal(findings_code(&all), EXIT_REGRESSION);
    findings_free(&all);

    all = judged("[s]\nkernels = scan/early\nlocal = 0\nstack = 0\n", NULL, false);
    assert_int_equal(all.count[GATE_BROKEN], 2);
    findings_free(&all);

    all = judged("[s]\nkernels = mix/*\nregisters = 1\ntoolkit = 13.0\n", NULL, false);
    assert_int_equal(all.count[GATE_BROKEN], 2);
    findings_free(&all);
    all = judged("[s]\nkernels = mix/*\nregisters = 1\ntoolkit = 13\n", NULL, false);
    assert_int_equal(all.count[GATE_BROKEN], 2);
    findings_free(&all);
    all = judged("[s]\nkernels = mix/*\nregisters = 1\ntoolkit = 13.0.8\n", NULL, false);
    assert_int_equal(all.finding[0].verdict, GATE_LEFT_OUT);
    assert_string_equal(all.finding[0].why, "limits are for CUDA 13.0.8, this build is by 13.0.88");
    findings_free(&all);
    all = judged("[s]\nkernels = mix/*\nregisters = 1\narch = 100a\n", NULL, false);
    assert_string_equal(all.finding[0].why, "this build has no code for sm 100a");
    findings_free(&all);

    parsed(&file, "[s]\nkernels = mix/*\nregisters = 1\n");
    all = gate_judge(&file, NULL, NULL, no_facts, "", false);
    assert_string_equal(all.finding[0].why, "this build has no CUDA code");
    findings_free(&all), gatefile_free(&file);
}

static void test_words(void **state)
{
    static const char content[] = "[live & \"max\" <\xc3\xa9\xff\x1b>]\n"
                                  "kernel = scan/host_live\nover = scan/host_full\nat-least = 10\n"
                                  "[s]\nkernels = scan/early\nlocal = 0\n[t]\nkernels = mix/*\nregisters = 9\ntoolkit = 9\n";
    struct table    run = {0};
    char           *words = NULL;
    size_t          size = 0;
    (void)state;
    add_row(&run, "scan/host_full", 1 << 20, 500, 0.01);
    add_row(&run, "scan/host_live", 1 << 20, 100, 0.01);
    strcat(run.row[1].repeat, " \x1b[2J");
    struct findings all = judged(content, &run, false);
    FILE           *f = open_memstream(&words, &size);
    gate_print(f, &all, "g.ini", "/tmp/run");
    fclose(f);
    for (const char *line = words; *line; line += strcspn(line, "\n") + 1) assert_in_range(strcspn(line, "\n"), 0, 80);
    assert_non_null(strstr(words, "broken        5.00x (4.90x..5.10x), max_ctx=1M\n"));
    assert_non_null(strstr(words, "./kbench sweep --row 'scan/host_live'"));
    assert_non_null(strstr(words, "\n0 hold, 2 broken, 0 inconclusive, 1 left out\n"));
    assert_null(strchr(words, 0x1b));
    free(words);

    f = open_memstream(&words, &size);
    gate_junit(f, &all, "g.ini");
    fclose(f);
    assert_non_null(strstr(words, " tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"1\""));
    assert_non_null(strstr(words, "classname=\"live &amp; &quot;max&quot; &lt;\xc3\xa9??&gt;\""));
    assert_non_null(strstr(words, "<failure message=\"5.00x (4.90x..5.10x), max_ctx=1M\" type=\"broken\">"));
    assert_non_null(strstr(words, "<skipped message=\"limits are for CUDA 9, this build is by 13.0.88\"></skipped>"));
    free(words);
    findings_free(&all);
    free(run.row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar), cmocka_unit_test(test_refusals), cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_marks_of_either_row), cmocka_unit_test(test_times_that_are_none),
        cmocka_unit_test(test_noise_floors), cmocka_unit_test(test_files_of_floors),
        cmocka_unit_test(test_coverage), cmocka_unit_test(test_names_of_run), cmocka_unit_test(test_static_limits),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

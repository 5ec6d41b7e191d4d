#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base.h"
#include "fake.h"
#include "jobfile.h"
#include "sweep.h"

static char shown[1 << 16], why[1024];

static const struct machine machines[] = {
    [HOST] = {.engine = HOST, .name = "host", .facts = {.l2_bytes = 32 << 20, .memory_bytes = 64LL << 30}},
    [CUDA] = {.engine = CUDA,
        .name = "gpu",
        .facts = {.sm = 90, .sm_count = 132, .l2_bytes = 50 << 20, .memory_bytes = 141LL << 30}},
};

/* "mix batch=1 cold 1: mix/host_mma mix/host_split(splits=4;stages=2)", a line a group. */
static char *show_plan(const struct plan *plan)
{
    char *p = shown;
    *p = 0;
    for (int i = 0; i < plan->n; i++) {
        const struct group *g = &plan->group[i];
        struct problem      problem = {.op = op_find(g->op), .seed = g->seed};
        char                words[256];
        assert_int_equal(g->index, i);
        memcpy(problem.dim, g->dim, sizeof problem.dim);
        p += sprintf(p, "%s%s %s %s %llu:", i ? "\n" : "", g->op, problem_text(&problem, false, words, sizeof words),
            g->cache == HOT ? "hot" : "cold", (unsigned long long)g->seed);
        for (int v = 0; v < g->n; v++) {
            const struct registry r = {COUNT(builtin_kernels) - 1, (struct entry *)builtin_kernels};
            tune_text(registry_find(&r, g->variant[v].kernel)->kernel, g->variant[v].tune, words, sizeof words);
            p += sprintf(p, " %s%s%s%s", g->variant[v].kernel, *words ? "(" : "", words, *words ? ")" : "");
        }
        assert_true(p < shown + sizeof shown - 4096);
    }
    return shown;
}

/* The plan of a job file's content (NULL: none) and of words of the command line; 0, or non-zero with `why`. */
static int make_plan(enum engine engine, const char *content, const char *words, struct plan *ret, struct cli *ret_cli)
{
    struct jobfile  job = {0};
    struct registry registry = registry_open(0, NULL);
    static char     copy[2048];
    char           *argv[64] = {"kbench", "sweep"}, *mark;
    int             argc = 2, error = 0;
    strcpy(copy, words);
    for (char *word = strtok_r(copy, " ", &mark); word; word = strtok_r(NULL, " ", &mark)) {
        for (char *c = word; *c; c++)
            if (*c == '~') *c = ' ';           /* a blank inside a word */
        argv[argc++] = word;
    }
    struct cli cli = cli_parse(argc, argv);
    cli.quiet = true;
    if (content) error = jobfile_parse("t.ini", content, strlen(content), &job, why, sizeof why);
    if (!error) error = sweep_build(&cli, &registry, &machines[engine], &job, ret, why, sizeof why);
    jobfile_free(&job);
    free(registry.entry);
    if (ret_cli) *ret_cli = cli;
    else cli_free(&cli);
    return error;
}

static const char *plan_words(enum engine engine, const char *content, const char *words)
{
    struct plan plan;
    if (make_plan(engine, content, words, &plan, NULL)) return why;
    show_plan(&plan);
    plan_free(&plan);
    return shown;
}

static void test_command_line(void **state)
{
    (void)state;
    /* Product in the order of the op's dims, the last fastest; the oracle is never planned, the engine's own probe always. */
    assert_string_equal(plan_words(HOST, NULL, "-k mix/host_mma -a ctx=1K,8K -a batch=1,2"),
        "mix batch=1,ctx=1K cold 1: mix/host_mma mix/host_gather\n"
        "mix batch=1 cold 1: mix/host_mma mix/host_gather\n"
        "mix batch=2,ctx=1K cold 1: mix/host_mma mix/host_gather\n"
        "mix batch=2 cold 1: mix/host_mma mix/host_gather");
    assert_string_equal(plan_words(CUDA, NULL, "-k mix/* --seed 7"), "mix  cold 7: mix/cuda mix/gather");
    /* Kernels in the order of the globs, then of the table; --first leads; the probe stays last. */
    assert_string_equal(plan_words(HOST, NULL, "-k mix/host_split,mix/*"),
        "mix  cold 1: mix/host_split(splits=4;stages=2) mix/host_mma mix/host_gather");
    assert_string_equal(plan_words(HOST, NULL, "-k mix/* --first mix/cuda,mix/host_split"),
        "mix  cold 1: mix/host_split(splits=4;stages=2) mix/host_mma mix/host_gather");
    assert_string_equal(plan_words(HOST, NULL, "-k mix/* --skip mix/host_[sg]*"), "mix  cold 1: mix/host_mma");
    assert_string_equal(plan_words(HOST, NULL, "-k mix/host_gather"), "mix  cold 1: mix/host_gather");
    /* Dimensions alone choose the ops that have them all; -k takes a dimension where an op has it. */
    assert_string_equal(plan_words(HOST, NULL, "-a max_ctx=8K"), "scan max_ctx=8K cold 1: scan/host_full scan/host_live");
    assert_string_equal(plan_words(HOST, NULL, "-k *host_mma,*live -a max_ctx=8K"),
        "mix  cold 1: mix/host_mma mix/host_gather\nscan max_ctx=8K cold 1: scan/host_live");
    assert_string_equal(plan_words(HOST, NULL, "-k scan/host_live --cache both"),
        "scan  cold 1: scan/host_live\nscan  hot 1: scan/host_live");
    assert_string_equal(
        plan_words(HOST, NULL, "-k scan/host_live -a batch=1,2,4 -a max_ctx=4K,16K,64K --zip batch,max_ctx"),
        "scan max_ctx=4K cold 1: scan/host_live\nscan batch=2,max_ctx=16K cold 1: scan/host_live\nscan batch=4,max_ctx=64K "
        "cold 1: scan/host_live");
}

static void test_tunables(void **state)
{
    (void)state;
    assert_string_equal(plan_words(HOST, NULL, "-k mix/host_[ms]* -t splits=1,64 -t stages=3,1"),
        "mix  cold 1: mix/host_mma mix/host_split(splits=1;stages=3) mix/host_split(splits=1;stages=1) "
        "mix/host_split(splits=64;stages=3) "
        "mix/host_split(splits=64;stages=1) mix/host_gather");
    assert_string_equal(plan_words(HOST, NULL, "-k mix/host_split -t splits=65"), "-t splits=65: mix/host_split takes 1 to 64");
    assert_string_equal(plan_words(HOST, NULL, "-k mix/host_split -t slits=1"),
        "-t slits: no selected kernel has this tunable; did you mean 'splits'?");
    assert_string_equal(plan_words(HOST, NULL, "-k mix/host_mma -t splits=1"),
        "-t splits: no selected kernel has this tunable; did you mean 'splits'?");
    assert_string_equal(plan_words(HOST, NULL, "-k mix/* -t splits=1:64:+1"),
        "this selection: more than 64 kernels and tunable values compete on one problem; take fewer values of -t");
}

static void test_row(void **state)
{
    (void)state;
    assert_string_equal(plan_words(HOST, NULL, "--row mix/host_split~batch=64,ctx=128K,splits=8 --seed 7"),
        "mix batch=64,ctx=128K cold 7: mix/host_split(splits=8;stages=2)");
    assert_string_equal(plan_words(HOST, NULL, "--row mix/host_split~batch=64;stages=3 --cache hot"),
        "mix batch=64 hot 1: mix/host_split(splits=4;stages=3)");
    assert_string_equal(plan_words(HOST, NULL, "--row mix/host_mma"), "mix  cold 1: mix/host_mma");
    assert_string_equal(plan_words(CUDA, NULL, "--row mix/gather"), "mix  cold 1: mix/gather");
    assert_string_equal(
        plan_words(HOST, NULL, "--row mix/host_mm"), "--row mix/host_mm: no such kernel; did you mean 'mix/host_mma'?");
    assert_string_equal(plan_words(HOST, NULL, "--row mix/cuda"),
        "--row mix/cuda: is a kernel of the cuda engine, this is the host engine; choose it by --device cuda");
    assert_string_equal(plan_words(HOST, NULL, "--row mix/host_mma~bacth=1"),
        "--row bacth: neither a dimension of op mix nor a tunable of that kernel; did you mean 'batch'?");
    assert_string_equal(
        plan_words(HOST, NULL, "--row mix/host_mma~batch=0"), "--row batch=0: batch takes 1 to 4K requests in op mix");
    assert_string_equal(plan_words(HOST, NULL, "--row mix/host_mma~batch=1:4:*2"), "--row batch=1:4:*2: NAME=VALUE is expected");
    assert_string_equal(plan_words(HOST, NULL, "--row mix/host_mma~batch"), "--row batch: NAME=VALUE is expected");
    assert_string_equal(
        plan_words(HOST, NULL, "--row mix/host_mma~topk=9"), "--row mix/host_mma topk=9: topk must be a multiple of 8");
    assert_string_equal(plan_words(HOST, NULL, "--row mix/host_split~splits=99"), "--row splits=99: mix/host_split takes 1 to 64");
    assert_string_equal(plan_words(HOST, NULL, "--row mix/host_mma --cache both"),
        "--row mix/host_mma: one row is cold or hot, not both; give --cache cold or hot");
    assert_string_equal(plan_words(HOST, NULL, "--row mix/host_oracle"),
        "--row mix/host_oracle: is the reference of large problems, which the check runs by itself");
}

/* Values with words: read as words, said as words. */
static void test_words(void **state)
{
    (void)state;
    assert_string_equal(plan_words(HOST, NULL, "-k scan/host_live -a tail=unique,page0"),
        "scan tail=unique cold 1: scan/host_live\nscan  cold 1: scan/host_live");
    assert_string_equal(plan_words(HOST, NULL, "--row scan/host_live~batch=2,tail=minus1"),
        "scan batch=2,tail=minus1 cold 1: scan/host_live");
    assert_string_equal(plan_words(HOST, NULL, "--row scan/host_live~tail=minus2"),
        "--row tail=minus2: is none of page0, unique or minus1; did you mean 'minus1'?");
    assert_string_equal(plan_words(HOST, "[a]\nkernels = scan/host_live\ntail = page0, unique\nskip = tail=page0 batch=1\n", ""),
        "t.ini:3: tail= unique: a word is expected: page0, unique or minus1");
    assert_string_equal(plan_words(HOST, "[a]\nkernels = scan/host_live\ntail = page0,unique\nskip = tail=page0 batch=1\n", ""),
        "scan tail=unique cold 1: scan/host_live");
    assert_string_equal(plan_words(HOST, "[a]\nkernels = scan/host_live\ntail = page0,unique,minus1\nskip = tail!=unique\n", ""),
        "scan tail=unique cold 1: scan/host_live");
}

static void test_job_files(void **state)
{
    (void)state;
    /* Sections run in order; what they leave open is [global]'s; equal problems are one group. */
    assert_string_equal(plan_words(HOST,
                            "[global]\nkernels = mix/host_mma\nctx = 1K\nseed = 5\n[a]\nbatch = 1,2\n[b]\nkernels = "
                            "mix/host_split\nbatch = 2,4\n",
                            ""),
        "mix batch=1,ctx=1K cold 5: mix/host_mma mix/host_gather\n"
        "mix batch=2,ctx=1K cold 5: mix/host_mma mix/host_split(splits=4;stages=2) mix/host_gather\n"
        "mix batch=4,ctx=1K cold 5: mix/host_split(splits=4;stages=2) mix/host_gather");
    /* The command line overrides an axis, a seed, a cache; -k narrows. */
    assert_string_equal(plan_words(HOST, "[a]\nkernels = mix/host_*\nbatch = 1,2\nseed = 5\ncache = hot\n",
                            "-a batch=4 --seed 6 --cache cold -k *mma"),
        "mix batch=4 cold 6: mix/host_mma mix/host_gather");
    assert_string_equal(plan_words(HOST, "[a]\nkernels = mix/host_mma\ncache = both\nseed = 5\n", ""),
        "mix  cold 5: mix/host_mma mix/host_gather\nmix  hot 5: mix/host_mma mix/host_gather");
    /* skip: all comparisons of a line, any of the lines, the section's and [global]'s. */
    assert_string_equal(plan_words(HOST,
                            "[global]\nskip = batch=1 ctx=1K\n[a]\nkernels = scan/*,mix/host_mma\nbatch = 1,2,4\nctx = "
                            "1K,8K\nmax_ctx = 4K\nskip = batch>2\nskip = batch >= 2 ctx != 1K\n",
                            "--skip *gather,*full"),
        "scan max_ctx=4K cold 1: scan/host_live\nscan batch=2,max_ctx=4K cold 1: scan/host_live\n"
        "mix batch=1 cold 1: mix/host_mma\nmix batch=2,ctx=1K cold 1: mix/host_mma");
    assert_string_equal(plan_words(HOST, "[a]\nkernels = mix/host_split\ntune.splits = 1,2\n", "--skip *gather"),
        "mix  cold 1: mix/host_split(splits=1;stages=2) mix/host_split(splits=2;stages=2)");
    assert_string_equal(
        plan_words(HOST, "[a]\nkernels = mix/host_mma\nbatch = 1,2,4\nctx = 4K,2K,1K\nzip = batch,ctx\n", "--skip *gather"),
        "mix batch=1,ctx=4K cold 1: mix/host_mma\nmix batch=2,ctx=2K cold 1: mix/host_mma\nmix batch=4,ctx=1K cold 1: "
        "mix/host_mma");
    /* A list of variants is run as it stands. */
    assert_string_equal(
        plan_words(HOST,
            "[a]\nvariant = mix/host_split splits=8\nvariant = mix/host_mma\nvariant = mix/host_split stages=1,splits=2\n",
            ""),
        "mix  cold 1: mix/host_split(splits=8;stages=2) mix/host_mma mix/host_split(splits=2;stages=1)");
    /* Problems that an op refuses are left out of a product. */
    assert_string_equal(plan_words(HOST, "[a]\nkernels = mix/host_mma\ntopk = 4:16:+4\n", "--skip *gather"),
        "mix topk=8 cold 1: mix/host_mma\nmix topk=16 cold 1: mix/host_mma");
    /* Kernels of the other engine are left out, and may lead nothing here. */
    assert_string_equal(plan_words(CUDA, "[a]\nkernels = mix/*,scan/*\nfirst = mix/host_mma\n", ""),
        "mix  cold 1: mix/cuda mix/gather\nscan  cold 1: scan/early");
}

/* A section may be for one engine alone; what it says is read and checked all the same, and [global] may speak of it. */
static void test_devices(void **state)
{
    static const char content[] = "[global]\nmax_ctx = 8K\n[a]\nkernels = mix/*\ndevice = cuda\nbatch = 64\n[b]\nkernels = scan/*\n"
                                  "device = host\nbatch = 2\n[c]\nkernels = mix/host_mma,mix/cuda\nbatch = 3\n";
    (void)state;
    assert_string_equal(plan_words(HOST, content, ""),
        "scan batch=2,max_ctx=8K cold 1: scan/host_full scan/host_live\nmix batch=3 cold 1: mix/host_mma mix/host_gather");
    assert_string_equal(plan_words(CUDA, content, ""),
        "mix batch=64 cold 1: mix/cuda mix/gather\nmix batch=3 cold 1: mix/cuda mix/gather");
}

static void test_refusals(void **state)
{
    static const char *const cases[][3] = {
        /* the command line */
        {NULL, "-k mix", "-k mix: no kernel matches; did you mean 'mix/*'?"},
        {NULL, "-k mxi", "-k mxi: no kernel matches; did you mean 'mix/*'?"},
        {NULL, "-k mix/host_mna", "-k mix/host_mna: no kernel matches; did you mean 'mix/host_mma'?"},
        {NULL, "-k zebra/stripes", "-k zebra/stripes: no kernel matches"},
        {NULL, "-k mix/* --skip zebra", "--skip zebra: no kernel matches"},
        {NULL, "-k mix/* --first mix/kuda", "--first mix/kuda: no kernel matches; did you mean 'mix/cuda'?"},
        {NULL, "-k mix/host_oracle",
            "-k mix/host_oracle: is the reference of large problems, which the check runs by itself; it is no competitor"},
        {NULL, "-a bacth=1", "-a bacth: no op has a dimension of that name; did you mean 'batch'?"},
        {NULL, "-k mix/* -a max_ctx=8K", "-a max_ctx: no selected op has this dimension (selected: mix)"},
        {NULL, "-k scan/* -a ctx=8K", "-a ctx: no selected op has this dimension (selected: scan)"},
        {NULL, "-k mix/* -a batch=0", "-a batch=0: batch takes 1 to 4K requests in op mix"},
        {NULL, "-k mix/* -a batch=-1", "-a batch=-1: batch takes 1 to 4K requests in op mix"},
        {NULL, "-k mix/* -a ctx=2M", "-a ctx=2097152: ctx takes 0 to 1M tokens in op mix"},
        {NULL, "-k mix/* -a batch=1:8", "-a batch=1:8: a range needs a step, as in 1:16:*2 or 64:512:+64"},
        {NULL, "-k mix/* -a batch=1 -a batch=2", "-a batch: is there twice; give one list"},
        {NULL, "-k mix/* -a topk=9",
            "every problem of this selection is refused: topk must be a multiple of 8 (mix topk=9)"},
        {NULL, "-k mix/host_mma --zip batch,ctx -a batch=1,2 -a ctx=1,2,3",
            "--zip batch has 2 values and ctx has 3; they are walked together"},
        {NULL, "-k mix/host_mma --zip batch", "--zip batch: two dimensions at least are walked together, as in batch,ctx"},
        {NULL, "-k mix/host_mma --zip batch,max_ctx", "--zip max_ctx: no selected op has this dimension (selected: mix)"},
        {NULL, "-k mix/cuda",
            "1 kernel matches, but for the cuda engine (mix/cuda), and this is the host engine; choose it by --device "
            "cuda"},
        {NULL, "-k *cuda,*early",
            "2 kernels match, but for the cuda engine (scan/early), and this is the host engine; choose it by --device "
            "cuda"},
        {NULL, "-k mix/host_mma --skip mix/*",
            "no kernel is left to run: -k, --skip and the job file's kernels have none in common"},
        {NULL, "-k mix/* -a batch=1:4096:+1 -a ctx=1:4096:+1",
            "this selection: 1.678e+07 problems of op mix; take fewer values or larger steps (at most 1048576)"},
        {NULL, "-k mix/host_mma -a batch=1:4096:+1 -a ctx=1:32:+1",
            "this selection: more than 16384 row groups; take fewer values or larger steps"},
        /* job files */
        {"[a]\nkernels = mix/*\nbathc = 1\n", "",
            "t.ini:3: bathc: no op has a dimension of that name, and it is no key; did you mean 'batch'?"},
        {"[a]\nkernel = mix/*\n", "",
            "t.ini:2: kernel: no op has a dimension of that name, and it is no key; did you mean 'kernels'?"},
        {"[a]\nkernels = mix/*,\n", "", "t.ini:2: mix/*,: an empty word; remove the comma"},
        {"[a]\nkernels = mix/*, mix/host_mna\n", "",
            "t.ini:2: mix/host_mna: no kernel matches; did you mean 'mix/host_mma'?"},
        {"[a]\nkernels = mix/*\nbatch = 1,,2\n", "", "t.ini:3: batch=1,,2: a value is missing"},
        {"[a]\nkernels = mix/*\nbatch = 1:8:*1\n", "", "t.ini:3: batch=1:8:*1: the factor must be at least *2"},
        {"[a]\nkernels = mix/*\nbatch = 5000\n", "", "t.ini:3: batch=5000: batch takes 1 to 4K requests in op mix"},
        {"[a]\nkernels = mix/*\nmax_ctx = 8K\n", "", "t.ini:3: max_ctx: no selected op has this dimension (selected: mix)"},
        {"[global]\nmax_ctx = 8K\n[a]\nkernels = mix/*\n", "",
            "t.ini:2: max_ctx: no selected op has this dimension (selected: mix)"},
        {"[a]\nkernels = mix/*\ntune.splis = 2\n", "",
            "t.ini:3: splis: no selected kernel has this tunable; did you mean 'splits'?"},
        {"[a]\nkernels = mix/*\ntune.splits = 2,0\n", "", "t.ini:3: splits=0: mix/host_split takes 1 to 64"},
        {"[a]\nkernels = mix/*\nbudget = 30s\n", "", "t.ini:3: budget: holds for the whole run; put it into [global]"},
        {"[global]\nbudget = soon\n[a]\nkernels = mix/*\n", "",
            "t.ini:2: budget = soon: is not a time above 0, as in 30s, 2m or 500ms"},
        {"[global]\ndevice = host\n[a]\nkernels = mix/*\n", "",
            "t.ini:2: device: says which engine a section is for; for a whole run give --device"},
        {"[a]\nkernels = mix/*\ndevice = gpu\n", "", "t.ini:3: device = gpu: is not one of host, cuda"},
        {"[a]\nkernels = mix/*\ndevice = cuda\n", "",
            "every section is for the other engine (device = ...), and this is the host engine"},
        {"[a]\nkernels = mix/hots_mma\ndevice = cuda\n", "",
            "t.ini:2: mix/hots_mma: no kernel matches; did you mean 'mix/host_mma'?"},
        {"[a]\nkernels = mix/*\ncache = warm\n", "", "t.ini:3: cache = warm: is not one of cold, hot, both"},
        {"[a]\nkernels = mix/*\nseed = x\n", "", "t.ini:3: seed = x: is not a whole number from 0 to 2^63-1"},
        {"[a]\nkernels = mix/*\nskip = batch\n", "", "t.ini:3: skip batch: <, <=, >, >=, = or != is expected behind batch"},
        {"[a]\nkernels = mix/*\nskip = batch>\n", "",
            "t.ini:3: skip batch>: behind batch, a whole number is expected, with K or M for powers of 1024"},
        {"[a]\nkernels = scan/*\ntail = pge0\n", "",
            "t.ini:3: tail=pge0: is none of page0, unique or minus1; did you mean 'page0'?"},
        {"[a]\nkernels = scan/*\ntail = 3\n", "", "t.ini:3: tail=3: tail takes page0, unique or minus1 in op scan"},
        {"[a]\nkernels = scan/*\nskip = tail=some\n", "",
            "t.ini:3: skip tail=some: behind tail, is none of page0, unique or minus1"},
        {"[a]\nkernels = mix/*\nskip = batch>8x\n", "", "t.ini:3: skip batch>8x: unexpected 'x' behind a number"},
        {"[a]\nkernels = mix/*\nskip = >8\n", "",
            "t.ini:3: skip >8: DIM<VALUE is expected at '>8', as in batch>64 ctx>=128K"},
        {"[a]\nkernels = mix/*\nskip = bacth>8\n", "",
            "t.ini:3: bacth: no op has a dimension of that name; did you mean 'batch'?"},
        {"[a]\nkernels = mix/*\nskip = max_ctx>8\n", "",
            "t.ini:3: max_ctx: no selected op has this dimension (selected: mix)"},
        {"[a]\nkernels = mix/host_mma\nskip = batch>=0\n", "",
            "every problem of this selection is left out by a 'skip' of the job file"},
        {"[a]\nkernels = mix/*\nzip = batch,batch\n", "", "t.ini:3: batch,batch: batch is there twice"},
        {"[a]\nkernels = mix/*\nbatch = 1,2\nctx = 1,2\ntopk = 8,16\nzip = batch,ctx\nzip = ctx,topk\n", "",
            "t.ini:7: ctx is in another zip, too"},
        {"[a]\nkernels = mix/*\nvariant = mix/host_mma\n", "",
            "t.ini:3: variant: stands beside kernels; a section has one or the other"},
        {"[a]\nvariant = mix/host_mna\n", "", "t.ini:2: mix/host_mna: no kernel matches; did you mean 'mix/host_mma'?"},
        {"[a]\nvariant = mix/host_split split=2\n", "",
            "t.ini:2: split: mix/host_split has no such tunable; did you mean 'splits'?"},
        {"[a]\nvariant = mix/host_split splits=65\n", "", "t.ini:2: splits=65: mix/host_split takes 1 to 64"},
        {"[a]\nvariant = mix/host_split splits\n", "",
            "t.ini:2: variant mix/host_split splits: up to 4 NAME=VALUE of tunables are expected behind the kernel"},
        {"[a]\nkernels = mix/*\n", "-a max_ctx=8K", "-a max_ctx: no selected op has this dimension (selected: mix)"},
        {"[a]\nkernels = mix/*\n", "-k scan/*",
            "no kernel is left to run: -k, --skip and the job file's kernels have none in common"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) assert_string_equal(plan_words(HOST, cases[i][0], cases[i][1]), cases[i][2]);
}

/* Settings for the whole run come from [global] unless stronger words are there. */
static void test_settings(void **state)
{
    static const char content[] = "[global]\nbudget = 2m\nnoise = 1.5\nmax-time = 500ms\nseed = 9\n[a]\nkernels = mix/host_mma\n";
    struct plan plan;
    struct cli  cli;
    (void)state;
    assert_int_equal(make_plan(HOST, content, "--noise 3", &plan, &cli), 0);
    assert_true(cli.budget_s == 120 && cli.width_pct == 3 && cli.cap_s == 0.5);
    assert_int_equal(cli.seed, 9);
    assert_int_equal(plan.group[0].seed, 9);
    plan_free(&plan), cli_free(&cli);
    setenv("KBENCH_MAX_TIME", "4", 1);
    assert_int_equal(make_plan(HOST, content, "", &plan, &cli), 0);
    assert_true(cli.cap_s == 4 && cli.width_pct == 1.5);
    unsetenv("KBENCH_MAX_TIME");
    plan_free(&plan), cli_free(&cli);
}

/* plan.ini plans the same groups again, whatever made them. */
static void test_round_trip(void **state)
{
    static const char *const cases[][2] = {
        {NULL, "-k mix/host_mma -a batch=1"},
        {NULL, "-k mix/host_* -a batch=1:64:*2 -a ctx=1K:128K:*2 --seed 9223372036854775807"},
        {NULL, "-k * -a batch=1,3 --cache both"},
        {NULL, "-k mix/* -t splits=1:8:*2 --first mix/host_split"},
        {NULL, "--row mix/host_split~splits=8,batch=3"},
        {NULL, "-k scan/* -a tail=page0,minus1 -a max_ctx=2K"},
        {NULL, "--row scan/host_live~tail=unique"},
        {"[a]\nkernels = mix/host_mma\nbatch = 1,2\n[b]\nkernels = mix/*\nbatch = 2,3\ntune.splits = 1,2\nseed = "
         "4\n[c]\nkernels = scan/*\ncache = hot\nmax_ctx = 1025\n",
            ""},
        {"[global]\nbudget = 90s\nnoise = 0.1\ntimeout = 3s\nreference-s = 0\nrounds = 7\n[a]\nkernels = scan/host_live\nbatch = "
         "1:512:*2\nmax_ctx = 1024:1M:*2\n",
            ""},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        struct plan     first, second;
        struct cli      cli, again;
        struct registry r = registry_open(0, NULL);
        assert_int_equal(make_plan(HOST, cases[i][0], cases[i][1], &first, &cli), 0);
        char *content = plan_ini(&first, &r, &cli);
        if (make_plan(HOST, content, "", &second, &again)) fail_msg("%s\n%s", why, content);
        assert_int_equal(first.n, second.n);
        assert_memory_equal(first.group, second.group, (size_t)first.n * sizeof *first.group);
        assert_true(again.budget_s == cli.budget_s && again.width_pct == cli.width_pct && again.rounds == cli.rounds &&
                    again.timeout_s == cli.timeout_s && again.reference_s == cli.reference_s);
        plan_free(&first), plan_free(&second);
        cli_free(&cli), cli_free(&again);
        free(content), free(r.entry);
    }
}

static void test_dry_run(void **state)
{
    struct plan     plan;
    struct cli      cli;
    struct registry r = registry_open(0, NULL);
    char           *content = NULL;
    size_t          size = 0;
    (void)state;
    assert_int_equal(
        make_plan(HOST, "[a]\nkernels = mix/host_[ms]*\nctx = 128K\nbatch = 1:128:*4\n[b]\nkernels = scan/host_full\n", "",
            &plan, &cli),
        0);
    FILE *f = open_memstream(&content, &size);
    plan_print(f, &plan, &r, &machines[HOST], &cli);
    fclose(f);
    assert_string_equal(content,
        "\nop mix: mix/host_mma mix/host_split(splits=4;stages=2) mix/host_gather\n"
        "  group  cache   memory      time  problem\n"
        "      1  cold   65.5 GB     3.6 s  batch=1,ctx=128K\n"
        "      2  cold   65.5 GB     3.6 s  batch=4,ctx=128K\n"
        "      3  cold   66.6 GB     3.8 s  batch=16,ctx=128K\n"
        "      4  cold   68.7 GB     4.6 s  batch=64,ctx=128K\n"
        "\nop scan: scan/host_full O(max_ctx)\n"
        "  group  cache   memory      time  problem\n"
        "      5  cold    256 MB     1.4 s  all defaults\n"
        "\n5 row groups, 13 rows: about 16.9 s, up to 68.7 GB of memory at once (this machine has 68.7 GB)\n");
    free(content), free(r.entry);
    plan_free(&plan), cli_free(&cli);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_tunables),
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_job_files),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_dry_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

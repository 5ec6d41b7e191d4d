#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/stat.h>
#include "base.h"
#include "cli.h"
#include "cli_help.h"
#include "commands.h"
#include "fake.h"
#include "runfolder.h"

/* The program ends with what it holds: under AddressSanitizer its children must not be counted leaks for that. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

static struct cli parse_words(const char *words)
{
    static char copy[1024];
    char       *argv[64] = {"kbench"}, *mark;
    int         argc = 1;
    strcpy(copy, words);
    for (char *word = strtok_r(copy, " ", &mark); word; word = strtok_r(NULL, " ", &mark)) argv[argc++] = word;
    return cli_parse(argc, argv);
}

static void parse_in_child(void *words)
{
    struct cli cli = parse_words(words);
    cli_free(&cli);
}

static const char *said(const char *words)
{
    static char out[8192];
    int code = caught(parse_in_child, (void *)words, out, sizeof out);
    size_t n = strlen(out);
    text(out + n, sizeof out - n, "exit %d", code);
    return out;
}

static void test_values(void **state)
{
    struct cli cli = parse_words(
        "sweep a.ini -k attn/*,x -kb --kernel=c b.ini -a batch=1,2 -a ctx=8K --seed 7 --cache both --budget 2m --max-time "
        "500ms "
        "--noise 1.5% --rounds 9 --reference-s 0 "
        "--timeout .5h --device cuda:3 --plugin a,b.so -vqv --force --no-plots --out d -- -k");
    (void)state;
    assert_string_equal(cli.command, "sweep");
    assert_int_equal(cli.args.n, 3);
    assert_string_equal(cli.args.word[0], "a.ini");
    assert_string_equal(cli.args.word[1], "b.ini");
    assert_string_equal(cli.args.word[2], "-k");
    assert_int_equal(cli.kernels.n, 4);
    assert_string_equal(cli.kernels.word[0], "attn/*");
    assert_string_equal(cli.kernels.word[1], "x");
    assert_string_equal(cli.kernels.word[2], "b");
    assert_string_equal(cli.kernels.word[3], "c");
    assert_int_equal(cli.axes.n, 2);
    assert_string_equal(cli.axes.word[0], "batch=1,2");
    assert_int_equal(cli.plugins.n, 1);                     /* paths may hold commas */
    assert_string_equal(cli.plugins.word[0], "a,b.so");
    assert_true(cli.seed == 7 && cli.seed_given && cli.cache == CACHE_BOTH && cli.cache_given);
    assert_true(cli.budget_s == 120 && cli.cap_s == 0.5 && cli.width_pct == 1.5 && cli.timeout_s == 1800 &&
                cli.reference_s == 0);
    assert_int_equal(cli.rounds, 9);
    assert_string_equal(cli.device, "cuda:3");
    assert_string_equal(cli.out, "d");
    assert_true(cli.quiet && cli.force && cli.no_plots && !cli.strict && !cli.dry_run);
    assert_int_equal(cli.verbose, 2);
    cli_free(&cli);
}

static void test_defaults(void **state)
{
    struct cli cli = parse_words("check");
    (void)state;
    assert_string_equal(cli.device, "auto");
    assert_string_equal(cli.colour, "auto");
    assert_true(cli.seed == 1 && !cli.seed_given && cli.cache == CACHE_COLD && !cli.cache_given);
    assert_true(cli.budget_s == 0 && cli.cap_s == 0 && cli.width_pct == 0 && cli.timeout_s == 0 && cli.rounds == 0 &&
                cli.reference_s == 0.12);
    assert_true(!cli.out && !cli.row && !cli.resume && !cli.wrap && !cli.args.n && !cli.kernels.n);
    cli_free(&cli);
}

static void test_command_line(void **state)
{
    char      *argv[] = {"./kbench", "sweep", "--row", "attn/mma batch=1", "-k", "a*", "x", "it's", NULL};
    struct cli cli = cli_parse(8, argv);
    (void)state;
    assert_string_equal(cli.command_line, "./kbench sweep --row 'attn/mma batch=1' -k 'a*' x 'it'\\''s'");
    cli_free(&cli);
}

static void test_refusals(void **state)
{
    static const char *const cases[][2] = {
        {"swep", "kbench: swep: no such command ('kbench --help' lists them); did you mean 'sweep'?\nexit 2"},
        {"measure", "kbench: measure: no such command ('kbench --help' lists them)\nexit 2"},
        {"--budget 3", "kbench: --budget: the command comes first, as in 'kbench sweep --budget'\nexit 2"},
        {"sweep --bugdet 30s", "kbench: --bugdet: no such option of 'sweep'; did you mean '--budget'?\nexit 2"},
        {"sweep --bugdet=30s", "kbench: --bugdet: no such option of 'sweep'; did you mean '--budget'?\nexit 2"},
        {"sweep -x", "kbench: -x: no such option of 'sweep'\nexit 2"},
        {"check --budget 3", "kbench: --budget: not an option of 'check', but of sweep, gate, profile\nexit 2"},
        {"sweep --json", "kbench: --json: not an option of 'sweep', but of list, doctor\nexit 2"},
        {"doctor floors",
            "kbench: floors: 'doctor' takes no argument but options; 'kbench doctor --help' lists them\nexit 2"},
        {"precision -- -k",
            "kbench: -k: 'precision' takes no argument but options; 'kbench precision --help' lists them\nexit 2"},
        {"sweep --budget", "kbench: --budget: a value is missing, TIME\nexit 2"},
        {"sweep --force=yes", "kbench: --force: takes no value, got 'yes'\nexit 2"},
        {"sweep --budget soon", "kbench: --budget soon: is not a time above 0, as in 30s, 2m or 500ms\nexit 2"},
        {"sweep --budget -3", "kbench: --budget -3: is not a time above 0, as in 30s, 2m or 500ms\nexit 2"},
        {"sweep --budget 0", "kbench: --budget 0: is not a time above 0, as in 30s, 2m or 500ms\nexit 2"},
        {"sweep --budget nan", "kbench: --budget nan: is not a time above 0, as in 30s, 2m or 500ms\nexit 2"},
        {"sweep --budget 1e9", "kbench: --budget 1e9: is not a time above 0, as in 30s, 2m or 500ms\nexit 2"},
        {"sweep --budget 3x", "kbench: --budget 3x: is not a time above 0, as in 30s, 2m or 500ms\nexit 2"},
        {"check --reference-s -1", "kbench: --reference-s -1: is not 0 or a time, as in 0.5, 30s or 500ms\nexit 2"},
        {"check --reference-s nan", "kbench: --reference-s nan: is not 0 or a time, as in 0.5, 30s or 500ms\nexit 2"},
        {"check --reference-s 0x", "kbench: --reference-s 0x: is not 0 or a time, as in 0.5, 30s or 500ms\nexit 2"},
        {"sweep --noise 101", "kbench: --noise 101: is not a percentage above 0 and up to 100\nexit 2"},
        {"sweep --noise nan", "kbench: --noise nan: is not a percentage above 0 and up to 100\nexit 2"},
        {"sweep --rounds 0", "kbench: --rounds 0: is not a whole number from 1 to 1000000\nexit 2"},
        {"sweep --rounds 3.5", "kbench: --rounds 3.5: is not a whole number from 1 to 1000000\nexit 2"},
        {"sweep --seed -1", "kbench: --seed -1: is not a whole number from 0 to 2^63-1\nexit 2"},
        {"sweep --seed 9223372036854775808",
            "kbench: --seed 9223372036854775808: is not a whole number from 0 to 2^63-1\nexit 2"},
        {"sweep --cache warm", "kbench: --cache warm: is not one of cold, hot, both\nexit 2"},
        {"sweep --color red", "kbench: --color red: is not one of auto, always, never\nexit 2"},
        {"sweep --device gpu", "kbench: --device gpu: is not one of auto, host, cuda, cuda:N, GPU-UUID, MIG-UUID\nexit 2"},
        {"sweep --device cuda:x",
            "kbench: --device cuda:x: is not one of auto, host, cuda, cuda:N, GPU-UUID, MIG-UUID\nexit 2"},
        {"sweep -k a,,b", "kbench: --kernel a,,b: an empty word; remove the comma\nexit 2"},
        {"sweep -k a,", "kbench: --kernel a,: an empty word; remove the comma\nexit 2"},
        {"sweep --out=", "kbench: --out : is empty\nexit 2"},
        {"help swep", "kbench: swep: no such command ('kbench --help' lists them); did you mean 'sweep'?\nexit 2"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) assert_string_equal(said(cases[i][0]), cases[i][1]);
}

static void test_environment(void **state)
{
    (void)state;
    setenv("KBENCH_MAX_TIME", "3s", 1), setenv("KBENCH_KERNEL", "a,b", 1), setenv("KBENCH_NO_PLOTS", "yes", 1),
        setenv("KBENCH_FORCE", "0", 1);
    setenv("KBENCH_BUILD", "x", 1), setenv("KBENCH_INSTALL", "no", 1), setenv("KBENCH_ROOT", ".", 1), setenv("KBENCH_MESON", "", 1);
    struct cli cli = parse_words("sweep");
    assert_true(cli.cap_s == 3 && cli.no_plots && !cli.force && cli.kernels.n == 2);
    cli_free(&cli);
    cli = parse_words("sweep -k c --max-time 4");         /* the command line's list takes the environment's place */
    assert_true(cli.cap_s == 4 && cli.kernels.n == 1 && !strcmp(cli.kernels.word[0], "c"));
    cli_free(&cli);
    setenv("KBENCH_FORCE", "maybe", 1);
    assert_string_equal(said("sweep"), "kbench: KBENCH_FORCE=maybe in the environment: neither yes nor no\nexit 2");
    setenv("KBENCH_FORCE", "", 1), setenv("KBENCH_CACHE", "warm", 1);
    assert_string_equal(said("sweep"), "kbench: KBENCH_CACHE=warm in the environment: is not one of cold, hot, both\nexit 2");
    unsetenv("KBENCH_CACHE"), setenv("KBENCH_MAXTIME", "3", 1);
    assert_string_equal(
        said("list"), "kbench: KBENCH_MAXTIME in the environment: no such option; did you mean 'KBENCH_MAX_TIME'?\nexit 2");
    static const char *const all[] = {"MAXTIME", "MAX_TIME", "KERNEL", "NO_PLOTS", "FORCE", "BUILD", "INSTALL", "ROOT", "MESON"};
    for (int i = 0; i < COUNT(all); i++) {
        char name[32];
        unsetenv(text(name, sizeof name, "KBENCH_%s", all[i]));
    }
}

/* The job file's word is the weakest of the three, and the origin is told. */
static void test_precedence(void **state)
{
    char   why[128], *content = NULL;
    size_t size = 0;
    (void)state;
    setenv("KBENCH_NOISE", "2", 1);
    struct cli cli = parse_words("sweep --budget 30s");
    assert_int_equal(cli_default(&cli, "budget", "1h", why, sizeof why), 0);
    assert_int_equal(cli_default(&cli, "noise", "3", why, sizeof why), 0);
    assert_int_equal(cli_default(&cli, "max-time", "4s", why, sizeof why), 0);
    assert_int_equal(cli_default(&cli, "rounds", "none", why, sizeof why), 1);
    assert_string_equal(why, "rounds = none: is not a whole number from 1 to 1000000");
    assert_true(cli.budget_s == 30 && cli.width_pct == 2 && cli.cap_s == 4);
    FILE *f = open_memstream(&content, &size);
    cli_show(f, &cli);
    fclose(f);
    assert_non_null(strstr(content, "\nbudget        command line  30 s\n"));
    assert_non_null(strstr(content, "\nnoise         environment   2 %\n"));
    assert_non_null(strstr(content, "\nmax-time      job file      4 s\n"));
    assert_non_null(strstr(content, "\ndevice        default       auto\n"));
    assert_null(strstr(content, "\njson "));             /* not an option of sweep */
    free(content), cli_free(&cli);
    unsetenv("KBENCH_NOISE");
}

static int widest(const char *words)
{
    int most = 0;
    for (const char *p = words; *p; p += strcspn(p, "\n"), p += *p == '\n')
        if ((int)strcspn(p, "\n") > most) most = (int)strcspn(p, "\n");
    return most;
}

static void test_help(void **state)
{
    (void)state;
    assert_in_range(widest(said("--help")), 40, 80);
    for (int i = 0; cli_commands[i].name; i++) {
        char words[64];
        const char *help = said(text(words, sizeof words, "%s --help", cli_commands[i].name));
        assert_in_range(widest(help), 40, 80);
        assert_non_null(strstr(help, "exit 0"));
        for (int o = 0; cli_options[o].name; o++) {
            char name[40];
            text(name, sizeof name, "--%s", cli_options[o].name);
            assert_int_equal(strstr(help, name) != NULL, (cli_options[o].commands >> i & 1) != 0);
        }
    }
    assert_non_null(strstr(said("--version"), "kbench "));
    assert_non_null(strstr(said(""), "exit 2"));
}

static void list_in_child(void *words)
{
    struct cli      cli = parse_words(words);
    struct registry r = registry_open(0, NULL);
    struct machine machines[] = {
        {.engine = HOST, .name = "some CPU", .features = "avx2", .facts = {.memory_bytes = 8000000000}},
        {.engine = CUDA, .ordinal = 1}};
    const char *why[] = {NULL, "no driver"};
    int code = command_list(&cli, &r, 2, machines, why);
    cli_free(&cli), free(r.entry);
    if (code) exit(code);
}

static void test_list(void **state)
{
    char out[16384];
    (void)state;
    assert_int_equal(caught(list_in_child, "list kernels", out, sizeof out), 0);
    assert_non_null(strstr(out, "\nscan/host_full O(max_ctx)"));
    assert_non_null(strstr(out, "-t splits=4 (1 to 64)"));
    assert_int_equal(caught(list_in_child, "list devices", out, sizeof out), 0);
    assert_string_equal(out, "host      some CPU, 8 GB, avx2\ncuda:1    not usable: no driver\n");
    assert_int_equal(caught(list_in_child, "list ops", out, sizeof out), 0);
    assert_non_null(strstr(out, "  ctx               8K, from 0 to 1M tokens; known on the device only\n"));
    assert_in_range(widest(out), 40, 80);
    assert_int_equal(caught(list_in_child, "list columns", out, sizeof out), 0);
    assert_non_null(strstr(out, "t_med_ns        [ns] median time of one call over rounds\n"));
    assert_int_equal(caught(list_in_child, "list", out, sizeof out), 0);
    assert_in_range(widest(out), 40, 80);
    assert_int_equal(caught(list_in_child, "list kernels --json", out, sizeof out), 0);
    assert_non_null(strstr(out, "\"name\":\t\"scan/host_full\""));
    assert_int_equal(caught(list_in_child, "list kernles", out, sizeof out), EXIT_USAGE);
    assert_non_null(strstr(out, "did you mean 'kernels'?"));
    assert_int_equal(caught(list_in_child, "list ops kernels", out, sizeof out), EXIT_USAGE);
}

static void write_file(const char *folder, const char *name, const char *content)
{
    char  path[256];
    FILE *f = fopen(text(path, sizeof path, "%s/%s", folder, name), "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

/* A run of two kernels on this toolkit; `hash` is what its env.json says of the first. */
static void write_run(const char *root, const char *name, const char *toolkit, const char *hash)
{
    const struct entry kernels[] = {{NULL, "mix/host_mma", "", hash}, {NULL, "mix/host_split", "", "06"}};
    struct machine m = {.engine = HOST, .name = "some CPU"};
    struct env     env = {.command = "kbench", .machine = &m, .n_kernels = 2, .kernel = kernels};
    char           folder[128];
    text(m.toolkit, sizeof m.toolkit, "%s", toolkit);
    assert_int_equal(mkdir(text(folder, sizeof folder, "%s/results/%s", root, name), 0700), 0);
    char *json = env_json(&env);
    write_file(folder, "env.json", json);
    write_file(folder, "rows.csv", "op,kernel,engine,status\nmix,mix/host_mma,host,ok\nmix,mix/host_split,host,wrong\n");
    free(json);
}

static void test_list_results(void **state)
{
    char root[] = "/tmp/kbench-test-XXXXXX", out[8192], path[64], command[64];
    (void)state;
    assert_non_null(mkdtemp(root));
    assert_int_equal(mkdir(text(path, sizeof path, "%s/results", root), 0700), 0);
    setenv("KBENCH_ROOT", root, 1);
    assert_int_equal(caught(list_in_child, "list results", out, sizeof out), 0);
    assert_non_null(strstr(out, "no run yet below "));
    write_run(root, "same", "gcc " __VERSION__, "04");
    assert_int_equal(caught(list_in_child, "list results", out, sizeof out), 0);
    assert_non_null(strstr(out, "some CPU, 2 rows, 1 failed\n"));
    assert_null(strstr(out, "machine code"));
    write_run(root, "older", "gcc " __VERSION__, "0f");
    assert_int_equal(caught(list_in_child, "list results", out, sizeof out), 0);
    assert_non_null(strstr(out, "    stale: this build has other machine code of mix/host_mma\n"));
    write_run(root, "elsewhere", "gcc 1", "0f");
    write_run(root, "unhashed", "gcc " __VERSION__, "");
    write_run(root, "plugged", "gcc " __VERSION__, "so:0123456789abcdef");
    assert_int_equal(caught(list_in_child, "list results --json", out, sizeof out), 0);
    static const char *const want[][2] = {{"same", "fresh"}, {"older", "stale"}, {"elsewhere", "unknown"}, {"unhashed", "unknown"},
        {"plugged", "stale"}};   /* a plug-in then, a kernel of this build now */
    for (int i = 0; i < COUNT(want); i++) {
        char word[32];
        const char *at = strstr(out, text(word, sizeof word, "/results/%s\"", want[i][0]));
        assert_non_null(at);
        at = strstr(at, "\"evidence\":");
        assert_non_null(at);
        assert_memory_equal(at + strlen("\"evidence\":\t\""), want[i][1], strlen(want[i][1]));
    }
    unsetenv("KBENCH_ROOT");
    assert_int_equal(system(text(command, sizeof command, "rm -r %s", root)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_list_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

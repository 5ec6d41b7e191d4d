/* The run folder: nothing overwritten unasked, whole rows whatever happens, and env.json that any reader takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base.h"
#include "csv.h"
#include "runfolder.h"
#include "comma_locale.h"

static char top[64], run[96];
static const char *const dims[] = {"batch", "ctx"};

static int make_top(void **state)
{
    (void)state;
    strcpy(top, "/tmp/kbench-run-XXXXXX");
    if (!mkdtemp(top)) return -1;
    snprintf(run, sizeof(run), "%s/a/b/run", top);
    return 0;
}

static int remove_top(void **state)
{
    (void)state;
    char command[200];
    snprintf(command, sizeof(command), "chmod -R u+w '%s'; rm -rf '%s'", top, top);
    return system(command);
}

static struct runfolder_options options(bool force, bool resume)
{
    return (struct runfolder_options){.out = run, .name = "default", .force = force, .resume = resume, .n_dims = 2, .dims = dims};
}

static struct row make_row(const char *kernel, int64_t batch)
{
    struct row row;
    row_clear(&row);
    strcpy(row.op, "attn");
    strcpy(row.kernel, kernel);
    strcpy(row.status, "ok");
    strcpy(row.cache, "cold");
    row.n_dims = 2;
    row.dim[0] = (struct row_dim){"batch", batch};
    row.dim[1] = (struct row_dim){"ctx", 8192};
    row.seed = 1;
    return row;
}

static const char *in_run(const char *name)
{
    static char path[200];
    snprintf(path, sizeof(path), "%s/%s", run, name);
    return path;
}

static char *contents(const char *name)
{
    char *bytes;
    size_t n;
    int error = file_read(in_run(name), &bytes, &n);
    if (error) fail_msg("%s: %s", name, strerror(error));
    return bytes;
}

static int lines(const char *name)
{
    char *bytes = contents(name);
    int n = 0;
    for (char *c = bytes; *c; c++) n += *c == '\n';
    free(bytes);
    return n;
}

static void append(const char *name, const char *bytes)
{
    FILE *file = fopen(in_run(name), "a");
    assert_non_null(file);
    fputs(bytes, file);
    fclose(file);
}

/* Exit code of opening in a child, and what it said. */
static int try_open(struct runfolder_options o, char *ret_said, size_t size)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        struct runfolder folder;
        dup2(ends[1], 2);
        runfolder_open(&folder, &o);
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < size && (got = read(ends[0], ret_said + n, size - n - 1)) > 0;) n += (size_t)got;
    ret_said[n] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_files_of_a_run(void **state)
{
    (void)state;
    struct runfolder folder;
    struct runfolder_options o = options(false, false);
    runfolder_open(&folder, &o);
    struct row row = make_row("attn/a", 4);
    struct sample samples[2] = {
        {0, 0, 1, 41.5, 0.25, NAN, 4, NAN, NAN, {NAN, NAN, NAN, -1, -1, NAN, NAN, NAN}},
        {2, 1, 0, 42.5, 0.5, 1980, 8, 9000, 250, {2619, 310.5, 41, 5, 1, 0.5, 2, 0.25}},
    };
    assert_int_equal(runfolder_samples(&folder, &row, 2, samples), 0);
    assert_int_equal(runfolder_row(&folder, &row), 0);
    assert_int_equal(lines("rows.csv"), 2);  /* there before close: a kill loses nothing */
    assert_int_equal(runfolder_log(&folder, "%s took %.1f s", "group 1", 0.5), 0);
    assert_int_equal(runfolder_write(folder.path, "plan.ini", "[global]\n"), 0);
    runfolder_close(&folder);
    char *text = contents("samples.csv");
    assert_string_equal(text, "op,kernel,batch,ctx,tune,cache,seed,placement,round,position,t_ns,at_s,sm_clock_MHz,calls,"
                              "canary_ns,wait_ns,memory_clock_MHz,power_W,temperature_C,held,others,waited_pct,stolen_pct,load\n"
                              "attn,attn/a,4,8192,,cold,1,0,0,1,41.5,0.25,,4,,,,,,,,,,\n"
                              "attn,attn/a,4,8192,,cold,1,2,1,0,42.5,0.5,1980,8,9000,250,2619,310.5,41,5,1,0.5,2,0.25\n");
    free(text);
    text = contents("log.txt");
    assert_non_null(strstr(text, "  group 1 took 0.5 s\n"));
    free(text);
    text = contents("plan.ini");
    assert_string_equal(text, "[global]\n");
    free(text);
    assert_int_equal(access(in_run("plan.ini.begun"), F_OK), -1);
}

static void test_existing_run_is_refused(void **state)
{
    (void)state;
    char said[800];
    assert_int_equal(try_open(options(false, false), said, sizeof(said)), EXIT_USAGE);
    assert_non_null(strstr(said, "holds a run already (rows.csv)"));
    assert_non_null(strstr(said, "--resume"));
    assert_int_equal(lines("rows.csv"), 2);
}

static void test_resume_cuts_torn_lines(void **state)
{
    (void)state;
    struct runfolder folder;
    struct runfolder_options o = options(false, true);
    struct row a = make_row("attn/a", 4), b = make_row("attn/a", 8), tuned = a;
    append("rows.csv", "attn,attn/a,cuda,wrong,,8,\"torn\nhere, ");
    /* of a row that is not there, and torn */
    append("samples.csv", "attn,attn/a,8,8192,,cold,1,0,0,0,1.5,2.5,,1,,,,,,,,,,\nattn,attn/a,8,81");
    runfolder_open(&folder, &o);
    strcpy(tuned.tune, "splits=2");
    assert_int_equal(folder.done.n, 1);
    assert_true(runfolder_has(&folder, &a));
    assert_false(runfolder_has(&folder, &b));
    assert_false(runfolder_has(&folder, &tuned));
    assert_int_equal(runfolder_row(&folder, &b), 0);
    runfolder_close(&folder);
    struct table table;
    char error[300];
    assert_int_equal(table_read(in_run("rows.csv"), &table, error, sizeof(error)), 0);
    assert_int_equal(table.n, 2);
    table_free(&table);
    assert_int_equal(lines("rows.csv"), 3);
    assert_int_equal(lines("samples.csv"), 3);
    assert_int_equal(lines("log.txt"), 1);
}

static void test_resume_of_other_dims_is_refused(void **state)
{
    (void)state;
    static const char *const other[] = {"batch", "topk"};
    struct runfolder_options o = options(false, true);
    char said[800];
    o.dims = other;
    assert_int_equal(try_open(o, said, sizeof(said)), EXIT_USAGE);
    assert_non_null(strstr(said, "dimension columns"));
    o = options(false, true);
    o.n_dims = 1;
    assert_int_equal(try_open(o, said, sizeof(said)), EXIT_USAGE);
}

static void test_force_begins_anew(void **state)
{
    (void)state;
    struct runfolder folder;
    struct runfolder_options o = options(true, false);
    assert_int_equal(mkdir(in_run("plots"), 0777), 0);
    append("plots/old.svg", "x");
    append("plots/mine.txt", "x");
    runfolder_open(&folder, &o);
    runfolder_close(&folder);
    assert_int_equal(lines("rows.csv"), 1);
    assert_int_equal(lines("samples.csv"), 1);
    assert_int_equal(lines("log.txt"), 0);
    assert_int_equal(access(in_run("plots/old.svg"), F_OK), -1);
    assert_int_equal(access(in_run("plots/mine.txt"), F_OK), 0);
}

static void test_resume_of_a_headless_run(void **state)
{
    (void)state;
    struct runfolder folder;
    struct runfolder_options o = options(false, true);
    assert_int_equal(truncate(in_run("samples.csv"), 0), 0);
    assert_int_equal(unlink(in_run("rows.csv")), 0);
    runfolder_open(&folder, &o);
    runfolder_close(&folder);
    assert_int_equal(lines("rows.csv"), 1);
    assert_int_equal(lines("samples.csv"), 1);
}

static void test_default_folder(void **state)
{
    (void)state;
    struct runfolder first, second;
    struct runfolder_options o = options(false, false);
    o.out = NULL;
    setenv("KBENCH_ROOT", top, 1);
    runfolder_open(&first, &o);
    runfolder_open(&second, &o);
    char pattern[200];
    snprintf(pattern, sizeof(pattern), "%s/results/runs/20", top);
    assert_int_equal(strncmp(first.path, pattern, strlen(pattern)), 0);
    assert_non_null(strstr(first.path, "Z-default"));
    assert_string_not_equal(first.path, second.path);
    runfolder_close(&first);
    runfolder_close(&second);
}

static void test_unwritable_place(void **state)
{
    (void)state;
    char said[800], file[128];
    struct runfolder_options o = options(false, false);
    snprintf(file, sizeof(file), "%s/file", top);
    FILE *f = fopen(file, "w");
    fclose(f);
    o.out = file;
    assert_int_equal(try_open(o, said, sizeof(said)), EXIT_ENVIRONMENT);
    o.out = "/proc/kbench/run";
    assert_int_equal(try_open(o, said, sizeof(said)), EXIT_ENVIRONMENT);
    assert_non_null(strstr(said, "--out"));
}

/* A file-size limit stands for a full disk that lets a part of a row through. */
static void test_full_disk_leaves_whole_rows(void **state)
{
    (void)state;
    struct runfolder_options o = options(true, false);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        struct runfolder folder;
        runfolder_open(&folder, &o);
        signal(SIGXFSZ, SIG_IGN);
        struct row row = make_row("attn/a", 4);
        struct stat st;
        if (runfolder_row(&folder, &row) || stat(in_run("rows.csv"), &st)) _exit(1);
        struct rlimit limit = {(rlim_t)st.st_size + 20, (rlim_t)st.st_size + 20};
        setrlimit(RLIMIT_FSIZE, &limit);
        row.dim[0].value = 5;
        if (runfolder_row(&folder, &row) != EFBIG) _exit(2);
        if (runfolder_row(&folder, &row) != EFBIG) _exit(3);
        struct sample many[100] = {0};
        if (runfolder_samples(&folder, &row, 100, many) != EFBIG) _exit(4);
        runfolder_close(&folder);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct table table;
    char error[300];
    if (table_read(in_run("rows.csv"), &table, error, sizeof(error))) fail_msg("%s", error);
    assert_int_equal(table.n, 1);
    assert_int_equal(lines("rows.csv"), 2);
    assert_int_equal(lines("samples.csv"), 1);
    table_free(&table);
}

static void test_devices_and_pipes_come_back(void **state)
{
    (void)state;
    struct runfolder folder = {.n_dims = 2, .dims = {"batch", "ctx"}};
    struct row row = make_row("attn/a", 4);
    int ends[2];
    folder.rows = fopen("/dev/full", "w");
    folder.log = fopen("/dev/full", "w");
    if (folder.rows && folder.log) {
        assert_int_equal(runfolder_row(&folder, &row), ENOSPC);
        assert_int_equal(runfolder_row(&folder, &row), ENOSPC);
        assert_int_equal(runfolder_log(&folder, "x"), ENOSPC);
    }
    runfolder_close(&folder);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    folder.rows = fdopen(ends[1], "w");
    assert_int_equal(runfolder_row(&folder, &row), EPIPE);
    runfolder_close(&folder);
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(runfolder_write("/nowhere", "env.json", "{}"), ENOENT);
}

static struct machine make_machine(void)
{
    struct machine m = {.engine = CUDA, .ordinal = 1, .facts = {90, 132, 50 << 20, 232448, 150ll << 30}, .sm_clock_MHz = 1980,
        .memory_clock_MHz = 3201, .power_W = -1, .temperature_C = 31};
    strcpy(m.name, "NVIDIA \"H200\"");
    strcpy(m.uuid, "GPU-1");
    strcpy(m.driver, "580.159.04");
    strcpy(m.mig, "1g.18gb");
    m.ceilings = (struct ceilings){4550.25, 4012.125, 742000.5, 0, NAN, 550};
    return m;
}

static char *make_env(const struct machine *m)
{
    static const struct entry kernels[] = {{NULL, "attn/mma", "", "0123456789abcdef"}, {NULL, "attn/simt", "", ""}};
    struct env env = {"./kbench sweep -k 'attn/*' \xFF", UINT64_MAX, m, 2, kernels};
    return env_json(&env);
}

static void test_env_comes_back(void **state)
{
    (void)state;
    struct machine m = make_machine(), got;
    char error[300] = "", *json = make_env(&m);
    assert_int_equal(runfolder_write(run, "env.json", json), 0);
    if (env_read(in_run("env.json"), &got, error, sizeof(error))) fail_msg("%s", error);
    assert_string_equal(got.name, m.name);
    assert_string_equal(got.driver, m.driver);
    assert_string_equal(got.uuid, m.uuid);
    assert_string_equal(got.mig, m.mig);
    assert_true(got.engine == CUDA && got.ordinal == 1 && got.facts.sm_count == 132 && got.facts.memory_bytes == 150ll << 30);
    assert_true(got.power_W == -1 && got.temperature_C == 31);
    assert_true(got.ceilings.read_GBps == 4550.25 && got.ceilings.matrix_GFLOPs == 742000.5);
    assert_true(got.ceilings.floor_ns == 0 && got.ceilings.latency_ns == 0);  /* not measured */
    assert_non_null(strstr(json, "18446744073709551615"));  /* the seed, to its last digit */
    assert_non_null(strstr(json, "\"floor_ns\":\tnull"));
    assert_null(strstr(json, "\xFF"));
    free(json);
}

/* Times of two devices are no one run: another card, another slice of the same one, another CPU, or the other engine. */
static void test_a_run_is_of_one_device(void **state)
{
    (void)state;
    struct machine was = make_machine(), is = was;
    char why[500] = "";
    is.sm_clock_MHz = 345, is.ordinal = 0, is.ceilings.read_GBps = 1;   /* the same one in other weather, in another slot */
    assert_true(machine_same(&was, &is, why, sizeof why));
    strcpy(is.uuid, "GPU-2");
    assert_false(machine_same(&was, &is, why, sizeof why));
    assert_string_equal(why, "NVIDIA \"H200\" (GPU-1, MIG 1g.18gb), and this is NVIDIA \"H200\" (GPU-2, MIG 1g.18gb)");
    is = was, *is.mig = 0;
    assert_false(machine_same(&was, &is, why, sizeof why));
    assert_string_equal(why, "NVIDIA \"H200\" (GPU-1, MIG 1g.18gb), and this is NVIDIA \"H200\" (GPU-1)");
    is = (struct machine){.engine = HOST, .name = "EPYC 9B45, 2 threads", .uuid = "host"};
    assert_false(machine_same(&was, &is, why, sizeof why));
    was = is, strcpy(was.name, "Xeon 8481C, 2 threads");
    assert_false(machine_same(&was, &is, why, sizeof why));
    assert_string_equal(why, "Xeon 8481C, 2 threads, and this is EPYC 9B45, 2 threads");
    assert_true(machine_same(&is, &is, why, sizeof why));
}

static void test_env_in_a_comma_locale(void **state)
{
    (void)state;
    struct machine m = make_machine(), got;
    char error[300] = "";
    if (!comma_locale_enter(top)) {
        comma_locale_leave();
        skip();
    }
    char *json = make_env(&m);
    assert_int_equal(runfolder_write(run, "env.json", json), 0);
    int failed = env_read(in_run("env.json"), &got, error, sizeof(error));
    comma_locale_leave();
    if (failed) fail_msg("%s", error);
    assert_non_null(strstr(json, "4550.25"));
    assert_true(got.ceilings.read_GBps == 4550.25 && got.ceilings.copy_GBps == 4012.125);
    free(json);
}

static void test_damaged_env_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "{", "[]", "{\"schema\": 1}", "{\"schema\": 99, \"device\": {}}",
        "{\"schema\": 1, \"device\": {}}",
        "{\"schema\": 1, \"device\": {\"engine\": \"cuda\", \"sm\": \"90\"}}",
        "{\"schema\": 1, \"device\": {\"engine\": \"cuda\", \"sm\": 1e99}}"};
    for (int i = 0; i < COUNT(bad); i++) {
        struct machine got;
        char error[300] = "";
        assert_int_equal(runfolder_write(run, "env.json", bad[i]), 0);
        assert_int_not_equal(env_read(in_run("env.json"), &got, error, sizeof(error)), 0);
        assert_non_null(strstr(error, "env.json: "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_a_run), cmocka_unit_test(test_existing_run_is_refused),
        cmocka_unit_test(test_resume_cuts_torn_lines), cmocka_unit_test(test_resume_of_other_dims_is_refused),
        cmocka_unit_test(test_force_begins_anew), cmocka_unit_test(test_resume_of_a_headless_run),
        cmocka_unit_test(test_default_folder), cmocka_unit_test(test_unwritable_place),
        cmocka_unit_test(test_full_disk_leaves_whole_rows), cmocka_unit_test(test_devices_and_pipes_come_back),
        cmocka_unit_test(test_env_comes_back), cmocka_unit_test(test_env_in_a_comma_locale),
        cmocka_unit_test(test_damaged_env_is_refused), cmocka_unit_test(test_a_run_is_of_one_device),
    };
    return cmocka_run_group_tests(tests, make_top, remove_top);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "code.h"
#include "fake.h"
#include "list.h"
#include "plugin.h"
#include "runfolder.h"

#define TOOLKIT "13.0"

static char root[] = "/tmp/kbench-test-XXXXXX";

static struct entry kernel(const char *hash, const char *hashes)
{
    return (struct entry){&fake_scan_cuda, "scan/early", "90a,120a", hash, hashes};
}

/* The env.json of a run of the kernel, in a folder of the tree that list results looks at. */
static void write_run(int sm, struct entry e, bool of_old)
{
    char           path[128], *json;
    struct machine m = {.engine = CUDA, .name = "GPU", .toolkit = TOOLKIT, .facts.sm = sm};
    struct env     env = {.command = "kbench", .machine = &m, .n_kernels = 1, .kernel = &e};
    json = env_json(&env);
    char *alone = strstr(json, "kernels_of_sm");
    assert_non_null(alone);
    if (of_old) memcpy(alone, "kernels_of_xx", strlen("kernels_of_sm"));   /* as if it weren't there */
    FILE *f = fopen(text(path, sizeof path, "%s/results/run/env.json", root), "w");
    assert_non_null(f);
    fputs(json, f);
    fclose(f);
    free(json);
}

/* What list results says of the run in a build of the kernel; what --resume finds has to be the same. */
static const char *judged(struct entry now)
{
    static char          ret[16];
    char                 path[128];
    const struct registry r = {1, &now};
    const struct toolkits t = {.of = {[CUDA] = TOOLKIT}};
    cJSON *all = list_results_json(&r, &t);
    assert_int_equal(cJSON_GetArraySize(all), 1);
    const cJSON *one = cJSON_GetArrayItem(all, 0);
    text(ret, sizeof ret, "%s", cJSON_GetStringValue(cJSON_GetObjectItem(one, "evidence")));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(one, "other_code")), !strcmp(ret, "stale"));
    cJSON_Delete(all);
    int other = env_other_code(text(path, sizeof path, "%s/results/run/env.json", root), 1, &now);
    assert_int_equal(other, strcmp(ret, "stale") ? -1 : 0);
    return ret;
}

/* Builds differ in what they are for. A run is of what its device took of its build. */
static void test_code_of_the_devices_architecture(void **state)
{
    (void)state;
    write_run(90, kernel("0f", "90a:79,120a:7c"), false);
    assert_string_equal(judged(kernel("0f", "90a:79,120a:7c")), "fresh");
    assert_string_equal(judged(kernel("79", "90a:79")), "fresh");
    assert_string_equal(judged(kernel("0e", "80:70,90a:79,120a:00")), "fresh");
    assert_string_equal(judged(kernel("0f", "")), "fresh");                     /* over all architectures */
    assert_string_equal(judged(kernel("0e", "90a:78,120a:7c")), "stale");      /* the same on the other device only */
    assert_string_equal(judged(kernel("7c", "120a:7c")), "stale");             /* nothing for this device */
    assert_string_equal(judged(kernel("7c", "120a:79")), "stale");
    assert_string_equal(judged(kernel("0e", "")), "stale");
    assert_string_equal(judged(kernel("", "")), "unknown");
    write_run(120, kernel("0f", "90a:79,120a:7c"), false);
    assert_string_equal(judged(kernel("79", "90a:79")), "stale");
    assert_string_equal(judged(kernel("7c", "120a:7c")), "fresh");
}

/* The driver takes the newest that the device runs: another build may have a better one for it. */
static void test_code_that_another_build_has_for_the_device(void **state)
{
    (void)state;
    write_run(89, kernel("0f", "80:70,90a:79"), false);
    assert_string_equal(judged(kernel("0e", "80:70,120a:7c")), "fresh");
    assert_string_equal(judged(kernel("0e", "80:70,89:71")), "stale");
    write_run(89, kernel("0f", "89:71,80:70"), false);                          /* in any order */
    assert_string_equal(judged(kernel("0e", "80:70,89:71,90a:72")), "fresh");
    assert_string_equal(judged(kernel("0e", "89:71,80:72")), "fresh");
    assert_string_equal(judged(kernel("70", "80:70")), "stale");
}

static void test_older_files_have_one_hash(void **state)
{
    (void)state;
    write_run(90, kernel("0f", "90a:79,120a:7c"), true);
    assert_string_equal(judged(kernel("0f", "90a:79,120a:7c")), "fresh");
    assert_string_equal(judged(kernel("0e", "90a:79,120a:7c")), "stale");
    assert_string_equal(judged(kernel("79", "90a:79")), "stale");
    assert_string_equal(judged(kernel("0e", "")), "stale");
}

static void test_architectures_of_a_kernel(void **state)
{
    char sm[SM_BYTES], hash[CODE_BYTES];
    struct entry e = kernel("0f", "90a:0123456789abcdef,120a:7c");
    (void)state;
    assert_true(registry_code(&e, 0, sm, hash));
    assert_string_equal(sm, "90a");
    assert_string_equal(hash, "0123456789abcdef");
    assert_true(registry_code(&e, 1, sm, hash));
    assert_string_equal(sm, "120a");
    assert_string_equal(hash, "7c");
    assert_false(registry_code(&e, 2, sm, hash));
    assert_false(registry_code(&e, 3, sm, hash));
    e.hashes = NULL;
    assert_false(registry_code(&e, 0, sm, hash));
}

static int make_tree(void **state)
{
    char path[128];
    FILE *f;
    (void)state;
    if (!mkdtemp(root) || mkdir(text(path, sizeof path, "%s/results", root), 0700)) return 1;
    if (mkdir(text(path, sizeof path, "%s/results/run", root), 0700)) return 1;
    if (!(f = fopen(text(path, sizeof path, "%s/results/run/rows.csv", root), "w"))) return 1;
    fputs("op,kernel,engine,status\nscan,scan/early,cuda,ok\n", f);
    setenv("KBENCH_ROOT", root, 1);
    return fclose(f);
}

static int remove_tree(void **state)
{
    char command[64];
    (void)state;
    return system(text(command, sizeof command, "rm -r %s", root));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_code_of_the_devices_architecture),
        cmocka_unit_test(test_code_that_another_build_has_for_the_device),
        cmocka_unit_test(test_older_files_have_one_hash),
        cmocka_unit_test(test_architectures_of_a_kernel),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}

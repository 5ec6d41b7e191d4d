#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base.h"
#include "fake.h"
#include "plugin.h"

static void test_find(void **state)
{
    struct registry r = registry_open(0, NULL);
    (void)state;
    assert_int_equal(r.n, COUNT(builtin_kernels) - 1);
    assert_ptr_equal(registry_find(&r, "mix/host_mma")->kernel, &fake_mix_host_mma);
    assert_null(registry_find(&r, "mix/host_mm"));
    assert_ptr_equal(op_find("scan"), &fake_scan);
    assert_null(op_find("sca"));
    assert_int_equal(op_dims(&fake_mix), 4);
    assert_int_equal(op_tensors(&fake_mix), 3);
    assert_int_equal(op_dim(&fake_mix, "topk"), 2);
    assert_int_equal(op_dim(&fake_mix, "max_ctx"), -1);
    assert_int_equal(kernel_tunables(&fake_mix_host_split), 2);
    assert_int_equal(kernel_tunables(&fake_mix_host_mma), 0);
    free(r.entry);
}

/* A full table of dims and tensors ends without an unnamed one. */
static void test_full_tables(void **state)
{
    struct op     op = {.name = "full"};
    struct kernel k = {.name = "full"};
    (void)state;
    for (int i = 0; i < MAX_DIMS; i++) op.dim[i].name = "d";
    for (int i = 0; i < MAX_TENSORS; i++) op.tensor[i].name = "t";
    for (int i = 0; i < MAX_TUNABLES; i++) k.tunable[i].name = "x";
    assert_int_equal(op_dims(&op), MAX_DIMS);
    assert_int_equal(op_tensors(&op), MAX_TENSORS);
    assert_int_equal(kernel_tunables(&k), MAX_TUNABLES);
}

/* FNV-1a of the bytes that the header names, written out. */
static void test_layout_hash(void **state)
{
    static const unsigned char bytes[] = "batch\0max_ctx\0tail\0\1key\0\2\0";
    uint64_t hash = 0xcbf29ce484222325u;
    struct op changed;
    (void)state;
    assert_int_equal(BF16, 2);
    for (size_t i = 0; i + 1 < sizeof bytes; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    assert_true(layout_hash(&fake_scan) == hash);
    changed = fake_scan;
    changed.dim[0].max++;
    assert_true(layout_hash(&changed) == hash);            /* bounds are no layout */
    changed.tensor[0].role = OUT;
    assert_true(layout_hash(&changed) != hash);
    changed = fake_scan;
    changed.tensor[0].dtype = F32;
    assert_true(layout_hash(&changed) != hash);
    changed = fake_scan;
    changed.dim[0] = fake_scan.dim[1], changed.dim[1] = fake_scan.dim[0];
    assert_true(layout_hash(&changed) != hash);
}

static void test_words_of_values(void **state)
{
    char words[96], why[320];
    int64_t value;
    (void)state;
    assert_string_equal(dim_text("tail", 0, words, sizeof words), "page0");
    assert_string_equal(dim_text("tail", 2, words, sizeof words), "minus1");
    assert_string_equal(dim_text("tail", 3, words, sizeof words), "3");      /* what no name stands for stays a number */
    assert_string_equal(dim_text("tail", INT64_MIN, words, sizeof words), "-8796093022208M");
    assert_string_equal(dim_text("batch", 1024, words, sizeof words), "1K");
    assert_null(dim_names("ragged"));
    assert_string_equal(dim_choices("tail", words, sizeof words), "page0, unique or minus1");
    const char *at = "unique,page0";
    assert_int_equal(dim_read_word("tail", &at, &value, why, sizeof why), 0);
    assert_int_equal(value, 1);
    assert_string_equal(at, ",page0");
    at = "uniqu";                                                            /* no part of a word counts */
    assert_int_equal(dim_read_word("tail", &at, &value, why, sizeof why), 1);
    assert_string_equal(why, "is none of page0, unique or minus1; did you mean 'unique'?");
    assert_string_equal(at, "uniqu");
    struct problem p = {.op = &fake_scan, .dim = {1, 8192, 1}};
    assert_string_equal(problem_text(&p, false, words, sizeof words), "max_ctx=8K,tail=unique");
}

static void test_no_code(void **state)
{
    static const struct {
        const char *sms;
        int         sm;
        bool        runs;
    } cases[] = {
        {"90a", 90, true}, {"90a", 100, false}, {"90a", 89, false}, {"80", 80, true}, {"80", 86, true}, {"80", 89, true},
        {"80", 90, false}, {"89", 86, false}, {"89", 89, true}, {"90a,120a", 120, true}, {"90a,120a", 121, false},
        {"90a,120a", 90, true}, {"90", 90, true}, {"120", 121, true}, {"100f", 103, true}, {"100f", 120, false},
        {"100a", 103, false}, {"80,90a", 87, true}, {"", 70, true},
    };
    char why[96];
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        struct entry  e = {&fake_mix_cuda, "mix/cuda", cases[i].sms, ""};
        struct device d = {.sm = cases[i].sm};
        const char   *answer = registry_no_code(&e, &d, why, sizeof why);
        if ((answer == NULL) != cases[i].runs) fail_msg("'%s' on sm_%d: %s", cases[i].sms, cases[i].sm, answer ? answer : "runs");
    }
    struct device ada = {.sm = 89};
    struct entry  hopper = {&fake_mix_cuda, "mix/cuda", "90a,120a", ""}, host = {&fake_mix_host_mma, "mix/host_mma", "", ""};
    assert_string_equal(registry_no_code(&hopper, &ada, why, sizeof why), "built for sm 90a,120a; this device is sm_89");
    assert_null(registry_no_code(&host, &ada, why, sizeof why));
}

static void test_words(void **state)
{
    struct problem p = {.op = &fake_mix, .dim = {16, 128 << 10, 512, 1}};
    char           words[96], small[12];
    int32_t        tune[MAX_TUNABLES] = {8, 3};
    (void)state;
    assert_string_equal(problem_text(&p, false, words, sizeof words), "ctx=128K,ragged=1");
    assert_string_equal(problem_text(&p, true, words, sizeof words), "batch=16,ctx=128K,topk=512,ragged=1");
    assert_string_equal(problem_text(&p, true, small, sizeof small), "batch=16,ct");   /* cut, but ended */
    assert_string_equal(tune_text(&fake_mix_host_split, tune, words, sizeof words), "splits=8;stages=3");
    assert_string_equal(tune_text(&fake_mix_host_mma, tune, words, sizeof words), "");
    assert_string_equal(value_text(0, words, sizeof words), "0");
    assert_string_equal(value_text(1023, words, sizeof words), "1023");
    assert_string_equal(value_text(1024, words, sizeof words), "1K");
    assert_string_equal(value_text(1536, words, sizeof words), "1536");
    assert_string_equal(value_text(1536 << 10, words, sizeof words), "1536K");
    assert_string_equal(value_text(1 << 20, words, sizeof words), "1M");
    assert_string_equal(value_text(-2048, words, sizeof words), "-2K");
    assert_string_equal(value_text(INT64_MAX, words, sizeof words), "9223372036854775807");
    p = problem_for_kernel(&p);
    assert_int_equal(p.dim[1], 1 << 20);       /* live: a kernel sees its max */
    assert_int_equal(p.dim[0], 16);
}

static void test_growth(void **state)
{
    struct kernel k = {.growth = {{"batch", 1}, {"max_ctx", 1.5}, {"nothing", 3}}};
    char          words[64];
    (void)state;
    assert_string_equal(kernel_growth_text(&fake_scan, &fake_scan_full, words, sizeof words), "O(max_ctx)");
    assert_string_equal(kernel_growth_text(&fake_scan, &fake_scan_live, words, sizeof words), "");
    assert_string_equal(kernel_growth_text(&fake_scan, &k, words, sizeof words), "O(max_ctx^1.5)");
    k.growth[0].exponent = 2;
    assert_string_equal(kernel_growth_text(&fake_scan, &k, words, sizeof words), "O(batch^2) O(max_ctx^1.5)");
}

static struct kernel good_plugin(void)
{
    return (struct kernel){.abi = KBENCH_ABI,
        .size = sizeof(struct kernel),
        .layout = layout_hash(&fake_mix),
        .op = "mix",
        .engine = HOST,
        .launch = fake_launch};
}

static const char *refusal(const struct kernel *k, const char *path)
{
    static char     why[512];
    struct registry r = registry_open(0, NULL);
    struct entry    e;
    int error = plugin_check(path, k, &r, &e, why, sizeof why);
    free(r.entry);
    if (!error) {
        text(why, sizeof why, "accepted as %s", e.name);
        free((char *)e.name);
    }
    return why;
}

static void test_plugin_check(void **state)
{
    struct kernel k = good_plugin();
    char          want[256];
    (void)state;
    assert_string_equal(refusal(&k, "build/mine.so"), "accepted as plugin/mine");
    assert_string_equal(refusal(&k, "mine"), "accepted as plugin/mine");
    k.name = "mix/mine";
    assert_string_equal(refusal(&k, "mine.so"), "accepted as mix/mine");
    k.name = "mix/host_mma";
    assert_string_equal(refusal(&k, "mine.so"), "mine.so: the kernel's name 'mix/host_mma' is taken; rename the file or set .name");
    k.name = "mix/a-name-that-no-row-could-hold-since-it-has-more-than-63-characters";
    assert_non_null(strstr(refusal(&k, "mine.so"), "is longer than 63 characters; rename"));
    static const char *const odd[] = {"my kernel.so", "a,b.so", "it's.so", "x[1].so", "k*.so", "a;b.so"};
    k.name = NULL;
    for (int i = 0; i < COUNT(odd); i++) assert_non_null(strstr(refusal(&k, odd[i]), "could not name it; rename the file or"));

    k = good_plugin(), k.abi++;
    k.op = (const char *)8;                    /* what follows abi and size must not be looked at */
    text(want, sizeof want,
        "mine.so: built for kernel ABI %d, this kbench has %d; compile it again with this kernels/kernel.h", KBENCH_ABI + 1,
        KBENCH_ABI);
    assert_string_equal(refusal(&k, "mine.so"), want);
    k.abi--, k.size -= 8;
    text(want, sizeof want,
        "mine.so: its struct kernel has %zu bytes, this kbench's has %zu; compile it again with this kernels/kernel.h",
        sizeof k - 8, sizeof k);
    assert_string_equal(refusal(&k, "mine.so"), want);

    k = good_plugin(), k.op = "mixx";
    assert_string_equal(refusal(&k, "mine.so"), "mine.so: no op 'mixx' in this build; did you mean 'mix'?");
    k.op = NULL;
    assert_string_equal(refusal(&k, "mine.so"), "mine.so: no op '' in this build");
    k = good_plugin(), k.layout = 1;
    text(want, sizeof want, "mine.so: compiled against other dims or tensors of op 'mix' (layout 0000000000000001, here %016llx); "
        "compile it again with this reference/mix.h", (unsigned long long)layout_hash(&fake_mix));
    assert_string_equal(refusal(&k, "mine.so"), want);
    k = good_plugin(), k.launch = NULL;
    assert_string_equal(refusal(&k, "mine.so"), "mine.so: the kernel has no launch; set .launch and .engine");
    k = good_plugin(), k.engine = (enum engine)7;
    assert_string_equal(refusal(&k, "mine.so"), "mine.so: the kernel has no known engine; set .launch and .engine");
}

static void open_plugin(void *path)
{
    char *const paths[] = {path};
    registry_open(1, paths);
}

static void test_plugin_open(void **state)
{
    char out[512];
    (void)state;
    assert_int_equal(caught(open_plugin, "./not-there.so", out, sizeof out), EXIT_USAGE);
    assert_non_null(strstr(out, "kbench: ./not-there.so: can't be opened as a plug-in: cannot open shared object file: No "
                                "such file or directory\n"));
    assert_int_equal(caught(open_plugin, "libm.so.6-not-there", out, sizeof out), EXIT_USAGE);   /* no search of library paths */
    assert_non_null(strstr(out, "can't be opened as a plug-in"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_full_tables),
        cmocka_unit_test(test_layout_hash),
        cmocka_unit_test(test_words_of_values),
        cmocka_unit_test(test_no_code),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_plugin_check),
        cmocka_unit_test(test_plugin_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

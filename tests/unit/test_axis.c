#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base.h"
#include "fake.h"
#include "sweep.h"

/* The values as "1 2 4", or the error. */
static const char *read_axis(const char *words)
{
    static char ret[512];
    struct axis axis;
    char       *p = ret;
    if (axis_parse(words, &axis, ret, sizeof ret)) {
        assert_null(axis.value);
        return ret;
    }
    *p = 0;
    for (int i = 0; i < axis.n && p < ret + 400; i++) p += sprintf(p, "%s%lld", i ? " " : "", (long long)axis.value[i]);
    axis_free(&axis);
    return ret;
}

static void test_values(void **state)
{
    (void)state;
    assert_string_equal(read_axis("batch=1"), "1");
    assert_string_equal(read_axis("batch=64,1,16"), "64 1 16");
    assert_string_equal(read_axis("ctx=8K:128K:*4"), "8192 32768 131072");
    assert_string_equal(read_axis("ctx=8k,1m"), "8192 1048576");
    assert_string_equal(read_axis("topk=64:256:+64"), "64 128 192 256");
    assert_string_equal(read_axis("b=1,2,8:64:*2,100"), "1 2 8 16 32 64 100");
    assert_string_equal(read_axis("b=1:100:*10"), "1 10 100");
    assert_string_equal(read_axis("b=1:99:*10"), "1 10");
    assert_string_equal(read_axis("b=5:5:*2"), "5");
    assert_string_equal(read_axis("b=5:5:+1"), "5");
    assert_string_equal(read_axis("b=0:3:+1"), "0 1 2 3");
    assert_string_equal(read_axis("b=-2:2:+2"), "-2 0 2");
    assert_string_equal(read_axis("b=-1"), "-1");
    assert_string_equal(read_axis("b=9223372036854775807"), "9223372036854775807");
    assert_string_equal(read_axis("b=4611686018427387904:9223372036854775807:*2"), "4611686018427387904");
    assert_string_equal(read_axis("b=9223372036854775806:9223372036854775807:+1"), "9223372036854775806 9223372036854775807");
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(read_axis("tail=unique"), "1");
    assert_string_equal(read_axis("tail=minus1,page0"), "2 0");
    assert_string_equal(read_axis("tail=0,minus1"), "0 2");
    assert_string_equal(read_axis("tail=0:2:+1"), "0 1 2");
    assert_string_equal(read_axis("tail=page0,page0"), "tail=page0: the value 0 is there twice");
    assert_string_equal(read_axis("tail=page"), "tail=page: is none of page0, unique or minus1; did you mean 'page0'?");
    assert_string_equal(read_axis("tail=page0:2:+1"), "0 1 2");
    assert_string_equal(read_axis("tail="), "tail=: a value is missing at the end");
    assert_string_equal(read_axis("tail=*"), "tail=*: a word is expected: page0, unique or minus1");
    assert_string_equal(read_axis("batch=page0"), "batch=page0: a whole number is expected, with K or M for powers of 1024");
}

static void test_name(void **state)
{
    struct axis axis;
    char        why[128];
    (void)state;
    assert_int_equal(axis_parse("max_ctx=1M", &axis, why, sizeof why), 0);
    assert_string_equal(axis.name, "max_ctx");
    assert_int_equal(axis.n, 1);
    axis_free(&axis);
    assert_null(axis.value);
}

static void test_refusals(void **state)
{
    static const char *const cases[][2] = {
        {"batch", "batch: name=LIST is expected, as in batch=1,16,64 or ctx=8K:128K:*2"},
        {"=1", "=1: name=LIST is expected, as in batch=1,16,64 or ctx=8K:128K:*2"},
        {"", ": name=LIST is expected, as in batch=1,16,64 or ctx=8K:128K:*2"},
        {"a_name_of_more_than_31_characters=1", "a_name_of_more_than_31_characters=1: the name is longer than 31 characters"},
        {"b=", "b=: a value is missing at the end"},
        {"b=1,", "b=1,: a value is missing at the end"},
        {"b=1,,2", "b=1,,2: a value is missing"},
        {"b=,1", "b=,1: a value is missing"},
        {"b=1:", "b=1:: a value is missing at the end"},
        {"b=1:2:*", "b=1:2:*: a value is missing at the end"},
        {"b=1::*2", "b=1::*2: a value is missing"},
        {"b=x", "b=x: a whole number is expected, with K or M for powers of 1024"},
        {"b=K", "b=K: a whole number is expected, with K or M for powers of 1024"},
        {"b=+1", "b=+1: a whole number is expected, with K or M for powers of 1024"},
        {"b=--1", "b=--1: a whole number is expected, with K or M for powers of 1024"},
        {"b= 1", "b= 1: a whole number is expected, with K or M for powers of 1024"},
        {"b=1.5", "b=1.5: unexpected characters behind the number"},
        {"b=8KB", "b=8KB: unexpected characters behind the number"},
        {"b=0x10", "b=0x10: unexpected characters behind the number"},
        {"b=1 ", "b=1 : unexpected characters behind the number"},
        {"b=1:8", "b=1:8: a range needs a step, as in 1:16:*2 or 64:512:+64"},
        {"b=1:8:2", "b=1:8:2: a step begins with * or +, as in 1:16:*2 or 64:512:+64"},
        {"b=1:8:*2:3", "b=1:8:*2:3: unexpected characters behind the number"},
        {"b=8:1:*2", "b=8:1:*2: the range ends below its start"},
        {"b=1:8:+0", "b=1:8:+0: the step must be at least +1"},
        {"b=1:8:+-1", "b=1:8:+-1: the step must be at least +1"},
        {"b=1:8:*1", "b=1:8:*1: the factor must be at least *2"},
        {"b=1:8:*0", "b=1:8:*0: the factor must be at least *2"},
        {"b=1:8:*-2", "b=1:8:*-2: the factor must be at least *2"},
        {"b=0:8:*2", "b=0:8:*2: a range by factors must start above 0"},
        {"b=-4:8:*2", "b=-4:8:*2: a range by factors must start above 0"},
        {"b=1,2,1", "b=1: the value 1 is there twice"},
        {"b=4,1:8:*2", "b=1:8:*2: the value 4 is there twice"},
        {"b=9223372036854775808", "b=9223372036854775808: more than 64 bits hold"},
        {"b=9223372036854775807K", "b=9223372036854775807K: more than 64 bits hold"},
        {"b=99999999999999M", "b=99999999999999M: more than 64 bits hold"},
        {"b=1:4097:+1", "b=1:4097:+1: more than 4096 values; take a larger step"},
        {"b=0:9223372036854775807:+1", "b=0:9223372036854775807:+1: more than 4096 values; take a larger step"},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) assert_string_equal(read_axis(cases[i][0]), cases[i][1]);
}

static void test_limit(void **state)
{
    struct axis axis;
    char        why[128];
    (void)state;
    assert_int_equal(axis_parse("b=1:4096:+1", &axis, why, sizeof why), 0);
    assert_int_equal(axis.n, 4096);
    assert_int_equal(axis.value[4095], 4096);
    axis_free(&axis);
}

static void test_number(void **state)
{
    const char *p = "128Kx", *why = NULL;
    int64_t     value;
    (void)state;
    assert_int_equal(axis_number(&p, &value, &why), 0);
    assert_int_equal(value, 131072);
    assert_string_equal(p, "x");
    assert_int_equal(axis_number(&p, &value, &why), 1);
    assert_string_equal(p, "x");
    assert_non_null(why);
}

static void test_nearest(void **state)
{
    static const char *const names[] = {"batch", "ctx", "max_ctx", "topk", "attn/mma", "attn/host_mma"};
    char hint[64];
    (void)state;
    assert_string_equal(nearest("bacth", names, COUNT(names)), "batch");
    assert_string_equal(nearest("batc", names, COUNT(names)), "batch");
    assert_string_equal(nearest("BATCH", names, COUNT(names)), "batch");
    assert_string_equal(nearest("ctxt", names, COUNT(names)), "ctx");
    assert_string_equal(nearest("maxctx", names, COUNT(names)), "max_ctx");
    assert_string_equal(nearest("attn/mm", names, COUNT(names)), "attn/mma");
    assert_null(nearest("zebra", names, COUNT(names)));
    assert_null(nearest("", names, COUNT(names)));
    assert_null(nearest("batch", names, 0));
    assert_string_equal(did_you_mean("topl", names, COUNT(names), hint, sizeof hint), "; did you mean 'topk'?");
    assert_string_equal(did_you_mean("zebra", names, COUNT(names), hint, sizeof hint), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_words), cmocka_unit_test(test_name),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limit),  cmocka_unit_test(test_number), cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

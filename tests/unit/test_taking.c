/* Whose memory is it that is missing after a launch? The figures alone, then whole checks of a right kernel on a device that others
 * use, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "attn.h"
#include "base.h"
#include "check.h"
#include "taking.h"

static const int64_t MB = 1 << 20;

/* In MB: free some time before, free just before and after, and what this process takes. */
static struct taking taking(int64_t still, int64_t before, int64_t after, int64_t own)
{
    int64_t held = own < 0 ? -1 : 512 * MB;
    return (struct taking){{still * MB, held}, {before * MB, held}, {after * MB, own < 0 ? -1 : held + own * MB}};
}

static struct taking fell(void) { return taking(1000, 1000, 992, -1); }
static struct taking stayed(void) { return taking(1000, 1000, 1000, -1); }
static struct taking others(void) { return taking(1000, 900, 892, -1); }

static void nothing_is_missing(void **state)
{
    struct taking t = stayed();
    (void)state;
    assert_int_equal(taking_judge(&t, 1), TAKEN_NOT);
    t = taking(1000, 1000, 1100, -1);                       /* another process ended */
    assert_int_equal(taking_judge(&t, 1), TAKEN_NOT);
    t = stayed(), t.after.free_bytes -= MB;                 /* less than a page */
    assert_int_equal(taking_judge(&t, 1), TAKEN_NOT);
}

static void each_time(void **state)
{
    struct taking t[MOST_TAKINGS];
    (void)state;
    for (int n = 1; n <= MOST_TAKINGS; n++) {
        t[n - 1] = fell();
        assert_int_equal(taking_judge(t, n), n < 4 ? TAKEN_OPEN : TAKEN);
    }
    assert_int_equal(taking_bytes(t), 8 * MB);
}

/* Another process took it in that moment: the next time nothing is missing, at whichever look that is. */
static void once(void **state)
{
    (void)state;
    for (int when = 1; when < 4; when++) {
        struct taking t[MOST_TAKINGS];
        for (int i = 0; i < when; i++) t[i] = fell();
        t[when] = stayed();
        assert_int_equal(taking_judge(t, when), TAKEN_OPEN);
        assert_int_equal(taking_judge(t, when + 1), TAKEN_NOT);
    }
}

/* What also changes without a launch says nothing, in either direction: it neither blames nor clears. */
static void others_all_the_time(void **state)
{
    struct taking t[MOST_TAKINGS] = {fell()};
    (void)state;
    for (int n = 2; n <= MOST_TAKINGS; n++) {
        t[n - 1] = n % 2 ? others() : taking(900, 1000, 1000, -1);
        assert_int_equal(taking_judge(t, n), n < MOST_TAKINGS ? TAKEN_OPEN : TAKEN_NOT);
    }
    for (int i = 1; i < 4; i++) t[2 * i] = fell();
    assert_int_equal(taking_judge(t, 6), TAKEN_OPEN);
    assert_int_equal(taking_judge(t, 7), TAKEN);
}

/* Where it is known what this process holds, one look is mostly enough. */
static void by_process(void **state)
{
    struct taking t = taking(1000, 1000, 996, 4);
    (void)state;
    assert_int_equal(taking_judge(&t, 1), TAKEN);
    assert_int_equal(taking_bytes(&t), 4 * MB);
    t = taking(1000, 900, 100, 0);
    assert_int_equal(taking_judge(&t, 1), TAKEN_NOT);
    struct taking late[2] = {taking(1000, 1000, 1000, 4), taking(1000, 1000, 1000, 0)};   /* what was taken long before */
    assert_int_equal(taking_judge(late, 1), TAKEN_OPEN);
    assert_int_equal(taking_judge(late, 2), TAKEN_NOT);
    struct taking hidden[4];                                                              /* others free more meanwhile */
    for (int i = 0; i < 4; i++) hidden[i] = taking(1000, 900, 1200, 4);
    assert_int_equal(taking_judge(hidden, 3), TAKEN_OPEN);
    assert_int_equal(taking_judge(hidden, 4), TAKEN);
    t = taking(1000, 1000, 996, 4), t.still.own_bytes = 0;   /* it changed without a launch */
    assert_int_equal(taking_judge(&t, 1), TAKEN_OPEN);
    t = taking(1000, 1000, 996, 4), t.after.own_bytes = -1;  /* not known any more: by what is free */
    assert_int_equal(taking_judge(&t, 1), TAKEN_OPEN);
}

/* A device whose figures are a story: what the kernel takes in each launch, and what others hold at each look. */
static struct story {
    int64_t (*kernel_MB)(int launches), (*others_MB)(int looks);
    bool    by_process;
    int     launches, looks;
} story;

static const struct kernel *right;

static int launch(const struct call *c)
{
    story.launches++;
    return right->launch(c);
}

static size_t free_bytes(struct dev *dev)
{
    (void)dev;
    int64_t kernel = story.kernel_MB ? story.kernel_MB(story.launches) : 0;
    return (size_t)((100000 - kernel - (story.others_MB ? story.others_MB(story.looks++) : 0)) * MB);
}

static int64_t own_bytes(struct dev *dev)
{
    (void)dev;
    return story.by_process ? (512 + (story.kernel_MB ? story.kernel_MB(story.launches) : 0)) * MB : -1;
}

static void step(void *arg, const char *what) { (void)arg, (void)what; }

static struct verdict checked(struct story as)
{
    struct dev *dev = dev_open_host();
    const struct dev_ops *host = dev->ops;
    struct dev_ops ops = *host;
    struct workload w = {.dev = dev, .memory = memfd_create("taking", 0)};
    struct problem problem = {op_find("attn"), {1, 8, 64, 16, 16, 4, 0}, 5};
    struct registry r = registry_open(0, NULL);
    int32_t tune[MAX_TUNABLES] = {0};
    struct bound bound;
    right = registry_find(&r, "attn/host_perhead")->kernel;
    struct kernel kernel = *right;
    kernel.launch = launch;
    kernel.engine = CUDA;   /* so that the check is that of a GPU */
    story = as;
    ops.free_bytes = free_bytes, ops.own_bytes = own_bytes;
    dev->ops = &ops;
    assert_int_equal(workload_prepare(&w, &problem, NULL, 10), 0);
    assert_int_equal(bound_open(&bound, &w, &kernel, tune), 0);
    struct verdict verdict = check_kernel(&bound, step, NULL);
    bound_close(&bound);
    workload_close(&w);
    close(w.memory);
    dev->ops = host;
    host->close(dev);
    free(r.entry);
    return verdict;
}

static int64_t each_launch(int launches) { return 4 * launches; }
static int64_t a_little_each_launch(int launches) { return launches / 4 * 2; }      /* half a page */
static int64_t second_launch(int launches) { return launches >= 2 ? 4 : 0; }        /* and keeps it */
static int64_t first_launch(int launches) { return launches >= 1 ? 64 : 0; }        /* its code is loaded */
static int64_t in_that_moment(int looks) { return looks >= 1 ? 2 : 0; }
static int64_t at_every_look(int looks) { return looks * 2; }
static int64_t up_and_down(int looks) { return looks % 2 * 30; }

static void right_beside_others(void **state)
{
    static int64_t (*const by_others[])(int) = {NULL, in_that_moment, at_every_look, up_and_down};
    (void)state;
    for (int i = 0; i < COUNT(by_others); i++)
        for (int by_process = 0; by_process < 2; by_process++) {
            struct verdict v = checked((struct story){.kernel_MB = first_launch, .others_MB = by_others[i],
                .by_process = by_process});
            assert_string_equal(v.reason, "");
            assert_int_equal(v.status, STATUS_OK);
            if (by_process || !i) assert_true(story.launches <= 6);   /* nothing is launched for nothing */
        }
}

static void allocates(struct story as, const char *words)
{
    struct verdict v = checked(as);
    assert_int_equal(v.status, STATUS_CAPTURE_FAIL);
    assert_string_equal(v.reason, words);
}

static void allocates_in_launch(void **state)
{
    (void)state;
    allocates((struct story){.kernel_MB = each_launch},
        "launch allocates: 16.8 MB less are free after a few launches, again and again");
    allocates((struct story){.kernel_MB = each_launch, .others_MB = in_that_moment},
        "launch allocates: 16.8 MB less are free after a few launches, again and again");
    allocates((struct story){.kernel_MB = each_launch, .by_process = true},
        "launch allocates: 4.19 MB less are free after a launch");
    allocates((struct story){.kernel_MB = second_launch, .others_MB = at_every_look, .by_process = true},
        "launch allocates: 4.19 MB less are free after a launch");
    allocates((struct story){.kernel_MB = a_little_each_launch, .others_MB = in_that_moment},
        "launch allocates: 2.1 MB less are free after a few launches, again and again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_missing), cmocka_unit_test(each_time), cmocka_unit_test(once),
        cmocka_unit_test(others_all_the_time), cmocka_unit_test(by_process), cmocka_unit_test(right_beside_others),
        cmocka_unit_test(allocates_in_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The op topk: scores of each kind are what they should be, its reference agrees with sorting, its judgement takes any right choice
 * and no wrong one; and its host kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "indexer_bind.h"
#include "topk.h"

extern const struct op op_topk;
extern const struct kernel kernel_topk_host;

enum { PAGE = TOPK_PAGE };

static struct problem problem(int64_t batch, int64_t n, int64_t max_n, int64_t k, int64_t scores, int64_t ragged)
{
    return (struct problem){&op_topk, {batch, n, max_n, k, scores, ragged}, 5};
}

static int64_t width_of(const struct bound *b) { return topk_width(b->p.dim[TOPK_MAX_N]); }
static float *scores_at(const struct bound *b, int64_t r) { return (float *)b->dense[TOPK_SCORE] + r * width_of(b); }

static int32_t *pages_at(const struct bound *b, int64_t r)
{
    return (int32_t *)b->dense[TOPK_PAGE_TABLE] + r * (width_of(b) / PAGE);
}

static int64_t live_at(const struct bound *b, int64_t r)
{
    int32_t length = ((int32_t *)b->dense[TOPK_LENGTH])[r];
    return length > 0 ? length : 0;
}

static int32_t slot_of(const struct bound *b, int64_t r, int64_t e)
{
    return pages_at(b, r)[e / PAGE] * PAGE + (int32_t)(e % PAGE);
}

/* The slots of row r as the kernel left them. */
static int32_t *got_at(const struct bound *b, int64_t r)
{
    return (int32_t *)((char *)b->arg[TOPK_SLOT].p + r * b->arg[TOPK_SLOT].stride);
}

static void layout_is_the_headers(void **state)
{
    (void)state;
    assert_true(layout_of(&op_topk) == topk_layout);
    assert_string_equal(op_topk.tensor[TOPK_SLOT].name, "slot");
    assert_string_equal(op_topk.dim[TOPK_RAGGED].name, "ragged");
    assert_string_equal(op_topk.dim[TOPK_SCORES].names[TOPK_RISING], "rising");
    assert_null(op_topk.dim[TOPK_SCORES].names[TOPK_RISING + 1]);
    for (int i = 0; op_topk.dim[i].name; i++) assert_in_range(op_topk.dim[i].dflt, op_topk.dim[i].min, op_topk.dim[i].max);
    assert_int_equal(topk_width(262208), 262208);
    assert_int_equal(topk_width(262209), 262272);
}

static void refuses_with_both_numbers(void **state)
{
    (void)state;
    struct problem p = problem(2, 1001, 1000, 512, 0, 0);
    assert_non_null(op_topk.invalid(&p));
    assert_non_null(strstr(op_topk.invalid(&p), "1001"));
    assert_non_null(strstr(op_topk.invalid(&p), "1000"));
    p = problem(4096, 1000, 1 << 20, 512, 0, 0);   /* 2^26 pages */
    assert_non_null(op_topk.invalid(&p));
    p = problem(2, 1001, 1001, 512, 0, 0);
    assert_null(op_topk.invalid(&p));
}

/* Live slots are distinct and fit an int32; past the length nothing looks harmless. */
static void inputs_keep_their_promises(void **state)
{
    (void)state;
    for (int scores = 0; scores <= TOPK_RISING; scores++) {
        struct problem p = problem(12, 3000, 5000, 512, scores, 1);
        struct bound   b = bind_problem(&p, scores % 2 ? CHECK_SET : 3, 16);
        for (int64_t r = 0; r < 12; r++) {
            int64_t live = live_at(&b, r), pages = (live + PAGE - 1) / PAGE;
            for (int64_t j = 0; j < width_of(&b) / PAGE; j++) {
                int32_t page = pages_at(&b, r)[j];
                if (j >= pages) assert_true(page == 0 || page < -1);
                else assert_in_range(page, 1, INT32_MAX / PAGE);
                for (int64_t i = 0; j < pages && i < j; i++) assert_int_not_equal(page, pages_at(&b, r)[i]);
            }
            for (int64_t e = live; e < width_of(&b); e++) assert_true(scores_at(&b, r)[e] >= 1e30f);
        }
        bind_free(&b);
    }
}

static void scores_are_of_their_kind(void **state)
{
    (void)state;
    for (int scores = 0; scores <= TOPK_RISING; scores++) {
        struct problem p = problem(3, 30000, 30016, 512, scores, 0);
        struct bound   b = bind_problem(&p, 0, 0);
        for (int64_t r = 0; r < 3; r++) {
            const float *s = scores_at(&b, r);
            int64_t at = 0, above = 0, nan = 0, inf = 0, minus = 0, negative = 0, zero = 0, falls = 0, tiny = 0, alike = 0;
            for (int64_t e = 0; e < 30000; e++) {
                at += s[e] == 0.5f;
                above += s[e] > 0.5f;
                nan += isnan(s[e]);
                inf += s[e] == INFINITY;
                minus += s[e] == -INFINITY;
                negative += s[e] < 0;
                zero += s[e] == 0 && signbit(s[e]);
                tiny += fpclassify(s[e]) == FP_SUBNORMAL;
                alike += bits_of_f32(s[e]) >> 20 == bits_of_f32(s[0]) >> 20;
                falls += e > 0 && s[e] < s[e - 1];
            }
            if (scores == TOPK_PLATEAU) assert_true(at > 25000 && above > 128 && above < 512);
            if (scores == TOPK_SPECIAL) assert_true(nan > 500 && minus > 500 && inf > 0 && zero > 5 && tiny > 5);
            if (scores == TOPK_SPECIAL && r == 1) assert_true(nan + minus > 27000);
            if (scores == TOPK_NEGATIVE) assert_true(negative == 30000 && minus == 0);
            if (scores == TOPK_CLOSE) assert_true(alike == 30000);
            if (scores == TOPK_RISING) assert_true(falls == 0 && s[29999] > s[0]);
            if (scores == TOPK_RANDOM) assert_true(negative > 14000 && negative < 16000 && nan + inf + minus == 0);
        }
        bind_free(&b);
    }
}

static int compare_down(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The scores that the reference selects are the first of all candidates, sorted. */
static void reference_agrees_with_sorting(void **state)
{
    (void)state;
    for (int scores = 0; scores <= TOPK_RISING; scores++)
        for (int64_t k = 1; k <= 2048; k = k * 8 + 3) {
            struct problem p = problem(12, 3000, 3000, k, scores, 1);
            struct bound   b = bind_problem(&p, 1, 0);
            for (int64_t r = 0; r < 12; r++) {
                float   all[3000], chosen[2048];
                int64_t n = 0, m = 0;
                for (int64_t e = 0; e < live_at(&b, r); e++)
                    if (scores_at(&b, r)[e] > -INFINITY) all[n++] = scores_at(&b, r)[e];
                qsort(all, (size_t)n, sizeof *all, compare_down);
                const int32_t *slot = (int32_t *)b.dense[TOPK_SLOT] + r * k;
                for (int64_t e = 0; e < live_at(&b, r) && m < k; e++)
                    if (slot[m] == slot_of(&b, r, e)) chosen[m++] = scores_at(&b, r)[e];
                assert_int_equal(m, n < k ? n : k);
                for (int64_t i = m; i < k; i++) assert_int_equal(slot[i], -1);
                qsort(chosen, (size_t)m, sizeof *chosen, compare_down);
                for (int64_t i = 0; i < m; i++) assert_true(chosen[i] == all[i]);
            }
            bind_free(&b);
        }
}

static void expect_why(const struct bound *b, const char *words)
{
    char        why[200] = "";
    const char *said = slots_why(b, TOPK_SLOT, why);
    if (!words && said) fail_msg("complains: %s", said);
    if (words && !said) fail_msg("should complain: %s", words);
    if (words && !strstr(said, words)) fail_msg("complains: %s; should: %s", said, words);
}

/* An entry that the reference does not select; tied: one that scores as the lowest selected does. */
static int64_t other_entry(const struct bound *b, int64_t r, bool tied)
{
    const int32_t *slot = (int32_t *)b->dense[TOPK_SLOT] + r * b->p.dim[TOPK_K];
    float lowest = INFINITY;
    bool *chosen = calloc((size_t)live_at(b, r), sizeof *chosen);
    int64_t ret = -1;
    for (int64_t e = 0, i = 0; e < live_at(b, r); e++) {
        chosen[e] = i < b->p.dim[TOPK_K] && slot[i] == slot_of(b, r, e);
        i += chosen[e];
        if (chosen[e]) lowest = fminf(lowest, scores_at(b, r)[e]);
    }
    for (int64_t e = 0; e < live_at(b, r) && ret < 0; e++)
        if (!chosen[e] && (scores_at(b, r)[e] == lowest) == tied) ret = e;
    free(chosen);
    return ret;
}

static void any_right_choice_is_right(void **state)
{
    (void)state;
    struct problem p = problem(3, 3000, 3000, 512, TOPK_PLATEAU, 0);
    struct bound   b = bind_problem(&p, 0, 16);
    expect_why(&b, "0 entries are selected, should be 512");   /* untouched: -1 everywhere */
    memset(got_at(&b, 0), 0x7b, 512 * 4);
    expect_why(&b, "none of the 3000 live entries");
    slots_put(&b, TOPK_SLOT);
    expect_why(&b, NULL);
    int32_t *slot = got_at(&b, 2);
    for (int i = 0; i < 256; i++) {   /* backwards */
        int32_t swap = slot[i];
        slot[i] = slot[511 - i];
        slot[511 - i] = swap;
    }
    expect_why(&b, NULL);
    for (int i = 0; i < 512; i++)   /* another of the tied */
        for (int64_t e = 0; e < 3000; e++)
            if (slot[i] == slot_of(&b, 2, e) && scores_at(&b, 2)[e] == 0.5f) {
                slot[i] = slot_of(&b, 2, other_entry(&b, 2, true));
                expect_why(&b, NULL);
                bind_free(&b);
                return;
            }
    fail_msg("no tie at the border");
}

static void wrong_choices_are_told(void **state)
{
    (void)state;
    struct problem p = problem(3, 3000, 3100, 512, TOPK_RANDOM, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    int32_t       *slot = got_at(&b, 1);
    slots_put(&b, TOPK_SLOT);
    int32_t keep = slot[7];
    slot[7] = slot[8];
    expect_why(&b, "is selected twice");
    slot[7] = -1;
    expect_why(&b, "behind a -1");
    slot[7] = 3;
    expect_why(&b, "slot[1, 7] is 3, which is none of the 3000 live entries of request 1");
    slot[7] = slot_of(&b, 1, 2999) + 1;          /* in a live page, past the length */
    expect_why(&b, "none of the 3000 live entries");
    slot[7] = slot_of(&b, 2, 0);                 /* of another request */
    expect_why(&b, "none of the 3000 live entries");
    slot[7] = INT32_MIN;
    expect_why(&b, "none of the 3000 live entries");
    slot[7] = slot_of(&b, 1, other_entry(&b, 1, false));
    expect_why(&b, "of the scores selected, from the highest down, is");
    slot[7] = keep;
    expect_why(&b, NULL);
    slot[511] = -1;
    expect_why(&b, "511 entries are selected, should be 512");
    bind_free(&b);
}

/* NaN and -inf are never selected, not even where there is nothing else. */
static void what_is_no_candidate_is_told(void **state)
{
    (void)state;
    struct problem p = problem(2, 1000, 1000, 512, TOPK_SPECIAL, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    int32_t       *slot = got_at(&b, 1);
    int64_t        n = 0, wrong[2] = {-1, -1};
    slots_put(&b, TOPK_SLOT);
    while (slot[n] != -1) n++;
    assert_in_range(n, 1, 400);
    for (int64_t e = 0; e < 1000; e++) {
        if (isnan(scores_at(&b, 1)[e])) wrong[0] = e;
        if (scores_at(&b, 1)[e] == -INFINITY) wrong[1] = e;
    }
    for (int i = 0; i < 2; i++) {
        slot[n] = slot_of(&b, 1, wrong[i]);
        expect_why(&b, "is selected, its score is");
    }
    slot[n] = -1;
    expect_why(&b, NULL);
    bind_free(&b);
}

/* Rows without a reference are not judged, the others are. */
static void unreached_rows_are_not_judged(void **state)
{
    (void)state;
    struct problem p = problem(3, 3000, 3000, 512, TOPK_RANDOM, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    slots_put(&b, TOPK_SLOT);
    memset((int32_t *)b.dense[TOPK_SLOT] + 512, UNREACHED_BYTE, 512 * 4);
    got_at(&b, 1)[0] = 3;
    expect_why(&b, NULL);
    got_at(&b, 2)[0] = 3;
    expect_why(&b, "slot[2, 0] is 3");
    bind_free(&b);
}

static void check_host(struct problem p, uint32_t set, int64_t pad)
{
    struct bound b = bind_problem(&p, set, pad);
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        struct device device = {.sm_count = threads};
        char          why[200];
        memset(b.arg[TOPK_SLOT].p, 0xff, (size_t)(p.dim[TOPK_BATCH] * b.arg[TOPK_SLOT].stride));   /* -1 everywhere */
        for (int64_t r = 0; r < p.dim[TOPK_BATCH]; r++) memset(got_at(&b, r), 0x7b, (size_t)p.dim[TOPK_K] * 4);
        assert_int_equal(bind_launch(&b, &kernel_topk_host, &device, (int32_t[MAX_TUNABLES]){0}), 0);
        const char *said = slots_why(&b, TOPK_SLOT, why);
        if (said)
            fail_msg("n=%d, max_n=%d, k=%d, scores=%d: %s", (int)p.dim[1], (int)p.dim[2], (int)p.dim[3], (int)p.dim[4], said);
    }
    bind_free(&b);
}

static void host_is_right_on_every_kind(void **state)
{
    (void)state;
    const int64_t n[] = {0, 1, 2, 63, 64, 65, 511, 512, 513, 1023, 1024, 1025, 5000};
    const int64_t k[] = {1, 3, 4, 512, 1024, 2048};
    for (int scores = 0; scores <= TOPK_RISING; scores++)
        for (int i = 0; i < 13; i++)
            for (int j = 0; j < 6; j++)
                check_host(problem(2, n[i], n[i] + (i + j) % 3 * 100 + 1, k[j], scores, 0), (uint32_t)i, j % 2 * 16);
}

/* With lengths of -1 and 0 among the others, after which nothing may be selected at all. */
static void host_is_right_on_ragged_rows(void **state)
{
    (void)state;
    for (int scores = 0; scores <= TOPK_RISING; scores++)
        for (int64_t k = 512; k <= 1024; k += 512)
            check_host(problem(16, 9000, 9000, k, scores, 1), scores % 2 ? CHECK_SET : 2, 32);
}

/* 262,208 entries are 64 more than a selection kernel once took for the most; and a plateau of over 400,000. */
static void host_is_right_on_long_rows(void **state)
{
    (void)state;
    check_host(problem(1, 262208, 262208, 512, TOPK_RANDOM, 0), 0, 0);
    check_host(problem(1, 262208, 262208, 512, TOPK_RISING, 0), 0, 0);   /* the best come last */
    check_host(problem(1, 500000, 1 << 20, 1024, TOPK_PLATEAU, 0), 0, 0);
    check_host(problem(1, 262208, 262208, 1024, TOPK_CLOSE, 0), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_the_headers), cmocka_unit_test(refuses_with_both_numbers),
        cmocka_unit_test(inputs_keep_their_promises), cmocka_unit_test(scores_are_of_their_kind),
        cmocka_unit_test(reference_agrees_with_sorting), cmocka_unit_test(any_right_choice_is_right),
        cmocka_unit_test(wrong_choices_are_told), cmocka_unit_test(what_is_no_candidate_is_told),
        cmocka_unit_test(unreached_rows_are_not_judged), cmocka_unit_test(host_is_right_on_every_kind),
        cmocka_unit_test(host_is_right_on_ragged_rows), cmocka_unit_test(host_is_right_on_long_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

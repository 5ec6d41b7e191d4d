/* The op index_select: whole-number data are exact in fp32 and tie, its judgement takes any right choice and no wrong one; and its
 * host kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "index_select.h"
#include "indexer_bind.h"
#include "indexer_formula.h"

extern const struct op op_index_select;
extern const struct kernel kernel_index_select_host;

enum { D = INDEXER_D, HEADS = INDEXER_HEADS, PAGE = INDEXER_PAGE, SLOT = INDEX_SELECT_SLOT };

static struct problem problem(int64_t batch, int64_t ctx, int64_t max_ctx, int64_t k, int64_t data, int64_t ragged)
{
    return (struct problem){&op_index_select, {batch, ctx, max_ctx, INDEXER_TAIL_PAGE0, ragged, k, data}, 9};
}

static int32_t slot_of(const struct bound *b, int64_t r, int64_t e)
{
    return table_at(b, r)[e / PAGE] * PAGE + (int32_t)(e % PAGE);
}

static int32_t *got_at(const struct bound *b, int64_t r) { return (int32_t *)((char *)b->arg[SLOT].p + r * b->arg[SLOT].stride); }

static void layout_is_the_headers(void **state)
{
    (void)state;
    assert_true(layout_of(&op_index_select) == index_select_layout);
    assert_string_equal(op_index_select.dim[INDEX_SELECT_K].name, "k");
    assert_string_equal(op_index_select.dim[INDEX_SELECT_DATA].names[INDEX_SELECT_PLATEAU], "plateau");
    assert_string_equal(op_index_select.tensor[SLOT].name, "slot");
    struct problem p = problem(2, 8193, 8192, 512, 0, 0);
    assert_non_null(strstr(op_index_select.invalid(&p), "8193"));
}

/* The same score in fp32, from the last head and dim to the first: equal where all is exact. */
static float backwards(const struct bound *b, int64_t r, int64_t e)
{
    const float *w = (float *)b->dense[INDEXER_W] + r * HEADS;
    float        score = 0;
    for (int h = HEADS - 1; h >= 0; h--) {
        const uint16_t *q = (uint16_t *)b->dense[INDEXER_Q] + (r * HEADS + h) * D;
        const uint16_t *k = (uint16_t *)b->dense[INDEXER_KEYS] + (int64_t)slot_of(b, r, e) * D;
        float dot = 0;
        for (int d = D - 1; d >= 0; d--) dot += f32_from_bf16(q[d]) * f32_from_bf16(k[d]);
        score += dot > 0 ? dot * w[h] : 0;
    }
    return score;
}

static int compare_scores(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The most entries that share a score. */
static int64_t longest_tie(const double *score, int64_t n)
{
    double *sorted = malloc((size_t)n * sizeof *sorted);
    int64_t longest = 0, run = 0;
    memcpy(sorted, score, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_scores);
    for (int64_t i = 0; i < n; i++) {
        run = i && sorted[i] == sorted[i - 1] ? run + 1 : 1;
        longest = run > longest ? run : longest;
    }
    free(sorted);
    return longest;
}

static void whole_numbers_are_exact_and_tie(void **state)
{
    (void)state;
    for (int data = INDEX_SELECT_RANDOM; data <= INDEX_SELECT_PLATEAU; data++) {
        struct problem p = problem(4, 4 * 20000, 1 << 17, 512, data, 0);
        struct bound   b = bind_problem(&p, 0, 0);
        double        *score = malloc(20000 * sizeof *score);
        for (int64_t r = 0; r < 4; r++) {
            int64_t unequal = 0;
            assert_int_equal(indexer_scores(&p, b.dense, r, &indexer_bf16, score), 20000);
            for (int64_t e = 0; e < 20000; e += 37) unequal += score[e] != backwards(&b, r, e);
            assert_int_equal(unequal > 0, data == INDEX_SELECT_RANDOM);
            for (int64_t e = 0; e < 20000 && data; e++) assert_true(score[e] == rint(score[e]) && fabs(score[e]) < 1 << 17);
            for (int64_t e = 0; e < 20000 && r == 3; e++) assert_true(score[e] <= 0);
            int64_t tie = longest_tie(score, 20000);
            if (data == INDEX_SELECT_PLATEAU) assert_true(tie > 4000);
            if (data == INDEX_SELECT_INTEGER) assert_in_range(tie, 10, 1000);
            if (data == INDEX_SELECT_RANDOM) assert_true(tie < 10);
        }
        free(score);
        bind_free(&b);
    }
}

static void expect_why(const struct bound *b, const char *words)
{
    char        why[200] = "";
    const char *said = slots_why(b, SLOT, why);
    if (!words && said) fail_msg("complains: %s", said);
    if (words && !said) fail_msg("should complain: %s", words);
    if (words && !strstr(said, words)) fail_msg("complains: %s; should: %s", said, words);
}

/* Entries of row r by true score, from the highest down. */
static void ranked(const struct bound *b, int64_t r, int64_t n, int64_t *ret_entry, double *ret_score)
{
    double *score = malloc((size_t)n * sizeof *score);
    indexer_scores(&b->p, b->dense, r, &indexer_bf16, score);
    for (int64_t e = 0; e < n; e++) {
        int64_t at = e;
        for (; at > 0 && ret_score[at - 1] < score[e]; at--) {
            ret_score[at] = ret_score[at - 1];
            ret_entry[at] = ret_entry[at - 1];
        }
        ret_score[at] = score[e];
        ret_entry[at] = e;
    }
    free(score);
}

static void any_of_the_tied_is_right(void **state)
{
    (void)state;
    struct problem p = problem(2, 4 * 3000, 1 << 14, 512, INDEX_SELECT_PLATEAU, 0);
    struct bound   b = bind_problem(&p, 0, 16);
    int64_t        entry[3000];
    double         score[3000];
    ranked(&b, 1, 3000, entry, score);
    slots_put(&b, SLOT);
    expect_why(&b, NULL);
    for (int i = 0; i < 512; i++) got_at(&b, 1)[511 - i] = slot_of(&b, 1, entry[i]);
    expect_why(&b, NULL);
    int64_t last = 512;
    while (last < 3000 && score[last] == score[511]) last++;
    assert_true(last > 512);                                       /* a tie at the border */
    got_at(&b, 1)[0] = slot_of(&b, 1, entry[last - 1]);
    expect_why(&b, NULL);
    got_at(&b, 1)[0] = slot_of(&b, 1, entry[last]);
    expect_why(&b, "number 512 of the scores selected, from the highest down, is");
    bind_free(&b);
}

/* Random data: an entry too low by more than fp32 can be wrong is told, and one that was left out for it. */
static void random_data_leave_no_more_room_than_rounding(void **state)
{
    (void)state;
    struct problem p = problem(2, 4 * 3000, 1 << 14, 512, INDEX_SELECT_RANDOM, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    int64_t        entry[3000];
    double         score[3000];
    ranked(&b, 1, 3000, entry, score);
    slots_put(&b, SLOT);
    expect_why(&b, NULL);
    for (int i = 0; i < 512; i++) got_at(&b, 1)[i] = slot_of(&b, 1, entry[i]);
    expect_why(&b, NULL);
    got_at(&b, 1)[511] = slot_of(&b, 1, entry[530]);
    expect_why(&b, "is selected, its score is");
    got_at(&b, 1)[511] = slot_of(&b, 1, entry[511]);
    got_at(&b, 1)[0] = slot_of(&b, 1, entry[512]);
    expect_why(&b, "selected, its score is");
    bind_free(&b);
}

/* Of n twins at the border, which differ by less than fp32 can tell, any may be selected. */
static void twins_at_the_border_are_as_good(void **state)
{
    (void)state;
    struct problem p = problem(1, 4 * 1000, 1 << 14, 100, INDEX_SELECT_RANDOM, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    int64_t        entry[1000];
    double         score[1000];
    ranked(&b, 0, 1000, entry, score);
    uint16_t *keys = b.dense[INDEXER_KEYS], *q = b.dense[INDEXER_Q];
    for (int h = 0; h < HEADS; h++) q[h * D] = bf16_from_f32(1e-6f);   /* dim 0 counts for next to nothing */
    memcpy(keys + (int64_t)slot_of(&b, 0, entry[100]) * D, keys + (int64_t)slot_of(&b, 0, entry[99]) * D, D * 2);
    keys[(int64_t)slot_of(&b, 0, entry[100]) * D] = bf16_from_f32(0.5f);
    keys[(int64_t)slot_of(&b, 0, entry[99]) * D] = bf16_from_f32(-0.5f);
    int64_t twin[2] = {entry[99], entry[100]};
    bind_spread(&b);
    ranked(&b, 0, 1000, entry, score);
    int64_t at = 0;
    while (entry[at] != twin[0] && entry[at] != twin[1]) at++;
    assert_true((entry[at + 1] == twin[0] || entry[at + 1] == twin[1]) && score[at] != score[at + 1]);
    struct problem narrow = p;
    narrow.dim[INDEX_SELECT_K] = at + 1;   /* the border between them */
    b.p = narrow;
    p.op->reference(&narrow, b.dense, 0, 1);
    b.arg[SLOT].stride = (at + 1) * 4;
    slots_put(&b, SLOT);
    expect_why(&b, NULL);
    for (int64_t i = 0; i <= at; i++)
        if (got_at(&b, 0)[i] == slot_of(&b, 0, entry[at])) got_at(&b, 0)[i] = slot_of(&b, 0, entry[at + 1]);
    expect_why(&b, NULL);
    for (int64_t i = 0; i <= at; i++)
        if (got_at(&b, 0)[i] == slot_of(&b, 0, entry[at + 1])) got_at(&b, 0)[i] = slot_of(&b, 0, entry[at + 3]);
    expect_why(&b, "is selected, its score is");
    bind_free(&b);
}

static void wrong_choices_are_told(void **state)
{
    (void)state;
    struct problem p = problem(2, 4 * 600, 1 << 14, 512, INDEX_SELECT_INTEGER, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    slots_put(&b, SLOT);
    int32_t keep = got_at(&b, 1)[5];
    got_at(&b, 1)[5] = got_at(&b, 1)[6];
    expect_why(&b, "is selected twice");
    got_at(&b, 1)[5] = slot_of(&b, 1, 599) + 1;
    expect_why(&b, "none of the 600 live entries of request 1");
    got_at(&b, 1)[5] = 0;   /* page 0 */
    expect_why(&b, "none of the 600 live entries");
    got_at(&b, 1)[5] = keep;
    got_at(&b, 1)[511] = -1;
    expect_why(&b, "511 entries are selected, should be 512");
    memset((int32_t *)b.dense[SLOT] + 512, UNREACHED_BYTE, 4);
    expect_why(&b, NULL);
    bind_free(&b);
}

/* The host kernel, on every path that this processor has. */
static void check_host(struct problem p, uint32_t set, int64_t pad)
{
    struct bound b = bind_problem(&p, set, pad);
    for (int32_t path = 1; path <= 6; path++) {
        struct device device = {.sm_count = path % 2 ? 3 : 1};
        char          why[200];
        for (int64_t r = 0; r < p.dim[INDEXER_BATCH]; r++) memset(got_at(&b, r), 0x7b, (size_t)p.dim[INDEX_SELECT_K] * 4);
        int code = bind_launch(&b, &kernel_index_select_host, &device, (int32_t[MAX_TUNABLES]){path});
        if (code == ENOTSUP && path > 2) continue;
        assert_int_equal(code, 0);
        const char *said = slots_why(&b, SLOT, why);
        if (said) fail_msg("ctx=%d, k=%d, data=%d, path=%d: %s", (int)p.dim[1], (int)p.dim[5], (int)p.dim[6], (int)path, said);
    }
    bind_free(&b);
}

/* About 512 and 1024 entries, where kernels have mixed up the two: contexts of 2047 to 2052 tokens, and 4096. */
static void host_is_right_about_k(void **state)
{
    (void)state;
    const int64_t ctx[] = {0, 3, 4, 255, 256, 260, 2047, 2048, 2049, 2050, 2051, 2052, 4095, 4096, 4100};
    for (int i = 0; i < 15; i++)
        for (int64_t k = 512; k <= 1024; k += 512) check_host(problem(2, ctx[i], 5000, k, i % 3, 0), (uint32_t)i, 16);
}

static void host_is_right_on_ragged_requests(void **state)
{
    (void)state;
    for (int data = 0; data < 3; data++) check_host(problem(13, 16384, 1 << 15, 512, data, 1), data ? 1 : CHECK_SET, 0);
    check_host(problem(4, 16384, 1 << 15, 3, INDEX_SELECT_INTEGER, 1), 0, 0);
}

static void host_is_right_on_long_plateaus(void **state)
{
    (void)state;
    check_host(problem(1, 4 * 30000, 1 << 17, 512, INDEX_SELECT_PLATEAU, 0), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_the_headers), cmocka_unit_test(whole_numbers_are_exact_and_tie),
        cmocka_unit_test(any_of_the_tied_is_right), cmocka_unit_test(random_data_leave_no_more_room_than_rounding),
        cmocka_unit_test(twins_at_the_border_are_as_good), cmocka_unit_test(wrong_choices_are_told),
        cmocka_unit_test(host_is_right_about_k), cmocka_unit_test(host_is_right_on_ragged_requests),
        cmocka_unit_test(host_is_right_on_long_plateaus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

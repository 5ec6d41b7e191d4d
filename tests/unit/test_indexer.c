/* The ops indexer and indexer_fp8: inputs keep their promises, and the references agree with a naive computation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "indexer_bind.h"
#include "indexer_fp8.h"

extern const struct op op_indexer, op_indexer_fp8;

enum { D = INDEXER_D, HEADS = INDEXER_HEADS, PAGE = INDEXER_PAGE };

static struct problem problem(const struct op *op, int64_t batch, int64_t ctx, int64_t max_ctx, int64_t tail, int64_t ragged)
{
    return (struct problem){op, {batch, ctx, max_ctx, tail, ragged}, 7};
}

static void layouts_are_the_headers(void **state)
{
    (void)state;
    assert_true(layout_of(&op_indexer) == indexer_layout);
    assert_true(layout_of(&op_indexer_fp8) == indexer_fp8_layout);
    assert_string_equal(op_indexer.tensor[INDEXER_LOGITS].name, "logits");
    assert_string_equal(op_indexer.dim[INDEXER_RAGGED].name, "ragged");
    for (int i = 0; op_indexer.dim[i].name; i++)
        assert_in_range(op_indexer.dim[i].dflt, op_indexer.dim[i].min, op_indexer.dim[i].max);
}

static void widths_are_those_of_servers(void **state)
{
    (void)state;
    assert_int_equal(indexer_width(1 << 20), 262208);
    assert_int_equal(indexer_width(0), 64);
    assert_int_equal(indexer_width(252), 64);
    assert_int_equal(indexer_width(253), 128);
    struct problem p = problem(&op_indexer, 2, 512, 1 << 20, 0, 0);
    assert_int_equal(op_indexer.tensor[INDEXER_LOGITS].row_bytes(&p), 262208 * 4);
    assert_int_equal(op_indexer.tensor[INDEXER_PAGE_TABLE].row_bytes(&p), 4097 * 4);
    for (int64_t most = 0; most < 3000; most++) assert_true(indexer_width(most) >= most / INDEXER_RATIO + 1);
}

static void refuses_with_both_numbers(void **state)
{
    (void)state;
    struct problem p = problem(&op_indexer, 2, 8193, 8192, 0, 0);
    const char    *why = op_indexer.invalid(&p);
    assert_non_null(why);
    assert_non_null(strstr(why, "8193"));
    assert_non_null(strstr(why, "8192"));
    assert_non_null(op_indexer_fp8.invalid(&p));
    p.dim[INDEXER_CTX] = 8192;
    assert_null(op_indexer.invalid(&p));
    p = problem(&op_indexer, 4096, 512, 1 << 22, INDEXER_TAIL_UNIQUE, 0);   /* 2^32 slots */
    assert_non_null(op_indexer.invalid(&p));
    p.dim[INDEXER_TAIL] = INDEXER_TAIL_PAGE0;
    assert_null(op_indexer.invalid(&p));
}

/* Every edge is among 16 ragged requests, and one that is full. */
static void ragged_lengths_have_the_edges(void **state)
{
    (void)state;
    const int32_t  want[] = {-1, 0, 1, 63, 64, 65, 511, 512, 513, 2048};
    struct problem p = problem(&op_indexer, 16, 8192, 8192, 0, 1);
    int32_t        length[16];
    op_indexer.fill(&p, INDEXER_LENGTH, 3, 0, 16, length);
    for (int w = 0; w < 10; w++) {
        int found = 0;
        for (int b = 0; b < 16; b++) found += length[b] == want[w];
        assert_true(found > 0);
    }
    for (int b = 0; b < 16; b++) assert_true(length[b] >= -1 && length[b] <= 2048);
    p.dim[INDEXER_RAGGED] = 0;
    op_indexer.fill(&p, INDEXER_LENGTH, 3, 0, 16, length);
    for (int b = 0; b < 16; b++) assert_int_equal(length[b], 2048);
}

/* A kernel that remembers the lengths of an earlier call is found out, whatever the batch. */
static void lengths_of_check_sets_differ(void **state)
{
    (void)state;
    for (int64_t batch = 1; batch < 14; batch++)
        for (int64_t ctx = 0; ctx < 5000; ctx = ctx * 3 + 4)
            for (int ragged = 0; ragged < 2; ragged++) {
                struct problem p = problem(&op_indexer, batch, ctx, 8192, 0, ragged);
                int32_t check[16], other[16];
                op_indexer.fill(&p, INDEXER_LENGTH, CHECK_SET, 0, batch, check);
                for (uint32_t set = 0; set < 4; set++) {
                    op_indexer.fill(&p, INDEXER_LENGTH, set, 0, batch, other);
                    assert_memory_not_equal(check, other, (size_t)batch * 4);
                }
            }
}

static void check_table(const struct bound *b, uint8_t *seen)
{
    const struct problem *p = &b->p;
    int64_t pages = p->op->tensor[INDEXER_PAGE_TABLE].row_bytes(p) / 4;
    int64_t cache = op_indexer.tensor[INDEXER_KEYS].rows(p) / PAGE;   /* fp8 has as many slots */
    for (int64_t r = 0; r < p->dim[INDEXER_BATCH]; r++) {
        int64_t live = length_at(b, r) > 0 ? (length_at(b, r) + PAGE - 1) / PAGE : 0;
        for (int64_t j = 0; j < pages; j++) {
            int32_t page = table_at(b, r)[j];
            if (j >= live && p->dim[INDEXER_TAIL] != INDEXER_TAIL_UNIQUE) {
                assert_int_equal(page, p->dim[INDEXER_TAIL] == INDEXER_TAIL_MINUS1 ? -1 : 0);
                continue;
            }
            assert_in_range(page, 1, cache - 1);
            assert_int_equal(seen[page], 0);
            seen[page] = 1;
        }
    }
}

static void tables_keep_their_promises(void **state)
{
    (void)state;
    const int64_t contexts[][2] = {{0, 0}, {3, 1000}, {4, 4}, {8192, 8192}, {2052, 100000}};
    for (int o = 0; o < 2; o++)
        for (int c = 0; c < 5; c++)
            for (int tail = 0; tail < 3; tail++)
                for (int s = 0; s < 4; s++) {
                    const struct op *op = o ? &op_indexer_fp8 : &op_indexer;
                    struct problem p = problem(op, 3, contexts[c][0], contexts[c][1], tail, s & 1);
                    assert_null(op->invalid(&p));
                    struct bound b = {.p = p};
                    for (int t = INDEXER_PAGE_TABLE; t <= INDEXER_LENGTH; t++) {
                        b.dense[t] = bind_memory((size_t)(3 * op->tensor[t].row_bytes(&p)), 0);
                        op->fill(&p, t, s & 2 ? CHECK_SET : 5, 0, 3, b.dense[t]);
                    }
                    uint8_t *seen = calloc((size_t)op_indexer.tensor[INDEXER_KEYS].rows(&p), 1);
                    check_table(&b, seen);
                    free(seen);
                    for (int t = INDEXER_PAGE_TABLE; t <= INDEXER_LENGTH; t++) free(b.dense[t]);
                }
}

/* Rows of keys that a set touches: ascending, distinct, exactly those of live entries. */
static int64_t touched_of(const struct problem *p, uint32_t set, int64_t **ret)
{
    void   *t[MAX_TENSORS] = {0};
    int64_t batch = p->dim[INDEXER_BATCH], n;
    for (int i = INDEXER_PAGE_TABLE; i <= INDEXER_LENGTH; i++) {
        t[i] = bind_memory((size_t)(batch * p->op->tensor[i].row_bytes(p)), 0);
        p->op->fill(p, i, set, 0, batch, t[i]);
    }
    const struct tensor *keys = &p->op->tensor[INDEXER_KEYS];
    *ret = calloc((size_t)keys->touched(p, t, NULL) + 1, sizeof **ret);
    n = keys->touched(p, t, *ret);
    assert_true(n <= keys->touched(p, t, NULL));
    for (int64_t i = 0; i < n; i++) {
        assert_in_range((*ret)[i], 0, keys->rows(p) - 1);
        if (i) assert_true((*ret)[i] > (*ret)[i - 1]);
    }
    for (int i = INDEXER_PAGE_TABLE; i <= INDEXER_LENGTH; i++) free(t[i]);
    return n;
}

static void touched_are_the_live_entries(void **state)
{
    (void)state;
    int64_t       *row;
    struct problem p = problem(&op_indexer, 2, 4 * 100, 1000, INDEXER_TAIL_UNIQUE, 0);
    assert_int_equal(touched_of(&p, 0, &row), 200);
    for (int i = 0; i < 200; i++) assert_true(row[i] % PAGE < (row[i] / PAGE == row[0] / PAGE ? PAGE : 100));
    free(row);
    p.op = &op_indexer_fp8;   /* 64 + 36 codes, 2 + 2 scales, twice */
    assert_int_equal(touched_of(&p, 0, &row), 208);
    for (int i = 0; i < 208; i++) assert_true(row[i] >= 66);   /* page 0 is never used */
    free(row);
}

/* Sets that live in one copy touch different rows of it and see the same bytes there. */
static void sets_share_a_copy(void **state)
{
    (void)state;
    for (int o = 0; o < 2; o++) {
        const struct op *op = o ? &op_indexer_fp8 : &op_indexer;
        struct problem p = problem(op, 3, 520, 8192, INDEXER_TAIL_UNIQUE, 0);
        const struct tensor *keys = &op->tensor[INDEXER_KEYS];
        int64_t share = keys->share(&p), rows = keys->rows(&p), bytes = keys->row_bytes(&p);
        assert_int_equal(share, 33 / 3);
        uint8_t *seen = calloc((size_t)rows, 1);
        char     one[256], two[256], other[256];
        for (uint32_t set = 0; set < share; set++) {
            int64_t *row, n = touched_of(&p, (uint32_t)share + set, &row);
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal(seen[row[i]], 0);
                seen[row[i]] = 1;
            }
            op->fill(&p, INDEXER_KEYS, (uint32_t)share, row[n / 2], 1, one);
            op->fill(&p, INDEXER_KEYS, (uint32_t)share + set, row[n / 2], 1, two);
            op->fill(&p, INDEXER_KEYS, 0, row[n / 2], 1, other);
            assert_memory_equal(one, two, (size_t)bytes);
            assert_memory_not_equal(one, other, (size_t)bytes);
            free(row);
        }
        free(seen);
        p.dim[INDEXER_TAIL] = INDEXER_TAIL_PAGE0;
        assert_int_equal(keys->share(&p), 1);
        assert_true(keys->rows(&p) < rows);
    }
}

/* Any part of any tensor can be made alone. */
static void parts_equal_the_whole(void **state)
{
    (void)state;
    for (int o = 0; o < 2; o++) {
        struct problem p = problem(o ? &op_indexer_fp8 : &op_indexer, 3, 700, 2000, 0, 1);
        for (int t = 0; t < INDEXER_LOGITS; t++) {
            int64_t rows = p.op->tensor[t].rows(&p), bytes = p.op->tensor[t].row_bytes(&p);
            char *whole = calloc((size_t)rows, (size_t)bytes), *part = calloc((size_t)rows, (size_t)bytes);
            p.op->fill(&p, t, 2, 0, rows, whole);
            for (int64_t r = rows - 1; r >= 0; r--) p.op->fill(&p, t, 2, r, 1, part + r * bytes);
            assert_memory_equal(whole, part, (size_t)(rows * bytes));
            free(whole);
            free(part);
        }
    }
}

/* Straight from the header, one entry and head at a time. */
static double naive_score(const struct bound *b, int64_t r, int64_t e)
{
    const float *w = (float *)b->dense[INDEXER_W] + r * HEADS;
    int64_t      page = table_at(b, r)[e / PAGE], o = e % PAGE;
    double       score = 0;
    for (int h = 0; h < HEADS; h++) {
        double dot = 0;
        for (int d = 0; d < D; d++) {
            int64_t at = (r * HEADS + h) * D + d;
            if (b->p.op == &op_indexer) {
                double key = dtype_load(BF16, b->dense[INDEXER_KEYS], (page * PAGE + o) * D + d);
                dot += dtype_load(BF16, b->dense[INDEXER_Q], at) * key;
            } else {
                const uint8_t *base = (uint8_t *)b->dense[INDEXER_KEYS] + page * INDEXER_FP8_PAGE_BYTES;
                float scale;
                memcpy(&scale, base + 64 * 128 + o * 4, 4);
                dot += dtype_load(E4M3, b->dense[INDEXER_Q], at) * scale * f64_from_e4m3(base[o * 128 + d]);
            }
        }
        score += dot > 0 ? dot * w[h] : 0;
    }
    return score;
}

static void references_agree_with_the_formula(void **state)
{
    (void)state;
    for (int o = 0; o < 2; o++)
        for (uint32_t check = 0; check < 2; check++) {
            struct problem p = problem(o ? &op_indexer_fp8 : &op_indexer, 12, 2200, 3000, check, 1);
            struct bound   b = bind_problem(&p, check ? CHECK_SET : 1, 0);
            int64_t width = indexer_width(3000);
            for (int64_t r = 0; r < 12; r++) {
                const double *row = (double *)b.dense[INDEXER_LOGITS] + r * width;
                for (int64_t e = 0; e < width; e++) {
                    bool live = e < length_at(&b, r);
                    assert_int_equal(is_unspecified(row[e]), !live);
                    if (live && e % 7 == r % 7) assert_true(fabs(row[e] - naive_score(&b, r, e)) <= 1e-10 * fabs(row[e]) + 1e-12);
                }
            }
            bind_free(&b);
        }
}

/* Scores of each fourth request are 0 or less, of the others both. */
static void scores_have_both_signs(void **state)
{
    (void)state;
    for (int o = 0; o < 2; o++)
        for (uint32_t check = 0; check < 2; check++) {
            struct problem p = problem(o ? &op_indexer_fp8 : &op_indexer, 8, 4096, 4096, 0, 0);
            struct bound   b = bind_problem(&p, check ? CHECK_SET : 0, 0);
            int            negative_requests = 0;
            for (int64_t r = 0; r < 8; r++) {
                const double *row = (double *)b.dense[INDEXER_LOGITS] + r * indexer_width(4096);
                int64_t above = 0, below = 0;
                for (int64_t e = 0; e < length_at(&b, r); e++) {
                    above += row[e] > 0;
                    below += row[e] < 0;
                    assert_true(fabs(row[e]) < 100);
                }
                bool negative = (r + (check ? 3 : 0)) % 4 == 3;
                negative_requests += negative;
                if (negative) assert_int_equal(above, 0);
                if (length_at(&b, r) > 60) assert_true(below > 0 || !negative);
            }
            assert_int_equal(negative_requests, 2);
            bind_free(&b);
        }
}

/* Codes of every kind, scales that are no powers of two, NaN only where nothing is live. */
static void fp8_pages_are_as_described(void **state)
{
    (void)state;
    struct problem p = problem(&op_indexer_fp8, 2, 4 * 1000, 4096, 0, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    int64_t subnormal = 0, powers = 0, dead = 0;
    assert_int_equal(INDEXER_FP8_PAGE_BYTES, 132 * 64);
    assert_int_equal(op_indexer_fp8.tensor[INDEXER_KEYS].rows(&p) * INDEXER_FP8_PIECE, (2 * 16 + 1) * 8448);
    for (int64_t r = 0; r < 2; r++)
        for (int64_t e = 0; e < 1024; e++) {
            const uint8_t *page = (uint8_t *)b.dense[INDEXER_KEYS] + table_at(&b, r)[e / PAGE] * (int64_t)INDEXER_FP8_PAGE_BYTES;
            float scale;
            int   exponent;
            memcpy(&scale, page + INDEXER_FP8_SCALES + e % PAGE * 4, 4);
            for (int d = 0; d < D; d++) {
                uint8_t code = page[e % PAGE * D + d];
                subnormal += (code & 0x7f) > 0 && (code & 0x7f) < 8;
                assert_int_equal((code & 0x7f) == 0x7f, e >= 1000);
            }
            dead += e >= 1000;
            if (e < 1000) assert_true(scale > 0 && scale < 1000);
            powers += e < 1000 && frexpf(scale, &exponent) == 0.5f;
        }
    assert_true(subnormal > 1000);
    assert_true(powers < 10);
    assert_int_equal(dead, 48);
    bind_free(&b);
}

static void work_is_by_actual_lengths(void **state)
{
    (void)state;
    struct problem p = problem(&op_indexer, 2, 4 * 100, 1 << 20, 0, 0);
    int32_t        length[2] = {100, -1}, page[2 * 4097] = {1, 2};
    void          *t[MAX_TENSORS] = {[INDEXER_LENGTH] = length, [INDEXER_PAGE_TABLE] = page};
    assert_true(op_indexer.flop(&p, t) == 100.0 * 64 * 129 * 2);
    assert_true(op_indexer.bytes(&p, t, 1 << INDEXER_KEYS) == 100 * (256 + 4));
    assert_true(op_indexer.bytes(&p, t, 0) == 100 * (256 + 4) + 2 * (64 * 256 + 256 + 4) + 2 * 4);
    p.op = &op_indexer_fp8;
    assert_true(op_indexer_fp8.bytes(&p, t, 1 << INDEXER_KEYS) == 100 * (132 + 4));
    assert_true(op_indexer_fp8.bytes(&p, t, 0) == 100 * (132 + 4) + 2 * (64 * 128 + 256 + 4) + 2 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_are_the_headers), cmocka_unit_test(widths_are_those_of_servers),
        cmocka_unit_test(refuses_with_both_numbers), cmocka_unit_test(ragged_lengths_have_the_edges),
        cmocka_unit_test(lengths_of_check_sets_differ), cmocka_unit_test(tables_keep_their_promises),
        cmocka_unit_test(touched_are_the_live_entries), cmocka_unit_test(sets_share_a_copy),
        cmocka_unit_test(parts_equal_the_whole), cmocka_unit_test(references_agree_with_the_formula),
        cmocka_unit_test(scores_have_both_signs), cmocka_unit_test(fp8_pages_are_as_described),
        cmocka_unit_test(work_is_by_actual_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The op attn_fp8: its pages are laid out and filled as its header says, and its reference is attn's over the decoded entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attn_fp8.h"
#include "bind.h"
#include "fp8_pages.h"
#include "registry.h"

extern const struct op op_attn, op_attn_fp8;

enum { D = ATTN_D, PIECE = ATTN_FP8_PIECE };

/* batch, heads, ctx, window, topk, ratio, ragged, window_page, topk_page */
static const struct problem cases[] = {
    {&op_attn_fp8, {5, 8, 3000, 128, 512, 4, 0, 64, 64}, 7}, {&op_attn_fp8, {5, 8, 3000, 128, 512, 4, 1, 256, 64}, 7},
    {&op_attn_fp8, {9, 8, 3000, 100, 70, 1, 1, 64, 256}, 7}, {&op_attn_fp8, {3, 8, 9000, 128, 100, 128, 1, 64, 2}, 7},
    {&op_attn_fp8, {3, 8, 1000, 0, 512, 4, 1, 2, 64}, 7},    {&op_attn_fp8, {3, 8, 50, 128, 0, 4, 1, 256, 256}, 7},
    {&op_attn_fp8, {2, 8, 0, 128, 512, 4, 0, 64, 64}, 7},    {&op_attn_fp8, {1, 8, 77, 64, 33, 1, 1, 2, 2}, 7},
};
enum { CASES = sizeof cases / sizeof *cases };

static int64_t page_of(const struct problem *p, int list) { return p->dim[ATTN_FP8_WINDOW_PAGE + list]; }

static void layout_is_the_headers(void **state)
{
    (void)state;
    assert_true(layout_hash(&op_attn_fp8) == attn_fp8_layout);
    for (int i = 0; i <= ATTN_RAGGED; i++) assert_string_equal(op_attn_fp8.dim[i].name, op_attn.dim[i].name);
    for (int t = 0; t <= ATTN_LSE; t++) assert_string_equal(op_attn_fp8.tensor[t].name, op_attn.tensor[t].name);
    assert_string_equal(op_attn_fp8.dim[ATTN_FP8_WINDOW_PAGE].name, "window_page");
    assert_string_equal(op_attn_fp8.dim[ATTN_FP8_TOPK_PAGE].name, "topk_page");
    assert_null(op_attn_fp8.dim[ATTN_FP8_TOPK_PAGE + 1].name);
    for (int i = 0; op_attn_fp8.dim[i].name; i++)
        assert_in_range(op_attn_fp8.dim[i].dflt, op_attn_fp8.dim[i].min, op_attn_fp8.dim[i].max);
}

static void pages_have_the_served_sizes(void **state)
{
    (void)state;
    assert_int_equal(attn_fp8_page_bytes(64), 37440);
    assert_int_equal(attn_fp8_page_bytes(256), 149760);
    assert_int_equal(attn_fp8_page_bytes(2), 1728);
    for (int c = 0; c < CASES; c++)
        for (int list = 0; list < 2; list++) {
            const struct tensor *kv = &op_attn_fp8.tensor[ATTN_WINDOW_KV + list];
            assert_int_equal(kv->row_bytes(&cases[c]), 64);
            assert_int_equal(kv->rows(&cases[c]) * 64 % attn_fp8_page_bytes(page_of(&cases[c], list)), 0);
        }
}

static void refuses_other_pages(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) assert_null(op_attn_fp8.invalid(&cases[c]));
    for (int list = 0; list < 2; list++)
        for (int64_t page = 2; page <= 256; page++) {
            struct problem p = cases[0];
            p.dim[ATTN_FP8_WINDOW_PAGE + list] = page;
            const char *why = op_attn_fp8.invalid(&p);
            assert_int_equal(!why, page == 2 || page == 64 || page == 256);
            if (why) assert_non_null(strstr(why, list ? "topk_page" : "window_page"));
        }
    struct problem p = cases[0];
    p.dim[ATTN_WINDOW] = p.dim[ATTN_TOPK] = 0;
    assert_non_null(op_attn_fp8.invalid(&p));
}

/* All bytes of the entries that the lists name lie in touched pieces, and no piece is touched for nothing. */
static void touched_pieces_hold_the_slots(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        const struct problem *p = &cases[c];
        struct bound b = bind_problem(p, 3, 0);
        for (int list = 0; list < 2; list++) {
            const struct tensor *kv = &op_attn_fp8.tensor[ATTN_WINDOW_KV + list];
            int64_t  rows = kv->rows(p), page = page_of(p, list), next = 0;
            int64_t  width = op_attn_fp8.tensor[ATTN_WINDOW_SLOT + list].row_bytes(p) / 4;
            uint8_t *want = calloc((size_t)rows, 1);
            for (int64_t r = 0; r < p->dim[ATTN_BATCH]; r++)
                for (int32_t i = 0; i < ((int32_t *)b.dense[ATTN_LENGTH])[r * 2 + list]; i++) {
                    int32_t slot = ((int32_t *)b.dense[ATTN_WINDOW_SLOT + list])[r * width + i];
                    if (slot == -1) continue;
                    assert_in_range(slot, page, rows * 64 / attn_fp8_page_bytes(page) * page - 1);
                    for (int piece = 0; piece < 9; piece++) want[fp8_data_at(page, slot) / 64 + piece] = 1;
                    want[fp8_scales_at(page, slot) / 64] = 1;
                }
            int64_t *got = calloc((size_t)kv->touched(p, b.dense, NULL) + 1, sizeof *got), n = kv->touched(p, b.dense, got);
            for (int64_t r = 0; r < rows; r++)
                if (want[r]) assert_int_equal(next < n ? got[next++] : -1, r);
            assert_int_equal(next, n);
            assert_true(n <= kv->touched(p, NULL, NULL));
            free(got);
            free(want);
        }
        bind_free(&b);
    }
}

/* Sets in one copy see the same bytes, and neither data nor scales of one lie in a piece of another: what is cold stays cold. */
static void sets_that_share_keep_apart(void **state)
{
    (void)state;
    const struct problem sharing[] = {
        {&op_attn_fp8, {3, 8, 4 * 8 * 320, 8, 64, 4, 0, 64, 64}, 7}, {&op_attn_fp8, {2, 8, 8003, 0, 170, 2, 0, 64, 256}, 7},
        {&op_attn_fp8, {2, 8, 9000, 0, 10, 128, 0, 64, 2}, 7},
    };
    const int64_t shares[] = {5, 2, 3};
    for (int c = 0; c < 3; c++) {
        const struct problem *p = &sharing[c];
        const struct tensor  *kv = &op_attn_fp8.tensor[ATTN_TOPK_KV];
        int64_t   n = p->dim[ATTN_BATCH] * p->dim[ATTN_TOPK], rows = kv->rows(p);
        uint32_t *owner = calloc((size_t)rows, sizeof *owner), share = (uint32_t)kv->share(p);
        uint8_t   one[PIECE], other[PIECE];
        void     *t[MAX_TENSORS] = {0};
        int64_t  *piece = calloc((size_t)n * 10, sizeof *piece);
        assert_int_equal(share, shares[c]);
        for (uint32_t set = share; set < 2 * share; set++) {
            for (int i = ATTN_WINDOW_SLOT; i <= ATTN_LENGTH; i++) {
                t[i] = calloc((size_t)op_attn_fp8.tensor[i].rows(p), (size_t)op_attn_fp8.tensor[i].row_bytes(p));
                op_attn_fp8.fill(p, i, set, 0, op_attn_fp8.tensor[i].rows(p), t[i]);
            }
            int64_t pieces = kv->touched(p, t, piece);
            for (int64_t i = 0; i < pieces; i++) {
                assert_int_equal(owner[piece[i]], 0);
                owner[piece[i]] = set;
                op_attn_fp8.fill(p, ATTN_TOPK_KV, share, piece[i], 1, one);
                op_attn_fp8.fill(p, ATTN_TOPK_KV, set, piece[i], 1, other);
                assert_memory_equal(one, other, PIECE);
            }
            op_attn_fp8.fill(p, ATTN_TOPK_KV, 2 * share, piece[0], 1, other);
            op_attn_fp8.fill(p, ATTN_TOPK_KV, share, piece[0], 1, one);
            assert_memory_not_equal(one, other, PIECE);
            for (int i = ATTN_WINDOW_SLOT; i <= ATTN_LENGTH; i++) free(t[i]);
        }
        free(piece);
        free(owner);
    }
}

static int by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The set that is for checks alone: shorter requests than its problem has elsewhere, whatever the sizes; slots in the cache, none
 * twice, and other lengths than set 0. */
static void check_set_differs_in_lengths(void **state)
{
    (void)state;
    const int64_t ctxs[] = {100, 2047, 2052, 8192, 16400, 40000, 131072, 1 << 20}, batches[] = {1, 2, 5, 16};
    for (int c = 0; c < 8 * 4; c++) {
        struct problem p = {&op_attn_fp8, {batches[c % 4], 8, ctxs[c / 4], 16, 512, 4, 0, 64, 64}, 3};
        const struct tensor *slots = &op_attn_fp8.tensor[ATTN_TOPK_SLOT];
        int32_t *slot = calloc((size_t)p.dim[ATTN_BATCH], 512 * 4), length[2][16][2];
        op_attn_fp8.fill(&p, ATTN_TOPK_SLOT, CHECK_SET, 0, slots->rows(&p), slot);
        op_attn_fp8.fill(&p, ATTN_LENGTH, CHECK_SET, 0, p.dim[ATTN_BATCH], length[0]);
        op_attn_fp8.fill(&p, ATTN_LENGTH, 0, 0, p.dim[ATTN_BATCH], length[1]);
        int other = 0;
        for (int64_t b = 0; b < p.dim[ATTN_BATCH]; b++) {
            int32_t *list = slot + b * 512, n = length[0][b][1];
            other += memcmp(length[0][b], length[1][b], sizeof length[0][b]) != 0;
            qsort(list, (size_t)n, sizeof *list, by_value);
            for (int32_t i = 0; i < n; i++) {
                if (list[i] < 0) continue;
                assert_in_range(list[i], 64, op_attn_fp8.tensor[ATTN_TOPK_KV].rows(&p) / 585 * 64);
                if (i) assert_int_not_equal(list[i], list[i - 1]);
            }
        }
        assert_true(other > 0);
        free(slot);
    }
}

/* Any piece alone is the same as in the whole. */
static void fill_is_pure(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++)
        for (int t = 0; t < ATTN_OUT; t++) {
            int64_t rows = op_attn_fp8.tensor[t].rows(&cases[c]), bytes = op_attn_fp8.tensor[t].row_bytes(&cases[c]);
            char   *whole = calloc((size_t)rows, (size_t)bytes), *one = calloc(1, (size_t)bytes);
            op_attn_fp8.fill(&cases[c], t, 5, 0, rows, whole);
            for (int64_t r = 0; r < rows; r += 1 + rows / 700) {
                op_attn_fp8.fill(&cases[c], t, 5, r, 1, one);
                assert_memory_equal(one, whole + r * bytes, (size_t)bytes);
            }
            free(one);
            free(whole);
        }
}

/* Nearly every group holds what quantising its values by the model's rule gives; the others are coarse on purpose. */
static void groups_look_quantised(void **state)
{
    (void)state;
    struct problem p = {&op_attn_fp8, {2, 8, 4096, 128, 512, 4, 0, 64, 64}, 3};
    int64_t  rows = op_attn_fp8.tensor[ATTN_TOPK_KV].rows(&p), groups = rows * 64 / 37440 * 64 * 7, coarse = 0, same = 0;
    uint8_t *cache = bind_memory((size_t)rows * 64, 0);
    double   squares = 0;
    op_attn_fp8.fill(&p, ATTN_TOPK_KV, 1, 0, rows, cache);
    for (int64_t i = 0; i < groups; i++) {
        int64_t        slot = i / 7, g = i % 7;
        const uint8_t *code = cache + fp8_data_at(64, slot) + g * 64, scale = cache[fp8_scales_at(64, slot) + g];
        double         most = 1e-4;
        bool           equal = true;
        for (int d = 0; d < 64; d++) {
            double x = fp8_value(cache, 64, slot, (int)g * 64 + d);
            most = fmax(most, fabs(x));
            squares += x * x;
        }
        uint8_t rule = ue8m0_ceil(most / 448);
        for (int d = 0; d < 64; d++)
            equal &= (e4m3_from_f64(fp8_value(cache, 64, slot, (int)g * 64 + d) / f64_from_ue8m0(rule)) == code[d]);
        coarse += scale == 134;
        same += scale == rule && equal;
        assert_int_equal(cache[fp8_scales_at(64, slot) + 7], 0xff);
    }
    for (int64_t at = 0; at < rows * 64; at += 37440)
        for (int i = 37376; i < 37440; i++) assert_int_equal(cache[at + i], 0xff);
    assert_true(fabs((double)coarse / (double)groups - 1 / 16.0) < 0.01);
    assert_true((double)(same + coarse) / (double)groups > 0.98);
    assert_true(fabs(squares / (double)(groups * 64) - 1) < 0.02);
    free(cache);
}

static void logits_have_a_deviation_of_two(void **state)
{
    (void)state;
    struct problem p = {&op_attn_fp8, {4, 64, 8192, 0, 512, 4, 0, 64, 64}, 5};
    struct bound   b = bind_problem(&p, 0, 0);
    double squares = 0;
    int    n = 0;
    for (int item = 0; item < 4 * 64; item += 3)
        for (int i = 0; i < 512; i += 7, n++) {
            int32_t slot = ((int32_t *)b.dense[ATTN_TOPK_SLOT])[item / 64 * 512 + i];
            double  s = 0;
            for (int d = 0; d < D; d++)
                s += dtype_load(BF16, b.dense[ATTN_Q], item * D + d) * fp8_value(b.dense[ATTN_TOPK_KV], 64, slot, d);
            squares += s * s / D;
        }
    assert_true(fabs(sqrt(squares / n) - 2) < 0.1);
    bind_free(&b);
}

/* With one entry and no sink, out is that entry: every code under scales small, large, 2^-127 and NaN. */
static void reference_decodes_every_code(void **state)
{
    (void)state;
    const uint8_t scales[] = {0, 1, 9, 10, 100, 127, 133, 200, 246, 254, 255};
    struct problem p = {&op_attn_fp8, {1, 8, 4, 0, 1, 4, 0, 64, 64}, 1};
    struct bound   b = bind_problem(&p, 0, 0);
    int32_t  slot = *(int32_t *)b.dense[ATTN_TOPK_SLOT];
    uint8_t *cache = b.dense[ATTN_TOPK_KV], *data = cache + fp8_data_at(64, slot), *scale = cache + fp8_scales_at(64, slot);
    for (int h = 0; h < 8; h++) ((float *)b.dense[ATTN_SINK])[h] = -INFINITY;
    for (int s = 0; s < (int)sizeof scales; s++)
        for (int shift = 0; shift < 256; shift += 32) {
            for (int d = 0; d < 448; d++) data[d] = (uint8_t)((d + shift) % 256 % 128 == 127 ? 0 : d + shift);
            for (int g = 0; g < 7; g++) scale[g] = g % 2 ? scales[s] : 127;
            op_attn_fp8.reference(&p, b.dense, 0, 1);
            for (int d = 0; d < D; d++) {
                double got = ((double *)b.dense[ATTN_OUT])[3 * D + d], want = fp8_value(cache, 64, slot, d);
                if (scales[s] == 255 && d / 64 % 2 && d < 448) assert_true(isnan(got));
                if (scales[s] != 255) assert_true(got == want);
            }
        }
    memset(scale, 127, 7);
    data[100] = 0x7f;
    op_attn_fp8.reference(&p, b.dense, 0, 1);
    assert_true(isnan(((double *)b.dense[ATTN_OUT])[100]));
    bind_free(&b);
}

/* The same numbers as bf16 rows, position by position of the lists, give the same result to the last bit. */
static void equals_attn_on_decoded_rows(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        struct problem p = cases[c];
        p.dim[ATTN_RAGGED] = 1;   /* sets that share a cache would choose other entries */
        struct problem q = {&op_attn, {0}, p.seed};
        memcpy(q.dim, p.dim, (ATTN_RAGGED + 1) * sizeof *q.dim);
        struct bound a = bind_problem(&p, 2, 0), b = bind_problem(&q, 2, 0);
        for (int list = 0; list < 2; list++) {
            int64_t page = page_of(&p, list), width = op_attn.tensor[ATTN_WINDOW_SLOT + list].row_bytes(&q) / 4;
            for (int64_t i = 0; i < p.dim[ATTN_BATCH] * width; i++) {
                if (i % width >= ((int32_t *)a.dense[ATTN_LENGTH])[i / width * 2 + list]) continue;
                int32_t from = ((int32_t *)a.dense[ATTN_WINDOW_SLOT + list])[i];
                int32_t to = ((int32_t *)b.dense[ATTN_WINDOW_SLOT + list])[i];
                assert_int_equal(from == -1, to == -1);
                for (int d = 0; d < D && to >= 0; d++) {
                    double   x = fp8_value(a.dense[ATTN_WINDOW_KV + list], page, from, d);
                    uint16_t bf16 = bf16_from_f64(x);
                    assert_true(dtype_load(BF16, &bf16, 0) == x);
                    ((uint16_t *)b.dense[ATTN_WINDOW_KV + list])[(int64_t)to * D + d] = bf16;
                }
            }
        }
        bind_spread(&b);
        int64_t items = p.dim[ATTN_BATCH] * p.dim[ATTN_HEADS];
        assert_memory_equal(a.dense[ATTN_OUT], b.dense[ATTN_OUT], (size_t)(items * D) * 8);
        assert_memory_equal(a.dense[ATTN_LSE], b.dense[ATTN_LSE], (size_t)items * 8);
        bind_free(&b);
        bind_free(&a);
    }
}

/* By hand: 584 bytes for each distinct entry, whatever pieces it lies in. */
static void cost_is_counted(void **state)
{
    (void)state;
    struct problem p = {&op_attn_fp8, {2, 8, 400, 16, 20, 4, 0, 64, 2}, 7};
    struct bound   b = bind_problem(&p, 1, 0);
    int32_t *window = b.dense[ATTN_WINDOW_SLOT], *topk = b.dense[ATTN_TOPK_SLOT];
    window[3] = topk[5] = topk[30] = -1;
    topk[7] = topk[6];
    assert_true(op_attn_fp8.flop(&p, b.dense) == 4.0 * 512 * 8 * (2 * 36 - 3));
    double outputs = 2 * 8 * (1024 + 4), q = 2 * 8 * 1024, lengths = 16, sink = 32, slots = 2 * 36 * 4;
    double entries = (2 * 36 - 4) * 584.0;
    assert_true(op_attn_fp8.bytes(&p, b.dense, 0) == outputs + q + lengths + sink + slots + entries);
    assert_true(op_attn_fp8.bytes(&p, b.dense, 1 << ATTN_TOPK_KV) == outputs + (2 * 20 - 3) * 584.0);
    bind_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_the_headers), cmocka_unit_test(pages_have_the_served_sizes),
        cmocka_unit_test(refuses_other_pages), cmocka_unit_test(touched_pieces_hold_the_slots),
        cmocka_unit_test(sets_that_share_keep_apart), cmocka_unit_test(check_set_differs_in_lengths),
            cmocka_unit_test(fill_is_pure), cmocka_unit_test(groups_look_quantised),
        cmocka_unit_test(logits_have_a_deviation_of_two), cmocka_unit_test(reference_decodes_every_code),
        cmocka_unit_test(equals_attn_on_decoded_rows), cmocka_unit_test(cost_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

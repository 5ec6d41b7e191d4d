/* The op attn: its inputs keep their promises, and its reference agrees with a naive computation and with properties that any
 * right one has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attn.h"
#include "bind.h"

extern const struct op op_attn;

enum { D = ATTN_D };

static struct problem problem(int64_t batch, int64_t heads, int64_t ctx, int64_t window, int64_t topk, int64_t ratio,
    int64_t ragged)
{
    return (struct problem){&op_attn, {batch, heads, ctx, window, topk, ratio, ragged}, 7};
}

static uint64_t hash_bytes(uint64_t hash, const char *name, int n, ...)
{
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
    hash = hash * 0x100000001b3u;   /* the 0 that ends a name */
    va_list bytes;
    va_start(bytes, n);
    for (; n > 0; n--) hash = (hash ^ (uint8_t)va_arg(bytes, int)) * 0x100000001b3u;
    va_end(bytes);
    return hash;
}

static void layout_is_the_headers(void **state)
{
    (void)state;
    uint64_t hash = 0xcbf29ce484222325u;
    int dims = 0, tensors = 0;
    for (; op_attn.dim[dims].name; dims++) hash = hash_bytes(hash, op_attn.dim[dims].name, 0);
    hash = (hash ^ 1) * 0x100000001b3u;
    for (; op_attn.tensor[tensors].name; tensors++)
        hash = hash_bytes(hash, op_attn.tensor[tensors].name, 2, (int)op_attn.tensor[tensors].dtype,
            (int)op_attn.tensor[tensors].role);
    assert_int_equal(dims, ATTN_RAGGED + 1);
    assert_int_equal(tensors, ATTN_LSE + 1);
    assert_true(hash == attn_layout);
}

static void defaults_lie_in_range(void **state)
{
    (void)state;
    for (int i = 0; op_attn.dim[i].name; i++) assert_in_range(op_attn.dim[i].dflt, op_attn.dim[i].min, op_attn.dim[i].max);
}

static void refuses_what_makes_no_problem(void **state)
{
    (void)state;
    struct problem p = problem(4, 16, 1000, 0, 0, 4, 0);
    assert_non_null(op_attn.invalid(&p));
    p = problem(4, 16, 1000, 0, 1, 4, 0);
    assert_null(op_attn.invalid(&p));
    p = problem(4096, 16, 1 << 20, 128, 512, 1, 0);
    assert_non_null(op_attn.invalid(&p));
    p = problem(128, 16, 1 << 20, 128, 512, 4, 0);
    assert_null(op_attn.invalid(&p));
}

/* Length 0, 1 and ctx are among ragged requests; lists are as long as length says and hold what a request may look at. */
static void slots_keep_their_promises(void **state)
{
    (void)state;
    const struct problem cases[] = {
        problem(5, 8, 3000, 128, 512, 4, 0), problem(5, 8, 3000, 128, 512, 4, 1), problem(9, 8, 3000, 100, 70, 1, 1),
        problem(3, 8, 1000, 0, 512, 4, 1), problem(3, 8, 50, 128, 0, 4, 1), problem(2, 8, 0, 128, 512, 4, 0),
        problem(1, 8, 77, 64, 33, 1, 1), problem(3, 8, 65, 1, 1, 1, 0),
    };
    for (int c = 0; c < (int)(sizeof cases / sizeof *cases); c++) {
        const struct problem *p = &cases[c];
        struct bound b = bind_problem(p, 3, 0);
        int64_t batch = p->dim[ATTN_BATCH], full = 0, empty = 0, single = 0, holes = 0, past = 0, counted = 0;
        for (int list = 0; list < 2; list++) {
            int64_t width = op_attn.tensor[ATTN_WINDOW_SLOT + list].row_bytes(p) / 4, dim = p->dim[ATTN_WINDOW + list];
            int64_t rows = op_attn.tensor[ATTN_WINDOW_KV + list].rows(p);
            uint8_t *seen = calloc((size_t)rows, 1);
            assert_int_equal(width, dim ? dim : 1);
            for (int64_t r = 0; r < batch; r++) {
                const int32_t *slot = (int32_t *)b.dense[ATTN_WINDOW_SLOT + list] + r * width;
                int32_t length = ((int32_t *)b.dense[ATTN_LENGTH])[r * 2 + list];
                int64_t most = list ? p->dim[ATTN_CTX] / p->dim[ATTN_RATIO] : p->dim[ATTN_CTX];
                assert_in_range(length, 0, most < dim ? most : dim);
                if (!p->dim[ATTN_RAGGED]) assert_int_equal(length, most < dim ? most : dim);
                full += length == (most < dim ? most : dim);
                empty += length == 0;
                single += list == 0 && length == 1;
                for (int32_t i = 0; i < width; i++) {
                    if (i >= length) {
                        past += slot[i] >= rows || slot[i] < ATTN_PAGE;
                    } else if (slot[i] == -1) {
                        holes++;
                    } else {
                        assert_in_range(slot[i], ATTN_PAGE, rows - 1);
                        assert_int_equal(seen[slot[i]], 0);
                        seen[slot[i]] = 1;
                    }
                    counted += i >= length;
                }
            }
            free(seen);
        }
        assert_int_equal(past, counted);
        assert_true(full > 0);
        if (p->dim[ATTN_RAGGED] && batch > 1) assert_true(empty > 0);
        if (p->dim[ATTN_RAGGED] && batch > 2 && p->dim[ATTN_WINDOW]) assert_true(single > 0);
        if (!p->dim[ATTN_RAGGED]) assert_int_equal(holes, 0);
        if (p->dim[ATTN_RAGGED] && batch > 4) assert_true(holes > 0);
        bind_free(&b);
    }
}

/* All compressed entries in order while they fit into the list. */
static void few_entries_come_in_order(void **state)
{
    (void)state;
    struct problem p = problem(3, 8, 4 * 500 + 3, 16, 512, 4, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    const int32_t *slot = b.dense[ATTN_TOPK_SLOT];
    for (int r = 0; r < 3; r++) {
        assert_int_equal(((int32_t *)b.dense[ATTN_LENGTH])[r * 2 + 1], 500);
        for (int i = 0; i < 500; i++) {
            assert_int_equal(slot[r * 512 + i] % ATTN_PAGE, i % ATTN_PAGE);
            if (i % ATTN_PAGE) assert_int_equal(slot[r * 512 + i], slot[r * 512 + i - 1] + 1);
        }
    }
    bind_free(&b);
}

static int compare_rows(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void touched_equals_the_slots(void **state)
{
    (void)state;
    struct problem p = problem(7, 8, 3000, 100, 70, 4, 1);
    struct bound   b = bind_problem(&p, 2, 0);
    ((int32_t *)b.dense[ATTN_TOPK_SLOT])[1] = ((int32_t *)b.dense[ATTN_TOPK_SLOT])[0];   /* a row named twice counts once */
    for (int list = 0; list < 2; list++) {
        const struct tensor *kv = &op_attn.tensor[ATTN_WINDOW_KV + list];
        int64_t most = kv->touched(&p, b.dense, NULL), width = p.dim[ATTN_WINDOW + list], n = 0, distinct = 0;
        assert_true(most >= 7 * width);
        int64_t *got = calloc((size_t)most, sizeof *got), *want = calloc((size_t)most, sizeof *want);
        int64_t  count = kv->touched(&p, b.dense, got);
        for (int64_t r = 0; r < 7; r++)
            for (int32_t i = 0; i < ((int32_t *)b.dense[ATTN_LENGTH])[r * 2 + list]; i++) {
                int32_t slot = ((int32_t *)b.dense[ATTN_WINDOW_SLOT + list])[r * width + i];
                if (slot != -1) want[n++] = slot;
            }
        qsort(want, (size_t)n, sizeof *want, compare_rows);
        for (int64_t i = 0; i < n; i++)
            if (i == 0 || want[i] != want[i - 1]) want[distinct++] = want[i];
        assert_int_equal(count, distinct);
        assert_memory_equal(got, want, (size_t)distinct * sizeof *got);
        free(want);
        free(got);
    }
    bind_free(&b);
}

/* The sets of one copy see the same bytes and pages, and none of them touches a row of another; all of them fill the strata. */
static void sets_that_share_are_disjoint(void **state)
{
    (void)state;
    const struct problem cases[] = {problem(3, 8, 4 * 640, 8, 128, 4, 0), problem(2, 8, 4001, 0, 170, 2, 0)};
    for (int c = 0; c < 2; c++) {
        const struct problem *p = &cases[c];
        const struct tensor  *kv = &op_attn.tensor[ATTN_TOPK_KV];
        int64_t  share = kv->share(p), rows = kv->rows(p), n = p->dim[ATTN_BATCH] * p->dim[ATTN_TOPK];
        uint8_t *seen = calloc((size_t)rows, 1);
        assert_int_equal(share, p->dim[ATTN_CTX] / p->dim[ATTN_RATIO] / p->dim[ATTN_TOPK]);
        uint16_t one[D], other[D];
        for (uint32_t set = (uint32_t)share; set < 2 * (uint32_t)share; set++) {
            int32_t *slot = calloc((size_t)n, sizeof *slot);
            op_attn.fill(p, ATTN_TOPK_SLOT, set, 0, p->dim[ATTN_BATCH], slot);
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal(seen[slot[i]], 0);
                seen[slot[i]] = 1;
            }
            free(slot);
            op_attn.fill(p, ATTN_TOPK_KV, (uint32_t)share, 100, 1, one);
            op_attn.fill(p, ATTN_TOPK_KV, set, 100, 1, other);
            assert_memory_equal(one, other, sizeof one);
        }
        op_attn.fill(p, ATTN_TOPK_KV, 2 * (uint32_t)share, 100, 1, other);
        assert_memory_not_equal(one, other, sizeof one);
        free(seen);
    }
}

/* Any range of rows gives the same bytes as the whole. */
static void fill_is_pure(void **state)
{
    (void)state;
    struct problem p = problem(4, 16, 2000, 60, 70, 4, 1);
    for (int t = 0; op_attn.tensor[t].name; t++) {
        int64_t rows = op_attn.tensor[t].rows(&p), bytes = op_attn.tensor[t].row_bytes(&p);
        if (op_attn.tensor[t].role == OUT) continue;
        char *whole = calloc((size_t)rows, (size_t)bytes), *one = calloc(1, (size_t)bytes);
        op_attn.fill(&p, t, 5, 0, rows, whole);
        for (int64_t r = 0; r < rows; r += 1 + rows / 50) {
            op_attn.fill(&p, t, 5, r, 1, one);
            assert_memory_equal(one, whole + r * bytes, (size_t)bytes);
        }
        free(one);
        free(whole);
    }
}

/* Straight from the formula, one element after the other. */
static void naive(const struct bound *b, double *ret_out, double *ret_lse)
{
    int64_t H = b->p.dim[ATTN_HEADS];
    for (int64_t item = 0; item < b->p.dim[ATTN_BATCH] * H; item++) {
        int64_t r = item / H, h = item % H;
        long double sum = 0, all, *out = calloc(D, sizeof *out);
        for (int list = 0; list < 2; list++) {
            int64_t width = op_attn.tensor[ATTN_WINDOW_SLOT + list].row_bytes(&b->p) / 4;
            for (int32_t i = 0; i < ((int32_t *)b->dense[ATTN_LENGTH])[r * 2 + list]; i++) {
                int32_t slot = ((int32_t *)b->dense[ATTN_WINDOW_SLOT + list])[r * width + i];
                if (slot == -1) continue;
                long double s = 0;
                for (int d = 0; d < D; d++)
                    s += (long double)dtype_load(BF16, b->dense[ATTN_Q], item * D + d) *
                         dtype_load(BF16, b->dense[ATTN_WINDOW_KV + list], (int64_t)slot * D + d);
                s = expl(s / sqrtl(D));
                sum += s;
                for (int d = 0; d < D; d++) out[d] += s * dtype_load(BF16, b->dense[ATTN_WINDOW_KV + list], (int64_t)slot * D + d);
            }
        }
        all = sum + expl(((float *)b->dense[ATTN_SINK])[h]);
        for (int d = 0; d < D; d++) ret_out[item * D + d] = sum > 0 ? (double)(out[d] / all) : 0;
        ret_lse[item] = (double)logl(sum);
        free(out);
    }
}

static void assert_near(const double *a, const double *b, int64_t n, double relative)
{
    for (int64_t i = 0; i < n; i++)
        if (!(a[i] == b[i] || fabs(a[i] - b[i]) <= relative * (fabs(b[i]) + 1e-3))) fail_msg("element %d: %g is not %g", (int)i,
            a[i], b[i]);
}

static void reference_equals_naive(void **state)
{
    (void)state;
    const struct problem cases[] = {
        problem(3, 8, 300, 20, 30, 4, 0), problem(6, 16, 300, 33, 31, 4, 1), problem(2, 9, 300, 0, 5, 4, 1), problem(2, 8, 50, 7,
            0, 4, 0),
        problem(1, 8, 0, 16, 16, 4, 0), problem(2, 8, 1, 16, 16, 1, 0),
    };
    for (int c = 0; c < (int)(sizeof cases / sizeof *cases); c++) {
        struct bound b = bind_problem(&cases[c], 1, 0);
        int64_t n = cases[c].dim[ATTN_BATCH] * cases[c].dim[ATTN_HEADS];
        double *out = calloc((size_t)(n * D), sizeof *out), *lse = calloc((size_t)n, sizeof *lse);
        naive(&b, out, lse);
        assert_near(b.dense[ATTN_OUT], out, n * D, 1e-12);
        assert_near(b.dense[ATTN_LSE], lse, n, 1e-12);
        free(lse);
        free(out);
        bind_free(&b);
    }
}

/* Each item alone gives what all at once give, and item_rows names the rows that it writes. */
static void items_are_independent(void **state)
{
    (void)state;
    struct problem p = problem(5, 8, 400, 20, 30, 4, 1);
    struct bound   b = bind_problem(&p, 1, 0);
    double *out = bind_memory(5 * 8 * D * 8, 0xff), *lse = bind_memory(5 * 8 * 8, 0xff);
    void   *t[MAX_TENSORS];
    memcpy(t, b.dense, sizeof t);
    t[ATTN_OUT] = out;
    t[ATTN_LSE] = lse;
    assert_int_equal(op_attn.items(&p), 5);
    for (int64_t item = 4; item >= 0; item--) {
        int64_t row, rows;
        op_attn.item_rows(&p, ATTN_OUT, item, &row, &rows);
        assert_true(row == item * 8 && rows == 8 && isnan(out[row * D]) && isnan(out[(row + rows) * D - 1]));
        op_attn.reference(&p, t, item, 1);
        assert_memory_equal(out + row * D, (double *)b.dense[ATTN_OUT] + row * D, (size_t)(rows * D) * 8);
        op_attn.item_rows(&p, ATTN_LSE, item, &row, &rows);
        assert_true(row == item && rows == 1);
        assert_memory_equal(lse + row * 8, (double *)b.dense[ATTN_LSE] + row * 8, 8 * 8);
    }
    free(lse);
    free(out);
    bind_free(&b);
}

static void set_lengths(struct bound *b, bool window, bool topk, const int32_t *of)
{
    for (int64_t r = 0; r < b->p.dim[ATTN_BATCH]; r++) {
        ((int32_t *)b->dense[ATTN_LENGTH])[r * 2] = window ? of[r * 2] : 0;
        ((int32_t *)b->dense[ATTN_LENGTH])[r * 2 + 1] = topk ? of[r * 2 + 1] : 0;
    }
    bind_spread(b);
}

/* Both caches at once equal each alone without a sink, merged by lse, with the sink applied once. */
static void halves_merge_to_the_whole(void **state)
{
    (void)state;
    struct problem p = problem(6, 16, 400, 33, 31, 4, 1);
    struct bound   half[2], whole = bind_problem(&p, 1, 0);
    for (int i = 0; i < 2; i++) {
        half[i] = bind_problem(&p, 1, 0);
        for (int h = 0; h < 16; h++) ((float *)half[i].dense[ATTN_SINK])[h] = -INFINITY;
        set_lengths(&half[i], i == 0, i == 1, whole.dense[ATTN_LENGTH]);
    }
    for (int64_t item = 0; item < 6 * 16; item++) {
        double a = ((double *)half[0].dense[ATTN_LSE])[item], b = ((double *)half[1].dense[ATTN_LSE])[item];
        double sink = ((float *)whole.dense[ATTN_SINK])[item % 16], all = exp(a) + exp(b) + exp(sink), merged[D],
            lse = log(exp(a) + exp(b));
        for (int d = 0; d < D; d++)
            merged[d] = all > 0 ? (exp(a) * ((double *)half[0].dense[ATTN_OUT])[item * D + d] +
                                   exp(b) * ((double *)half[1].dense[ATTN_OUT])[item * D + d]) / all : 0;
        assert_near(merged, (double *)whole.dense[ATTN_OUT] + item * D, D, 1e-12);
        assert_near(&lse, (double *)whole.dense[ATTN_LSE] + item, 1, 1e-12);
    }
    for (int i = 0; i < 2; i++) bind_free(&half[i]);
    bind_free(&whole);
}

/* The order of a list does not matter; nor what stands past its length. */
static void order_does_not_matter(void **state)
{
    (void)state;
    struct problem p = problem(3, 8, 2000, 16, 64, 4, 1);
    struct bound   a = bind_problem(&p, 1, 0), b = bind_problem(&p, 1, 0);
    for (int r = 0; r < 3; r++) {
        int32_t *slot = (int32_t *)b.dense[ATTN_TOPK_SLOT] + r * 64, n = ((int32_t *)b.dense[ATTN_LENGTH])[r * 2 + 1];
        for (int32_t i = 0; i < n / 2; i++) {
            int32_t swap = slot[i];
            slot[i] = slot[n - 1 - i];
            slot[n - 1 - i] = swap;
        }
        for (int32_t i = n; i < 64; i++) slot[i] = INT32_MIN + i;
    }
    bind_spread(&b);
    assert_near(b.dense[ATTN_OUT], a.dense[ATTN_OUT], 3 * 8 * D, 1e-12);
    assert_near(b.dense[ATTN_LSE], a.dense[ATTN_LSE], 3 * 8, 1e-12);
    bind_free(&a);
    bind_free(&b);
}

static void nothing_but_holes(void **state)
{
    (void)state;
    struct problem p = problem(2, 8, 400, 16, 16, 4, 0);
    struct bound   b = bind_problem(&p, 1, 0);
    memset(b.dense[ATTN_WINDOW_SLOT], 0xff, 2 * 16 * 4);
    memset(b.dense[ATTN_TOPK_SLOT], 0xff, 2 * 16 * 4);
    bind_spread(&b);
    for (int i = 0; i < 2 * 8 * D; i++) assert_true(((double *)b.dense[ATTN_OUT])[i] == 0);
    for (int i = 0; i < 2 * 8; i++) assert_true(((double *)b.dense[ATTN_LSE])[i] == -INFINITY);
    assert_true(op_attn.flop(&p, b.dense) == 0);
    bind_free(&b);
}

/* Counted by hand: 2 requests of 16 + 20 entries, 3 of them holes and one row named twice. */
static void cost_is_counted(void **state)
{
    (void)state;
    struct problem p = problem(2, 8, 400, 16, 20, 4, 0);
    struct bound   b = bind_problem(&p, 1, 0);
    int32_t *window = b.dense[ATTN_WINDOW_SLOT], *topk = b.dense[ATTN_TOPK_SLOT];
    window[3] = topk[5] = topk[30] = -1;
    topk[7] = topk[6];
    assert_true(op_attn.flop(&p, b.dense) == 4.0 * 512 * 8 * (2 * 36 - 3));
    double outputs = 2 * 8 * (1024 + 4), q = 2 * 8 * 1024, lengths = 16, sink = 32, slots = 2 * 36 * 4,
        rows = (2 * 36 - 4) * 1024.0;
    assert_true(op_attn.bytes(&p, b.dense, 0) == outputs + q + lengths + sink + slots + rows);
    assert_true(op_attn.bytes(&p, b.dense, 1 << ATTN_TOPK_KV) == outputs + (2 * 20 - 3) * 1024.0);
    bind_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_the_headers), cmocka_unit_test(defaults_lie_in_range),
        cmocka_unit_test(refuses_what_makes_no_problem), cmocka_unit_test(slots_keep_their_promises),
        cmocka_unit_test(few_entries_come_in_order), cmocka_unit_test(touched_equals_the_slots),
        cmocka_unit_test(sets_that_share_are_disjoint), cmocka_unit_test(fill_is_pure), cmocka_unit_test(reference_equals_naive),
        cmocka_unit_test(items_are_independent), cmocka_unit_test(halves_merge_to_the_whole),
        cmocka_unit_test(order_does_not_matter), cmocka_unit_test(nothing_but_holes), cmocka_unit_test(cost_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The host kernels of indexer and indexer_fp8, on every path that this processor has, against the references. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "indexer_bind.h"
#include "indexer_fp8.h"

extern const struct op op_indexer, op_indexer_fp8;
extern const struct kernel kernel_indexer_host_live, kernel_indexer_host_early_exit, kernel_indexer_host_full,
    kernel_indexer_fp8_host_live, kernel_indexer_fp8_host_full;

static const struct kernel *const kernels[] = {
    &kernel_indexer_host_live, &kernel_indexer_host_early_exit, &kernel_indexer_host_full, &kernel_indexer_fp8_host_live,
    &kernel_indexer_fp8_host_full,
};
enum { KERNELS = sizeof kernels / sizeof *kernels, PATHS = 6, PAGE = INDEXER_PAGE };

static struct problem problem(int64_t batch, int64_t ctx, int64_t max_ctx, int64_t tail, int64_t ragged)
{
    return (struct problem){&op_indexer, {batch, ctx, max_ctx, tail, ragged}, 11};
}

static bool is_for(const struct kernel *k, const struct op *op) { return !strcmp(k->op, op->name); }
static bool cleans(const struct kernel *k) { return k->promises & CLEAN; }

static int32_t threads_of(int path) { return path % 2 ? 3 : 1; }

/* One launch; false where this processor lacks the path. */
static bool runs(const struct kernel *k, const struct bound *b, int32_t path)
{
    struct device device = {.sm_count = threads_of(path), .l2_bytes = 32 << 20};
    int32_t tune[MAX_TUNABLES] = {path};
    int code = bind_launch(b, k, &device, tune);
    if (code == ENOTSUP && path > 2) return false;
    if (code) fail_msg("%s path=%d: code %d", k->name, (int)path, code);
    return true;
}

static void poison(const struct bound *b, int byte)
{
    const struct tensor *out = &b->p.op->tensor[INDEXER_LOGITS];
    memset(b->arg[INDEXER_LOGITS].p, byte, (size_t)(out->rows(&b->p) * b->arg[INDEXER_LOGITS].stride));
}

/* Every kernel of the op on every path: values, -inf or nothing past the length, and nothing between rows. */
static void check_bound(const struct bound *b, const char *what)
{
    for (int k = 0; k < KERNELS; k++)
        for (int path = 1; is_for(kernels[k], b->p.op) && path <= PATHS; path++) {
            poison(b, 0xff);
            if (!runs(kernels[k], b, path)) continue;
            double error = logits_error(b, cleans(kernels[k]) ? CLEAN_INF : UNTOUCHED);
            if (!(error < 1e-5)) fail_msg("%s path=%d, %s: error %g", kernels[k]->name, path, what, error);
        }
}

static void check(struct problem p, uint32_t set, int64_t pad)
{
    for (int fp8 = 0; fp8 < 2; fp8++) {
        char what[80];
        p.op = fp8 ? &op_indexer_fp8 : &op_indexer;
        snprintf(what, sizeof what, "batch %d, ctx %d of %d, tail %d, set %u", (int)p.dim[0], (int)p.dim[1], (int)p.dim[2],
                 (int)p.dim[3], (unsigned)set);
        struct bound b = bind_problem(&p, set, pad);
        check_bound(&b, what);
        bind_free(&b);
    }
}

/* Entries: none, one, a page less or more one, about 512, in tokens with a remainder, under each tail. */
static void contexts_of_any_length(void **state)
{
    (void)state;
    const int64_t entries[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 511, 512, 513, 1025};
    for (int i = 0; i < 14; i++) check(problem(2, entries[i] * 4 + i % 4, 5000, i % 3, 0), (uint32_t)i, i % 2 * 48);
}

/* With lengths of -1 and 0 among the others. */
static void ragged_batches(void **state)
{
    (void)state;
    for (int tail = 0; tail < 3; tail++) check(problem(16, 8192, 20000, tail, 1), 4, 16);
    check(problem(11, 3000, 3000, 1, 1), CHECK_SET, 0);
}

/* The same memory again with other lengths: what was live and is no longer must be -inf. */
static void lengths_that_shrink_leave_nothing_behind(void **state)
{
    (void)state;
    struct problem p = problem(5, 6000, 8192, 0, 0);
    struct bound   b = bind_problem(&p, 0, 16), shorter = bind_problem(&p, CHECK_SET, 16);
    for (int k = 0; k < KERNELS; k++) {
        if (!is_for(kernels[k], p.op)) continue;
        assert_true(runs(kernels[k], &b, 1));
        struct bound again = shorter;
        again.arg[INDEXER_LOGITS] = b.arg[INDEXER_LOGITS];
        assert_true(runs(kernels[k], &again, 1));
        assert_true(logits_error(&again, cleans(kernels[k]) ? CLEAN_INF : ANYTHING) < 1e-5);
    }
    bind_free(&b);
    bind_free(&shorter);
}

/* Sums don't depend on threads or on what was launched before. */
static void results_repeat_bit_by_bit(void **state)
{
    (void)state;
    struct problem p = problem(3, 9000, 9000, 0, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    size_t bytes = (size_t)(3 * b.arg[INDEXER_LOGITS].stride);
    void  *first = malloc(bytes);
    for (int k = 0; k < KERNELS; k++) {
        if (!is_for(kernels[k], p.op)) continue;
        for (int32_t threads = 1; threads <= 5; threads++) {
            struct device device = {.sm_count = threads};
            poison(&b, 0xff);
            assert_int_equal(bind_launch(&b, kernels[k], &device, (int32_t[MAX_TUNABLES]){1}), 0);
            if (threads == 1) memcpy(first, b.arg[INDEXER_LOGITS].p, bytes);
            assert_memory_equal(first, b.arg[INDEXER_LOGITS].p, bytes);
        }
    }
    free(first);
    bind_free(&b);
}

/* Pages whose bytes lie about 2^31 and 2^32 from the begin of the cache: it is mostly address space. */
static void pages_past_4_gigabytes(void **state)
{
    (void)state;
    for (int fp8 = 0; fp8 < 2; fp8++) {
        struct problem p = problem(2, 4 * 4 * PAGE, 4096, 0, 0);
        p.op = fp8 ? &op_indexer_fp8 : &op_indexer;
        struct bound  b = bind_problem(&p, 0, 0);
        const int64_t row_bytes = p.op->tensor[INDEXER_KEYS].row_bytes(&p), rows = fp8 ? 66 : PAGE, page_bytes = rows * row_bytes;
        const int64_t low = ((int64_t)1 << 31) / page_bytes, high = ((int64_t)1 << 32) / page_bytes;
        const int64_t at[4] = {low, low + 1, high, high + 3};
        const size_t bytes = (size_t)((at[3] + 5) * page_bytes);
        char *cache = sparse_memory(bytes);
        void *dense = b.dense[INDEXER_KEYS], *strided = b.arg[INDEXER_KEYS].p;
        for (int r = 0; r < 2; r++)
            for (int j = 0; j < 4; j++) {
                int64_t page = at[j] + r * 4;
                table_at(&b, r)[j] = (int32_t)page;
                p.op->fill(&p, INDEXER_KEYS, 0, page * rows, rows, cache + page * page_bytes);
            }
        b.dense[INDEXER_KEYS] = b.arg[INDEXER_KEYS].p = cache;
        for (int r = 0; r < 2; r++)   /* the table as the kernel sees it */
            memcpy((char *)b.arg[INDEXER_PAGE_TABLE].p + r * b.arg[INDEXER_PAGE_TABLE].stride, table_at(&b, r), 4 * 4);
        p.op->reference(&p, b.dense, 0, 2);
        check_bound(&b, "pages past 2^31 and 2^32 bytes");
        b.dense[INDEXER_KEYS] = dense;
        b.arg[INDEXER_KEYS].p = strided;
        bind_free(&b);
        munmap(cache, bytes);
    }
}

/* More entries than 262,208, and than the 2^18 that a selection kernel once took for the most. */
static void contexts_beyond_a_million_tokens(void **state)
{
    (void)state;
    struct problem p = problem(1, 1060000, 1100000, 0, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    assert_int_equal(length_at(&b, 0), 265000);
    for (int k = 0; k < 2; k++) {
        poison(&b, 0xff);
        assert_true(runs(kernels[k], &b, 1));
        assert_true(logits_error(&b, cleans(kernels[k]) ? CLEAN_INF : UNTOUCHED) < 1e-5);
    }
    bind_free(&b);
}

/* What a server was started for must not cost memory: 43 GB of logits once were set aside at capture. */
static void workspaces_do_not_follow_the_maximum(void **state)
{
    (void)state;
    struct device  device = {.sm_count = 4};
    struct problem narrow = problem(8, 512, 8192, 0, 0), wide = problem(8, 512, 1 << 22, 0, 0);
    size_t         a = kernel_indexer_host_live.workspace(&narrow, &device, (int32_t[4]){1});
    assert_int_equal(a, kernel_indexer_host_live.workspace(&wide, &device, (int32_t[4]){1}));
    assert_int_equal(kernel_indexer_host_full.workspace(&narrow, &device, (int32_t[4]){1}),
                     kernel_indexer_host_full.workspace(&wide, &device, (int32_t[4]){1}));
}

/* What is declared is what the code does: growth that the op does not need is said. */
static void growth_is_declared(void **state)
{
    (void)state;
    for (int k = 0; k < KERNELS; k++) {
        double max_ctx = 0;
        for (int i = 0; i < MAX_DIMS && kernels[k]->growth[i].dim; i++)
            if (!strcmp(kernels[k]->growth[i].dim, "max_ctx")) max_ctx = kernels[k]->growth[i].exponent;
        assert_true(max_ctx == (strstr(kernels[k]->name, "live") ? 0 : 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_of_any_length), cmocka_unit_test(ragged_batches),
        cmocka_unit_test(lengths_that_shrink_leave_nothing_behind), cmocka_unit_test(results_repeat_bit_by_bit),
        cmocka_unit_test(pages_past_4_gigabytes), cmocka_unit_test(contexts_beyond_a_million_tokens),
        cmocka_unit_test(workspaces_do_not_follow_the_maximum), cmocka_unit_test(growth_is_declared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

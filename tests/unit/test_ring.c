/* How long the ring of input sets is, and what lies in it: nothing of a call's inputs may still be in the last-level cache when the
 * ring comes round, however little of its tensors the leanest kernel reads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "workload.h"

enum { TABLE, WIDE, NARROW, OUTPUT, TENSORS };
enum { ROWS, WIDTH, PART, COLUMNS };
enum { READS_TABLE = 1 << TABLE, READS_WIDE = 1 << WIDE, READS_NARROW = 1 << NARROW };

static int64_t rows(const struct problem *p) { return p->dim[ROWS]; }
static int64_t table_bytes(const struct problem *p) { return p->dim[WIDTH] * 4; }
static int64_t wide_bytes(const struct problem *p) { return p->dim[COLUMNS] * 4; }
static int64_t narrow_bytes(const struct problem *p) { return p->dim[COLUMNS] * 2; }
static int64_t out_bytes(const struct problem *p) { (void)p; return 64; }

/* Each byte says which set and which tensor it is of. */
static void fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t n, void *host)
{
    (void)row;
    memset(host, (int)(set * TENSORS + (uint32_t)t) & 0xff, (size_t)(n * p->op->tensor[t].row_bytes(p)));
}

/* Of the table's rows a call needs a part; of the twins one. */
static double bytes(const struct problem *p, void *const *t, uint64_t reads)
{
    double n = (double)p->dim[ROWS], sum = n * (double)out_bytes(p);
    (void)t;
    if (!reads || reads & READS_TABLE) sum += n * (double)p->dim[PART] * 4;
    if (reads & READS_WIDE) sum += n * (double)wide_bytes(p);
    if (!reads || reads & READS_NARROW) sum += n * (double)narrow_bytes(p);
    return sum;
}

static double flop(const struct problem *p, void *const *t) { (void)p, (void)t; return 1; }

static const struct op op = {
    .name = "toy",
    .dim = {{.name = "rows"}, {.name = "width"}, {.name = "part"}, {.name = "columns"}},
    .tensor = {
        [TABLE] = {.name = "table", .dtype = F32, .role = IN, .rows = rows, .row_bytes = table_bytes},
        [WIDE] = {.name = "x32", .dtype = F32, .role = IN, .rows = rows, .row_bytes = wide_bytes},
        [NARROW] = {.name = "x16", .dtype = BF16, .role = IN, .rows = rows, .row_bytes = narrow_bytes},
        [OUTPUT] = {.name = "out", .dtype = F32, .role = OUT, .rows = rows, .row_bytes = out_bytes},
    },
    .fill = fill, .flop = flop, .bytes = bytes,
};

static struct workload prepared(int64_t n, int64_t width, int64_t part, int64_t columns)
{
    struct workload w = {.dev = dev_open_host(), .memory = memfd_create("ring", 0)};
    struct problem problem = {.op = &op, .dim = {n, width, part, columns}, .seed = 3};
    assert_true(w.memory >= 0);
    assert_int_equal(workload_prepare(&w, &problem, NULL, -1), 0);
    return w;
}

static void finish(struct workload *w)
{
    workload_close(w);
    close(w->memory);
    w->dev->ops->close(w->dev);
}

/* Bytes that a kernel with these reads has had by the time that the ring comes round. */
static double rung(struct workload *w, double asked, uint64_t reads)
{
    double needs = bytes(&w->problem, NULL, reads) - bytes(&w->problem, NULL, 1 << OUTPUT);
    return needs * workload_sets(w, asked);
}

/* 4 rows of 64 numbers in a table that is 4096 wide: the table's own bytes would ask for a 64th of the sets. */
static void short_rows_of_a_wide_tensor(void **state)
{
    (void)state;
    const double asked = 1e6;
    struct workload w = prepared(4, 4096, 64, 16);
    assert_true(rung(&w, asked, READS_TABLE) < asked / 8);
    workload_needs(&w, READS_TABLE);
    assert_true(rung(&w, asked, READS_TABLE) >= asked);
    assert_true(rung(&w, asked, READS_TABLE) < 1.01 * asked);   /* and no longer than need be */
    finish(&w);
}

/* Whoever reads one of two twins; the order in which kernels are named doesn't matter. */
static void the_leanest_kernel_counts(void **state)
{
    (void)state;
    const uint64_t orders[][3] = {{READS_WIDE, READS_NARROW, 0}, {READS_NARROW, READS_WIDE, 0}, {0, READS_WIDE, READS_NARROW}};
    const double asked = 1e6;
    for (int i = 0; i < 3; i++) {
        struct workload w = prepared(8, 64, 64, 512);
        assert_true(rung(&w, asked, READS_NARROW) < asked / 2);
        for (int k = 0; k < 3; k++) workload_needs(&w, orders[i][k]);
        assert_true(w.needed_bytes == 8 * 512 * 2);
        assert_true(rung(&w, asked, READS_NARROW) >= asked && rung(&w, asked, READS_WIDE) >= asked && rung(&w, asked, 0) >= asked);
        finish(&w);
    }
}

/* A kernel that reads no input needs none, and must not ask for a ring without end. */
static void limits(void **state)
{
    (void)state;
    struct workload w = prepared(4, 1 << 20, 1, 16);
    int by_tensors = workload_sets(&w, 1e8);
    workload_needs(&w, 1 << OUTPUT);
    assert_int_equal(workload_sets(&w, 1e8), by_tensors);
    workload_needs(&w, READS_TABLE);                            /* 16 of 16 M bytes: 6 million sets, of which 2 GB hold a hundred */
    assert_in_range(workload_sets(&w, 1e8), by_tensors + 1, 125);
    assert_int_equal(workload_sets(&w, 0), 1);                  /* hot */
    assert_int_equal(workload_sets(&w, 1), CHECK_SETS);
    finish(&w);
    w = prepared(1, 16, 1, 16);
    workload_needs(&w, READS_TABLE);
    assert_int_equal(workload_sets(&w, 1e9), 8192);
    finish(&w);
}

static int compare_places(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return (x > y) - (x < y);
}

/* Input sets lie apart and hold what fill says of them; outputs take turns, set 0 has its own. */
static void what_lies_in_it(void **state)
{
    (void)state;
    struct workload w = prepared(4, 256, 4, 16);    /* less to read than to write */
    workload_needs(&w, READS_TABLE);
    assert_int_equal(workload_ring(&w, 1e5, 0), 0);
    assert_true(w.sets * 4.0 * 4 * 4 >= 1e5 && w.touched_bytes == 4 * 4 * 4);
    char **place = calloc((size_t)w.sets, sizeof *place);
    for (int t = 0; t < OUTPUT; t++) {
        int64_t slot = w.shape[t].rows * w.shape[t].stride;
        for (int s = 0; s < w.sets; s++) {
            const unsigned char *p = w.ring[s * MAX_TENSORS + t].p;
            int want = (s * TENSORS + t) & 0xff;
            assert_true(p[0] == want && p[slot - 1] == want);
            place[s] = (char *)p;
        }
        qsort(place, (size_t)w.sets, sizeof *place, compare_places);
        for (int s = 1; s < w.sets; s++) assert_true(place[s] - place[s - 1] >= slot);
    }
    for (int s = 0; s < w.sets; s++) place[s] = w.ring[s * MAX_TENSORS + OUTPUT].p;
    for (int s = 1; s < w.sets; s++) assert_ptr_not_equal(place[s], place[0]);
    qsort(place, (size_t)w.sets, sizeof *place, compare_places);
    int copies = 1;
    for (int s = 1; s < w.sets; s++) copies += place[s] != place[s - 1];
    assert_true(copies < w.sets && (copies - 1) * 4.0 * 64 >= 1e5);   /* set 0's comes round with its set alone */
    free(place);
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_rows_of_a_wide_tensor), cmocka_unit_test(the_leanest_kernel_counts), cmocka_unit_test(limits),
        cmocka_unit_test(what_lies_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

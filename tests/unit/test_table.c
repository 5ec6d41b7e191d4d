/* rows.csv: written strictly, read by its header, numbers that come back as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base.h"
#include "csv.h"
#include "registry.h"
#include "table.h"
#include "comma_locale.h"

static char folder[64], path[96];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/kbench-table-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof(path), "%s/rows.csv", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static void put(const char *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static struct row sample_row(void)
{
    struct row row;
    row_clear(&row);
    strcpy(row.op, "attn");
    strcpy(row.kernel, "attn/mma");
    strcpy(row.engine, "cuda");
    strcpy(row.status, "ok");
    row.n_dims = 2;
    row.dim[0] = (struct row_dim){"batch", 64};
    row.dim[1] = (struct row_dim){"ctx", 131072};
    row.t_med_ns = 41234.5;
    row.seed = 7;
    return row;
}

static const char *const dims[] = {"batch", "ctx", "topk"};

static struct table write_and_read(const struct row *rows, int n)
{
    struct table table;
    char error[300] = "";
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(table_write_header(file, 3, dims), 0);
    for (int i = 0; i < n; i++) assert_int_equal(table_write_row(file, 3, dims, &rows[i]), 0);
    fclose(file);
    if (table_read(path, &table, error, sizeof(error))) fail_msg("%s", error);
    assert_int_equal(table.n, n);
    return table;
}

/* Every cell but the bytes behind a text's end, which are no part of it. */
static void assert_rows_equal(const struct row *a, const struct row *b)
{
    for (int c = 0; c < n_columns; c++) {
        const char *x = (const char *)a + columns[c].offset, *y = (const char *)b + columns[c].offset;
        double p, q;
        switch (columns[c].kind) {
        case COLUMN_TEXT: assert_string_equal(x, y); break;
        case COLUMN_WHOLE: assert_true(*(const int64_t *)x == *(const int64_t *)y); break;
        case COLUMN_REAL:
            memcpy(&p, x, sizeof(p)), memcpy(&q, y, sizeof(q));
            if (!(p == q || (isnan(p) && isnan(q)))) fail_msg("%s: %.17g is not %.17g", columns[c].name, p, q);
            break;
        case COLUMN_DIMS:
            assert_int_equal(a->n_dims, b->n_dims);
            for (int d = 0; d < a->n_dims; d++) assert_true(row_dim(b, a->dim[d].name) == a->dim[d].value);
            break;
        }
    }
}

/* Random texts with everything that needs care, random bit patterns as numbers. */
static struct row random_row(unsigned *seed)
{
    static const char alphabet[] = "a,\"\n\r; \t'=\xC3\xA4\\";
    struct row row;
    row_clear(&row);
    for (int c = 0; c < n_columns; c++) {
        char *to = (char *)&row + columns[c].offset;
        uint64_t bits = 0;
        for (int i = 0; i < 5; i++) bits = bits << 15 ^ (uint64_t)rand_r(seed);
        if (columns[c].kind == COLUMN_TEXT) {
            size_t n = bits % columns[c].size;
            for (size_t i = 0; i < n; i++) to[i] = alphabet[(size_t)rand_r(seed) % (sizeof(alphabet) - 1)];
        } else if (columns[c].kind != COLUMN_DIMS) {
            memcpy(to, &bits, sizeof(bits));
        }
    }
    row.n_dims = 1 + rand_r(seed) % 3;
    for (int d = 0; d < row.n_dims; d++) {
        strcpy(row.dim[d].name, dims[d]);
        row.dim[d].value = rand_r(seed) - 1000;
    }
    return row;
}

static void test_any_row_comes_back(void **state)
{
    (void)state;
    enum { ROWS = 300 };
    struct row *rows = must_alloc(ROWS, sizeof(rows[0]));
    unsigned seed = 1;
    for (int i = 0; i < ROWS; i++) rows[i] = random_row(&seed);
    struct table table = write_and_read(rows, ROWS);
    for (int i = 0; i < ROWS; i++) assert_rows_equal(&rows[i], &table.row[i]);
    table_free(&table);
    free(rows);
}

static void test_empty_cells(void **state)
{
    (void)state;
    struct row row;
    row_clear(&row);
    struct table table = write_and_read(&row, 1);
    assert_rows_equal(&row, &table.row[0]);
    assert_int_equal(table.row[0].n_dims, 0);
    assert_true(isnan(table.row[0].t_med_ns));
    assert_true(table.row[0].rounds == INT64_MIN);
    table_free(&table);
    char *bytes;
    size_t n;
    assert_int_equal(file_read(path, &bytes, &n), 0);
    assert_null(strstr(bytes, "nan"));
    assert_non_null(strstr(bytes, "\n,,,,"));
    free(bytes);
}

static void test_numbers_are_short_and_exact(void **state)
{
    (void)state;
    static const struct { double value; const char *text; } known[] = {
        {0.1, "0.1"}, {41234.5, "41234.5"}, {1.0 / 3, "0.3333333333333333"},
        {5e-324, "4.94065645841247e-324"}, {1e300, "1e+300"}, {-0.0, "-0"},
        {0.1 + 0.2, "0.30000000000000004"}, {NAN, ""}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char buffer[32];
        double back;
        assert_string_equal(real_text(known[i].value, buffer), known[i].text);
        assert_int_equal(cell_real(buffer, &back), 0);
        assert_true(back == known[i].value || isnan(known[i].value));
    }
    static const char *const none[] = {"inf", "-inf", "nan", "1e400", "0x10", "0x1p4", " 1", "1 ", "1,5", "infinity", "--1",
        "e", "."};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        double back;
        assert_int_not_equal(cell_real(none[i], &back), 0);
        assert_true(isnan(back));
    }
}

/* An output that is no number has an error without bound: its row is written, and has to come back. */
static void test_errors_may_be_endless(void **state)
{
    (void)state;
    struct row row = sample_row();
    row.err_rel = INFINITY, row.bw_GBps = -INFINITY;
    struct table table = write_and_read(&row, 1);
    assert_rows_equal(&row, &table.row[0]);
    table_free(&table);
}

static void test_comma_locale_changes_nothing(void **state)
{
    (void)state;
    struct row row = sample_row();
    row.err_rel = 0.00125;
    struct table table = write_and_read(&row, 1);
    char *expected, *got;
    size_t n, m;
    assert_int_equal(file_read(path, &expected, &n), 0);
    table_free(&table);
    if (!comma_locale_enter(folder)) {
        comma_locale_leave();
        free(expected);
        print_message("no locale with a decimal comma, and no localedef to make one\n");
        skip();
    }
    char printed[16];
    snprintf(printed, sizeof(printed), "%.1f", 1.5);
    table = write_and_read(&row, 1);
    comma_locale_leave();
    assert_string_equal(printed, "1,5");  /* the locale was really there */
    assert_int_equal(file_read(path, &got, &m), 0);
    assert_string_equal(got, expected);
    assert_rows_equal(&row, &table.row[0]);
    table_free(&table);
    free(expected);
    free(got);
}

static void read_text(const char *csv, struct table *ret)
{
    char error[300] = "";
    put(csv, strlen(csv));
    if (table_read(path, ret, error, sizeof(error))) fail_msg("%s", error);
}

static void test_columns_in_any_order(void **state)
{
    (void)state;
    struct table t;
    read_text("t_med_ns,status,future,kernel,op,marks,batch,ctx,tune,also new\r\n"
              "5.5,ok,\"x,y\",attn/a,attn,noisy,64,,splits=4,z\r\n", &t);
    assert_int_equal(t.n, 1);
    assert_true(t.row[0].t_med_ns == 5.5);
    assert_string_equal(t.row[0].kernel, "attn/a");
    assert_string_equal(t.row[0].tune, "splits=4");
    assert_int_equal(t.row[0].n_dims, 1);  /* ctx is empty, `future` and `also new` stand elsewhere */
    assert_true(row_dim(&t.row[0], "batch") == 64 && row_dim(&t.row[0], "ctx") == INT64_MIN);
    assert_int_equal(t.n_dims, 2);
    assert_string_equal(t.dims[1], "ctx");
    table_free(&t);
}

static void test_quotes_and_newlines(void **state)
{
    (void)state;
    struct table t;
    read_text("\xEF\xBB\xBFop,kernel,status,reason\nattn,a,wrong,\"two\nlines, \"\"quoted\"\"\"\n\nattn,b,ok,\"\"\n", &t);
    assert_int_equal(t.n, 2);
    assert_string_equal(t.row[0].reason, "two\nlines, \"quoted\"");
    assert_string_equal(t.row[1].reason, "");
    table_free(&t);
}

static void test_torn_line_is_left_out(void **state)
{
    (void)state;
    struct row rows[3] = {sample_row(), sample_row(), sample_row()};
    strcpy(rows[2].reason, "a, \"b\"\nc");
    struct table table = write_and_read(rows, 3);
    table_free(&table);
    char *bytes, error[300];
    size_t n, ends[4], k = 0;
    assert_int_equal(file_read(path, &bytes, &n), 0);
    for (size_t i = 0; i < n && k < 3; i++) {
        if (bytes[i] == '\n') ends[k++] = i + 1;
    }
    ends[3] = n;
    for (size_t cut = ends[0]; cut <= n; cut++) {  /* wherever the kill hit, from the header's end on */
        int whole = 0;
        put(bytes, cut);
        if (table_read(path, &table, error, sizeof(error))) fail_msg("cut at %zu: %s", cut, error);
        while (whole < 3 && ends[whole + 1] <= cut) whole++;
        assert_int_equal(table.n, whole);
        assert_int_equal(table.bytes, ends[whole]);
        table_free(&table);
    }
    free(bytes);
}

static void test_unreadable_input_is_refused_in_words(void **state)
{
    (void)state;
    static const struct { const char *csv, *why; } bad[] = {
        {"", "rows.csv:1: empty"},
        {"a,b,c\n1,2,3\n", "rows.csv:1: no columns op, kernel and status"},
        {"op;kernel;status\nattn;a;ok\n", "no columns op"},
        {"op,kernel,status,op\n", "rows.csv:1: a column stands twice"},
        {"op,kernel,status\nattn,a\n", "rows.csv:2: another number of cells"},
        {"op,kernel,status,t_med_ns\nattn,a,ok,1\nattn,a,ok,fast\n", "rows.csv:3: 'fast': not a number"},
        {"op,kernel,status,t_med_ns\nattn,a,ok,inf\n", "rows.csv:2: 'inf': not a number"},
        {"op,kernel,status,t_lo_ns\nattn,a,ok,nan\n", "rows.csv:2: 'nan': not a number"},
        {"op,kernel,status,t_hi_ns\nattn,a,ok,0x10\n", "rows.csv:2: '0x10': not a number"},
        {"op,kernel,status,t_min_ns\nattn,a,ok,1e400\n", "rows.csv:2: '1e400': not a number"},
        {"op,kernel,status,err_rel\nattn,a,ok,infinity\n", "rows.csv:2: 'infinity': not a number"},
        {"op,kernel,status,rounds\nattn,\"a\nb\",ok,1\nattn,a,ok,1.5\n", "rows.csv:4: '1.5': not a whole number"},
        {"op,kernel,status,marks,batch\nattn,a,ok,,many\n", "rows.csv:2: 'many': not a whole number"},
        {"op,kernel,status\nattn,a\"b,ok\n", "rows.csv:2: a quote within"},
        {"op,kernel,status\nattn,\"a\"b,ok\n", "rows.csv:2: text behind a closing quote"},
        {"op,kernel,status\nattn,0123456789012345678901234567890123456789012345678901234567890123456789,ok\n",
            "longer than this column"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct table t;
        char error[300] = "";
        put(bad[i].csv, strlen(bad[i].csv));
        assert_int_not_equal(table_read(path, &t, error, sizeof(error)), 0);
        if (!strstr(error, bad[i].why)) fail_msg("'%s' does not say '%s'", error, bad[i].why);
    }
    struct table t;
    char error[300] = "";
    static const char zero[] = "op,kernel,status\nattn\0,a,ok\n";
    put(zero, sizeof(zero) - 1);
    assert_int_not_equal(table_read(path, &t, error, sizeof(error)), 0);
    assert_non_null(strstr(error, "zero byte"));
    assert_int_equal(table_read("/nowhere/rows.csv", &t, error, sizeof(error)), ENOENT);
    assert_int_not_equal(table_read("/tmp", &t, error, sizeof(error)), 0);
}

static void test_unclosed_quote_hides_nothing(void **state)
{
    (void)state;
    struct table t;
    char error[300] = "";
    FILE *file = fopen(path, "w");
    fputs("op,kernel,status\nattn,\"a,ok\n", file);
    for (int i = 0; i < 2000; i++) fputs("attn,b,ok\n", file);
    fclose(file);
    assert_int_not_equal(table_read(path, &t, error, sizeof(error)), 0);
    assert_non_null(strstr(error, "rows.csv:2: a quote is opened here"));
}

static void test_full_disk_and_closed_pipe_come_back(void **state)
{
    (void)state;
    struct row row = sample_row();
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(table_write_header(full, 3, dims), ENOSPC);
        assert_int_equal(table_write_row(full, 3, dims, &row), ENOSPC);
        fclose(full);
    }
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    FILE *closed = fdopen(ends[1], "w");
    assert_int_equal(table_write_row(closed, 3, dims, &row), EPIPE);
    fclose(closed);
    signal(SIGPIPE, SIG_DFL);
}

static void test_unknown_dim_is_our_bug(void **state)
{
    (void)state;
    pid_t child = fork();
    if (!child) {
        struct row row = sample_row();
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        table_write_row(stdout, 1, dims, &row);  /* has ctx, the header only batch */
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_BUG);
}

/* Words of labels read back as what they are, and mean the same in every op. */
static void test_labels_of_all_ops(void **state)
{
    (void)state;
    for (int i = 0; ops[i]; i++)
        for (int d = 0; d < op_dims(ops[i]); d++) {
            const struct dim *dim = &ops[i]->dim[d];
            const char *const *names = dim_names(dim->name);
            int n = 0;
            if (!names)
                continue;
            assert_true(dim->label && dim->names && dim->min == 0);
            for (; dim->names[n]; n++) {
                assert_true(names[n] && !strcmp(names[n], dim->names[n]));
                assert_true(strlen(names[n]) <= 23 && names[n][0] >= 'a' && names[n][0] <= 'z');
                assert_int_equal(strspn(names[n], "abcdefghijklmnopqrstuvwxyz0123456789_-"), strlen(names[n]));
                int64_t value;
                assert_int_equal(cell_dim(dim->name, names[n], &value), 0);
                assert_int_equal(value, n);
            }
            assert_true(!names[n] && dim->max == n - 1);
        }
}

static void test_status_words(void **state)
{
    (void)state;
    struct row row = sample_row();
    assert_int_equal(row_status(&row), STATUS_OK);
    static const int fails[STATUS_COUNT] = {0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0};
    for (int s = 0; s < STATUS_COUNT; s++) {
        strcpy(row.status, status_name[s]);
        assert_int_equal(row_status(&row), s);
        assert_int_equal(row_failed(&row), fails[s]);
    }
    strcpy(row.status, "melted");
    assert_int_equal(row_status(&row), STATUS_COUNT);
    assert_int_equal(row_failed(&row), 1);
}

static void test_groups_and_keys(void **state)
{
    (void)state;
    struct row a = sample_row(), b = sample_row();
    b.dim[0] = (struct row_dim){"ctx", 131072};
    b.dim[1] = (struct row_dim){"batch", 64};
    assert_true(row_same_key(&a, &b));
    strcpy(b.tune, "splits=2");
    assert_true(row_same_group(&a, &b) && !row_same_key(&a, &b));
    b.n_dims = 1;
    assert_false(row_same_group(&a, &b));
    assert_false(row_same_group(&b, &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_row_comes_back), cmocka_unit_test(test_empty_cells),
        cmocka_unit_test(test_numbers_are_short_and_exact), cmocka_unit_test(test_errors_may_be_endless),
        cmocka_unit_test(test_comma_locale_changes_nothing), cmocka_unit_test(test_columns_in_any_order),
        cmocka_unit_test(test_quotes_and_newlines), cmocka_unit_test(test_torn_line_is_left_out),
        cmocka_unit_test(test_unreadable_input_is_refused_in_words), cmocka_unit_test(test_unclosed_quote_hides_nothing),
        cmocka_unit_test(test_full_disk_and_closed_pipe_come_back), cmocka_unit_test(test_unknown_dim_is_our_bug),
        cmocka_unit_test(test_labels_of_all_ops), cmocka_unit_test(test_status_words), cmocka_unit_test(test_groups_and_keys),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

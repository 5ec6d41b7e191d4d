/* Values that have words are words in every file, and numbers in every struct. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base.h"
#include "fake.h"
#include "identity.h"
#include "report.h"
#include "samples.h"

static const char *const dims[] = {"batch", "max_ctx", "tail"};

static struct row make_row(int64_t tail)
{
    struct registry   r = registry_open(0, NULL);
    struct row        row;
    struct cli        cli = {.command = "sweep", .device = "auto"};
    struct group      group = {.op = "scan", .dim = {2, 8192, tail}, .seed = 3, .n = 1, .variant = {{.kernel = "scan/host_live"}}};
    row_clear(&row);
    identify_row(&row, &group, 0, &r, &cli);
    strcpy(row.status, "ok");
    row.t_med_ns = 1000, row.t_lo_ns = 990, row.t_hi_ns = 1010, row.checked_pct = 100;
    free(r.entry);
    return row;
}

static char *slurp(FILE *file, char *ret, size_t size)
{
    rewind(file);
    ret[fread(ret, 1, size - 1, file)] = 0;
    return ret;
}

static void rows_hold_words(void **state)
{
    char path[] = "/tmp/kbench-labels-XXXXXX", content[4096], why[320];
    struct table table;
    int    fd = mkstemp(path);
    FILE  *file = fdopen(fd, "w+");
    (void)state;
    assert_non_null(file);
    assert_int_equal(table_write_header(file, COUNT(dims), dims), 0);
    for (int tail = 0; tail < 3; tail++) {
        struct row row = make_row(tail);
        assert_int_equal(table_write_row(file, COUNT(dims), dims, &row), 0);
    }
    assert_int_equal(fflush(file), 0);
    assert_non_null(strstr(slurp(file, content, sizeof content), ",2,8192,unique,"));
    assert_int_equal(table_read(path, &table, why, sizeof why), 0);
    assert_int_equal(table.n, 3);
    for (int tail = 0; tail < 3; tail++) {
        struct row row = make_row(tail);
        assert_int_equal(row_dim(&table.row[tail], "tail"), tail);
        assert_true(row_same_key(&table.row[tail], &row));
    }
    table_free(&table);

    /* An older file may hold numbers; a word of another version is refused, not taken for something else. */
    rewind(file);
    assert_int_equal(ftruncate(fd, 0), 0);
    fputs("op,kernel,marks,tail,tune,status\nscan,scan/host_live,,1,,ok\nscan,scan/host_live,,,,ok\n", file);
    fflush(file);
    assert_int_equal(table_read(path, &table, why, sizeof why), 0);
    assert_int_equal(row_dim(&table.row[0], "tail"), 1);
    assert_true(row_dim(&table.row[1], "tail") == INT64_MIN);
    table_free(&table);
    fputs("scan,scan/host_live,,page9,,ok\n", file);
    fflush(file);
    assert_int_not_equal(table_read(path, &table, why, sizeof why), 0);
    assert_non_null(strstr(why, ":4: 'page9': no value of this dimension in this version"));
    fclose(file);
    unlink(path);
}

static void samples_hold_words(void **state)
{
    char path[] = "/tmp/kbench-labels-XXXXXX", content[4096], why[320];
    struct sample sample = {.t_ns = 5};
    struct row    row[2] = {make_row(1), make_row(2)};
    struct table  done = {.n = 1, .row = row, .n_dims = 3, .dims = {"batch", "max_ctx", "tail"}};
    FILE *file = fdopen(mkstemp(path), "w+");
    (void)state;
    assert_non_null(file);
    assert_int_equal(samples_write_header(file, COUNT(dims), dims), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(samples_write(file, COUNT(dims), dims, &row[i], 1, &sample), 0);
    fflush(file);
    assert_non_null(strstr(slurp(file, content, sizeof content), "scan,scan/host_live,2,8192,minus1,"));
    assert_int_equal(lines_keep(path, CSV_samples, &done, why, sizeof why), 0);   /* those of finished rows stay */
    freopen(path, "r", file);
    slurp(file, content, sizeof content);
    assert_non_null(strstr(content, ",unique,"));
    assert_null(strstr(content, ",minus1,"));
    fclose(file);
    unlink(path);
}

static void people_read_words(void **state)
{
    char   content[4096];
    struct row row[2] = {make_row(0), make_row(1)};
    struct table table = {.n = 2, .row = row};
    struct report_options options = {.width = 80};
    FILE  *file = tmpfile();
    (void)state;
    assert_string_equal(row[1].repeat, "./kbench sweep --row 'scan/host_live batch=2,max_ctx=8K,tail=unique' --seed 3");
    report_all(file, NULL, &table, &options);
    slurp(file, content, sizeof content);
    assert_non_null(strstr(content, "throughout: batch=2, max_ctx=8K\n"));
    assert_non_null(strstr(content, "scan  tail=page0  (cold)"));
    assert_non_null(strstr(content, "scan  tail=unique  (cold)"));
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_hold_words), cmocka_unit_test(samples_hold_words), cmocka_unit_test(people_read_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rows that were measured again because the machine was not quiet: which one of them stands for all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "again.h"
#include "base.h"
#include "csv.h"

static struct row row_of(const char *kernel, const char *marks, double width, bool again)
{
    struct row row;
    row_clear(&row);
    text(row.op, sizeof row.op, "attn");
    text(row.kernel, sizeof row.kernel, "%s", kernel);
    text(row.status, sizeof row.status, "ok");
    text(row.marks, sizeof row.marks, "%s", marks);
    text(row.reason, sizeof row.reason, "%s", again ? ONCE_MORE "; other work" : "");
    row.t_med_ns = 100;
    row.t_lo_ns = 100 - width / 2;
    row.t_hi_ns = 100 + width / 2;
    return row;
}

/* Of a measurement and its further tries the quietest is left, where the first one stood. */
static void the_quietest_stays(void **state)
{
    (void)state;
    struct row rows[] = {
        row_of("a", "contended", 1, false), row_of("b", "", 1, false), row_of("c", "noisy;contended", 9, false),
        row_of("a", "", 3, true), row_of("c", "contended", 8, true), row_of("a", "", 2, true), row_of("c", "contended", 9, true),
        row_of("b", "contended", 1, false),   /* no further try: the same row of a resumed or confirmed run */
    };
    struct table table = {.n = COUNT(rows), .row = rows};
    assert_int_equal(again_settle(&table, 0), 4);
    assert_int_equal(table.n, 4);
    assert_string_equal(rows[0].kernel, "a");
    assert_true(rows[0].t_hi_ns == 101 && !*rows[0].marks);
    assert_string_equal(rows[1].kernel, "b");
    assert_true(!*rows[1].marks);
    assert_string_equal(rows[2].kernel, "c");
    assert_true(rows[2].t_hi_ns == 104);
    assert_string_equal(rows[3].marks, "contended");

    struct row failed[] = {row_of("a", "contended", 1, false), row_of("a", "", 1, true)};
    text(failed[1].status, sizeof failed[1].status, "wrong");   /* what fails at times fails */
    table = (struct table){.n = 2, .row = failed};
    assert_int_equal(again_settle(&table, 0), 1);
    assert_string_equal(failed[0].status, "wrong");
    struct row alone = row_of("a", "", 1, true);                /* the first try is not in this file */
    table = (struct table){.n = 1, .row = &alone};
    assert_int_equal(again_settle(&table, 0), 0);
}

/* The rule in cases: of each measurement the row that counts says so, all others have to be gone. tools/figures.py, which reads
 * rows by itself, is held to the same file. */
static void the_golden_cases(void **state)
{
    (void)state;
    char path[600], error[300] = "", *bytes;
    size_t size;
    struct table table;
    text(path, sizeof path, "%s/tests/golden/again.csv", source_root());
    if (table_read(path, &table, error, sizeof error)) fail_msg("%s", error);
    assert_int_equal(file_read(path, &bytes, &size), 0);
    int lines = -1, counts = 0;
    for (char *at = bytes; *at; at++) lines += *at == '\n';
    for (char *at = bytes; (at = strstr(at, ",counts,")); at++) counts++;
    assert_true(counts > 10 && lines > counts);
    assert_int_equal(table.n, counts);
    assert_int_equal(table.again, lines - counts);
    for (int i = 0; i < table.n; i++)
        if (strcmp(table.row[i].algorithm, "counts")) fail_msg("ctx %lld", (long long)row_dim(&table.row[i], "ctx"));
    free(bytes);
    table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_quietest_stays), cmocka_unit_test(the_golden_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

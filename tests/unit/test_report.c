/* What people read: golden pages, numbers in few characters, nothing wider than the screen, commands that can be copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base.h"
#include "csv.h"
#include "progress.h"
#include "report.h"

static struct machine h200(void)
{
    struct machine m = {.engine = CUDA, .facts = {.sm = 90, .sm_count = 132}, .ceilings = {4550, 4012, 742000, 600, 550, 2000}};
    strcpy(m.name, "NVIDIA H200");
    strcpy(m.driver, "580.159.04");
    strcpy(m.toolkit, "13.0");
    return m;
}

static struct report_options plain(int width)
{
    return (struct report_options){.width = width, .folder = "results/runs/20260101T000000Z-default"};
}

static struct table golden_table(const char *name)
{
    struct table table;
    char path[600], error[700];
    text(path, sizeof(path), "%s/tests/golden/%s", source_root(), name);
    if (table_read(path, &table, error, sizeof(error))) fail_msg("%s", error);
    return table;
}

/* All that a row may be; and a sweep of an op with growth and winners. */
static struct table golden_rows(void)
{
    return golden_table("rows.csv");
}

static struct table golden_indexer(void)
{
    return golden_table("indexer.csv");
}

/* A page as a string, to be freed. */
static char *page(const struct machine *m, const struct table *table, const struct report_options *o)
{
    char *bytes;
    size_t n;
    FILE *out = open_memstream(&bytes, &n);
    report_all(out, m, table, o);
    fclose(out);
    return bytes;
}

/* UPDATE_GOLDEN=1 writes the page instead; look at the difference before it is committed. */
static void compare_golden(const char *name, const char *got)
{
    char path[600], *expected;
    size_t n;
    text(path, sizeof(path), "%s/tests/golden/%s", source_root(), name);
    if (getenv("UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(got, file);
        assert_int_equal(fclose(file), 0);
        return;
    }
    assert_int_equal(file_read(path, &expected, &n), 0);
    if (strcmp(expected, got)) fail_msg("%s has changed; UPDATE_GOLDEN=1 writes it anew. Now:\n%s", path, got);
    free(expected);
}

static void test_golden_pages(void **state)
{
    (void)state;
    struct machine m = h200();
    struct table table = golden_rows();
    struct report_options o = plain(80);
    char *got = page(&m, &table, &o);
    compare_golden("report.txt", got);
    free(got);
    o.markdown = true;
    got = page(&m, &table, &o);
    compare_golden("report.md", got);
    free(got);
    table_free(&table);
    table = golden_indexer();
    got = page(&m, &table, &o);
    compare_golden("indexer.md", got);
    free(got);
    o.markdown = false;
    got = page(&m, &table, &o);
    compare_golden("indexer.txt", got);
    free(got);
    table_free(&table);
}

static void check_colour(struct table table, const char *coloured)
{
    struct machine m = h200();
    struct report_options o = plain(80);
    char *expected = page(&m, &table, &o);
    o.colour = true;
    char *got = page(&m, &table, &o), *to = got;
    assert_null(strchr(expected, '\033'));
    assert_non_null(strstr(got, coloured));
    for (char *from = got; *from;) {
        if (*from == '\033') from += strcspn(from, "m") + 1;
        else *to++ = *from++;
    }
    *to = '\0';
    assert_string_equal(got, expected);
    free(got);
    free(expected);
    table_free(&table);
}

static void test_colour_adds_nothing_else(void **state)
{
    (void)state;
    check_colour(golden_rows(), "\033[32m32.3x\033[0m");   /* clearly faster */
    check_colour(golden_indexer(), "\033[1;31mabove:\033[0m");
}

static int widest_line(const char *page)
{
    int widest = 0;
    for (; *page; page += strcspn(page, "\n"), page += *page == '\n') {
        int n = (int)strcspn(page, "\n");
        if (n > widest) widest = n;
    }
    return widest;
}

static void test_never_wider_than_asked(void **state)
{
    (void)state;
    struct machine m = h200();
    struct table table = golden_rows();
    struct row *row = &table.row[0];
    memset(row->reason, 'x', sizeof(row->reason) - 1);   /* no blank to break at */
    strcpy(row->status, "crash");
    memset(m.name, 'n', 90);
    strcpy(row->repeat, "./kbench sweep --row 'attn/simt batch=1000000,heads=1000000,ctx=1000000,window=1000000,topk=1000000,"
                        "ratio=1000000,ragged=1000000' --plugin ./mine.so --seed 123456789");
    for (int width = 80; width <= 130; width += 25) {
        struct report_options o = plain(width);
        char *got = page(&m, &table, &o);
        if (widest_line(got) > width) fail_msg("%d columns asked for, %d used:\n%s", width, widest_line(got), got);
        free(got);
    }
    table_free(&table);
    table = golden_indexer();
    struct report_options o = plain(80);
    char *got = page(&m, &table, &o);
    assert_true(widest_line(got) <= 80);
    free(got);
    table_free(&table);
}

static void test_numbers(void **state)
{
    (void)state;
    char ret[32];
    static const struct { double ns; const char *text; } times[] = {
        {NAN, "-"}, {0, "0.00 ns"}, {0.5, "0.50 ns"}, {9.994, "9.99 ns"},
        {9.996, "10.0 ns"}, {99.96, "100 ns"}, {550, "550 ns"}, {999.4, "999 ns"}, {999.6, "1.00 us"}, {12345.6, "12.3 us"},
        {5.41e6, "5.41 ms"}, {1.234e9, "1.23 s"}, {3.6e12, "3600 s"}, {1e30, "1e+21 s"}, {INFINITY, "inf s"}};
    for (int i = 0; i < COUNT(times); i++) {
        assert_string_equal(ns_text(times[i].ns, ret, sizeof(ret)), times[i].text);
        assert_true(strlen(ret) <= 8);
    }
    assert_string_equal(ns_range_text(41100, 41400, ret, sizeof(ret)), "41.1..41.4 us");
    assert_string_equal(ns_range_text(998, 1002, ret, sizeof(ret)), "1.00..1.00 us");
    assert_string_equal(ns_range_text(NAN, 2, ret, sizeof(ret)), "-");
    assert_string_equal(ratio_text(131.2, ret, sizeof(ret)), "131x");
    assert_string_equal(ratio_text(1, ret, sizeof(ret)), "1.00x");
    assert_string_equal(ratio_text(0.01, ret, sizeof(ret)), "0.01x");
    assert_string_equal(error_text(1.1e-3, ret, sizeof(ret)), "1.1e-3");
    assert_string_equal(error_text(1e-12, ret, sizeof(ret)), "1.0e-12");
    assert_string_equal(error_text(0, ret, sizeof(ret)), "0");
    assert_string_equal(error_text(INFINITY, ret, sizeof(ret)), "inf");
    assert_string_equal(percent_text(28.94, ret, sizeof(ret)), "28.9 %");
    assert_string_equal(percent_text(0.214, ret, sizeof(ret)), "0.21 %");
    assert_string_equal(percent_text(100, ret, sizeof(ret)), "100.0 %");
    assert_string_equal(amount_text(4550.25, ret, sizeof(ret)), "4,550");
    assert_string_equal(amount_text(1234567, ret, sizeof(ret)), "1,234,567");
    assert_string_equal(amount_text(23.45, ret, sizeof(ret)), "23.4");
    assert_string_equal(amount_text(-4550, ret, sizeof(ret)), "-4,550");
}

static char *wrapped(void (*wrap)(FILE *, int, int, int, const char *), int width, int column, int indent, const char *words)
{
    char *bytes;
    size_t n;
    FILE *out = open_memstream(&bytes, &n);
    wrap(out, width, column, indent, words);
    fclose(out);
    return bytes;
}

static void test_words_wrap(void **state)
{
    (void)state;
    static const struct { int width, column, indent; const char *words, *expected; } cases[] = {
        {10, 0, 2, "one two three four", "one two\n  three\n  four\n"},
        {10, 7, 2, "one two", "one\n  two\n"},
        {10, 0, 0, "1234567890 x", "1234567890\nx\n"},
        {10, 0, 2, "123456789012345 x", "1234567890\n  12345 x\n"},
        {10, 0, 2, "", "\n"},
        {10, 0, 2, "it is 24.6 %, a", "it is\n  24.6 %,\n  a\n"},
        {10, 0, 2, "it is 24.6 us", "it is\n  24.6 us\n"},
        {10, 0, 2, "it is 24 uses", "it is 24\n  uses\n"},
        {10, 0, 2, "it is x24x us", "it is x24x\n  us\n"},
        {10, 0, 2, "  a   b  ", "a b\n"},
        {5, 0, 0, "\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4\xC3\xB6\xC3\xBC", "\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4\xC3\xB6\n\xC3\xBC\n"},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        char *got = wrapped(wrap_words, cases[i].width, cases[i].column, cases[i].indent, cases[i].words);
        assert_string_equal(got, cases[i].expected);
        free(got);
    }
}

/* What a shell makes of the wrapped command: the very words, at every width. */
static void test_wrapped_commands_can_be_copied(void **state)
{
    (void)state;
    static const char command[] = "printf [%s] --row 'attn/host_perhead batch=64,heads=64,ctx=128K,window=128,topk=512,ratio=4' "
                                  "--seed 7 'quoted  twice' plain --plugin '/srv/o'\\''neill kernels, mine/it'\\''s a kernel.so'";
    static const char expected[] = "[--row][attn/host_perhead batch=64,heads=64,ctx=128K,window=128,topk=512,ratio=4][--seed][7]"
                                   "[quoted  twice][plain][--plugin][/srv/o'neill kernels, mine/it's a kernel.so]";
    for (int width = 30; width <= 140; width++) {
        char *got = wrapped(wrap_command, width, 12, 6, command), answer[400];
        assert_true(widest_line(got) <= width);
        FILE *shell = popen(got, "r");
        size_t n = fread(answer, 1, sizeof(answer) - 1, shell);
        answer[n] = '\0';
        assert_int_equal(pclose(shell), 0);
        if (strcmp(answer, expected)) fail_msg("at %d columns:\n%s\ngives %s", width, got, answer);
        free(got);
    }
}

static void test_terminal_is_not_obeyed(void **state)
{
    (void)state;
    struct machine m = h200();
    struct table table = golden_rows();
    strcpy(table.row[0].status, "crash");
    strcpy(table.row[0].reason, "\033[2Jgone\r\nnext\x07");
    strcpy(table.row[0].kernel, "attn/\033x");
    strcpy(table.row[1].marks, "\033noisy");
    struct report_options o = plain(80);
    char *got = page(&m, &table, &o);
    assert_null(strpbrk(got, "\033\r\x07"));
    assert_non_null(strstr(got, "?[2Jgone next?"));
    free(got);
    o.markdown = true;
    strcpy(table.row[0].reason, "a|b `c` <d>\ne");
    got = page(&m, &table, &o);
    assert_non_null(strstr(got, "a\\|b \\`c\\` \\<d\\> e"));
    free(got);
    table_free(&table);
}

static void test_base_is_the_first_measured_kernel(void **state)
{
    (void)state;
    struct row rows[3];
    for (int i = 0; i < 3; i++) {
        row_clear(&rows[i]);
        strcpy(rows[i].status, "ok");
        rows[i].t_med_ns = 100;
        rows[i].checked_pct = 100;
    }
    rows[0].checked_pct = NAN;   /* a probe */
    strcpy(rows[1].status, "wrong");
    assert_ptr_equal(report_base(rows, 3), &rows[2]);
    strcpy(rows[2].status, "oom");
    assert_null(report_base(rows, 3));
}

static void test_reports_of_little(void **state)
{
    (void)state;
    struct report_options o = plain(80);
    struct table none = {0};
    char *got = page(NULL, &none, &o);
    assert_non_null(strstr(got, "no rows"));
    free(got);
    struct table table = golden_rows();
    table.n = 1;   /* nothing varies: every dim stands in the group */
    got = page(NULL, &table, &o);
    assert_non_null(strstr(got, "batch=1,heads=64,ctx=128K,window=128,topk=512,ratio=4,ragged=0"));
    assert_null(strstr(got, "throughout"));
    free(got);
    table.row[0].t_med_ns = table.row[0].t_lo_ns = table.row[0].t_hi_ns = NAN;   /* only checked */
    got = page(NULL, &table, &o);
    assert_non_null(strstr(got, "ok  error 1.6e-3, 100 % checked"));
    free(got);
    table_free(&table);
}

static char *progress_of(bool bar, bool quiet, const struct row *rows, int n)
{
    char *bytes;
    size_t size;
    struct progress p = progress_begin(n, bar, quiet);
    p.to = open_memstream(&bytes, &size);
    p.width = 60;
    progress_now(&p, "attn batch=64");
    for (int i = 0; i < n; i++) progress_row(&p, &rows[i]);
    progress_end(&p);
    fclose(p.to);
    return bytes;
}

static void test_progress(void **state)
{
    (void)state;
    struct table table = golden_rows();
    char *got = progress_of(false, false, table.row, table.n);
    assert_int_equal(strncmp(got, "[1/21] attn/simt batch=1,heads=64,ctx=128K", 42), 0);
    assert_non_null(strstr(got, ": wrong: out[3, 17, 211]"));
    assert_null(strpbrk(got, "\033\r"));
    int lines = 0;
    for (char *c = got; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, table.n);
    free(got);
    got = progress_of(true, false, table.row, table.n);
    assert_null(strchr(got, '\n'));
    assert_non_null(strstr(got, "[====================] 21/21  2 failed  0:00 left"));
    assert_string_equal(got + strlen(got) - 4, "\r\033[K");
    for (char *line = got; *line; line++) {   /* each drawing fits the window but for its last column */
        if (*line == '\r') assert_true(strcspn(line + 1, "\r\033") <= 59);
    }
    free(got);
    got = progress_of(true, true, table.row, table.n);
    assert_string_equal(got, "");
    free(got);
    table_free(&table);
}

static void test_time_left(void **state)
{
    (void)state;
    char ret[32];
    assert_true(isnan(progress_left(0, 10, 5)) && isnan(progress_left(3, 0, 5)));
    assert_true(progress_left(2, 10, 5) == 20 && progress_left(10, 10, 5) == 0);
    assert_string_equal(clock_text(42.4, ret, sizeof(ret)), "0:42");
    assert_string_equal(clock_text(3723, ret, sizeof(ret)), "1:02:03");
    assert_string_equal(clock_text(NAN, ret, sizeof(ret)), "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_pages), cmocka_unit_test(test_colour_adds_nothing_else),
        cmocka_unit_test(test_never_wider_than_asked), cmocka_unit_test(test_numbers), cmocka_unit_test(test_words_wrap),
        cmocka_unit_test(test_wrapped_commands_can_be_copied), cmocka_unit_test(test_terminal_is_not_obeyed),
        cmocka_unit_test(test_base_is_the_first_measured_kernel), cmocka_unit_test(test_reports_of_little),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_time_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

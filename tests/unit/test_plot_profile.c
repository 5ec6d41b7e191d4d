/* Plots of a profile: whatever stands in breakdown.csv and counters.csv is shown and never obeyed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base.h"
#include "csv.h"
#include "gnuplot.h"
#include "plot.h"

static char top[64], run[100];   /* run lies two folders below top, so that a way up can be seen */

static int make_top(void **state)
{
    char plots[120], middle[80];
    (void)state;
    strcpy(top, "/tmp/kbench-plot-XXXXXX");
    if (!mkdtemp(top)) return -1;
    mkdir(text(middle, sizeof middle, "%s/middle", top), 0777);
    mkdir(text(run, sizeof run, "%s/run", middle), 0777);
    return mkdir(text(plots, sizeof plots, "%s/plots", run), 0777);
}

static int remove_top(void **state)
{
    char command[128];
    (void)state;
    return system(text(command, sizeof command, "rm -rf '%s'", top));
}

static void write_run(const char *name, const char *words)
{
    char path[200];
    FILE *file = fopen(text(path, sizeof path, "%s/%s", run, name), "w");
    assert_non_null(file);
    fputs(words, file);
    fclose(file);
}

static char *read_plot(const char *name)
{
    char path[300], *bytes;
    size_t n;
    if (file_read(text(path, sizeof path, "%s/plots/%s", run, name), &bytes, &n)) fail_msg("no %s", path);
    return bytes;
}

static bool have_gnuplot(void)
{
    char why[256];
    return !gnuplot_probe(why, sizeof why);
}

static void assert_has(const char *words, const char *word)
{
    if (!strstr(words, word)) fail_msg("no '%s' in\n%s", word, words);
}

#define BREAKDOWN_HEAD "op,kernel,engine,batch,tune,cache,seed,pass,part,name,range,count,calls,total_ns,t_ns,share_pct\n"
#define COUNTERS_HEAD  "op,kernel,engine,batch,tune,cache,seed,t_med_ns,flop,flop_per_B\n"

/* Words that end whatever they stand in, each with a command that would leave a file behind. */
static const char *const hostile[] = {
    "';system 'touch PWNED';x='", "\"\nEND\nsystem \"touch PWNED\"\n$e << END", "../../PWNED", "`touch PWNED`",
    "@x\nsystem 'touch PWNED'", "\\", "'\\", "a'.system('touch PWNED').'b", "\"; system 'touch PWNED' #",
    "{\nsystem 'touch PWNED'\n}", "-e", "", "%s%n%d", "\r\n!touch PWNED\r\n", "\033]0;x\007", "\xff\xc3(",
    "</title><script>x</script>",
};

/* A cell in quotes, doubled within. */
static void put_cell(FILE *out, const char *words)
{
    fputc('"', out);
    for (; *words; words++) fprintf(out, *words == '"' ? "\"\"" : "%c", *words);
    fputc('"', out);
}

/* A row each: words in the places of op, kernel, tunables, cache, a name and a range. */
static char *breakdown_of(const char *const *words, int n)
{
    char *ret;
    size_t size;
    FILE *out = open_memstream(&ret, &size);
    fputs(BREAKDOWN_HEAD, out);
    for (int i = 0; i < n; i++)
        for (int part = 0; part < 2; part++) {
            put_cell(out, words[i]), fputc(',', out), put_cell(out, words[i]), fputs(",host,", out);
            put_cell(out, words[i]), fputc(',', out), put_cell(out, words[i]), fputc(',', out), put_cell(out, words[i]);
            fputs(part ? ",1,replay,span,,,,1,100,100,100\n" : ",1,replay,kernel,", out);
            if (part) continue;
            put_cell(out, words[i]), fputc(',', out), put_cell(out, words[i]), fputs(",1,1,90,90,90\n", out);
        }
    fclose(out);
    return ret;
}

static char *counters_of(const char *const *words, int n)
{
    char *ret;
    size_t size;
    FILE *out = open_memstream(&ret, &size);
    fputs(COUNTERS_HEAD, out);
    for (int i = 0; i < n; i++) {
        put_cell(out, words[i]), fputc(',', out), put_cell(out, words[i]), fputs(",host,1,", out);
        put_cell(out, words[i]), fputs(",cold,1,1000,4e6,2\n", out);
    }
    fclose(out);
    return ret;
}

static bool ends_in(const char *name, const char *const *endings)
{
    const char *dot = strrchr(name, '.');
    while (*endings && (!dot || strcmp(dot, *endings))) endings++;
    return *endings;
}

/* What a command left behind, or a path led to. */
static int strangers(const char *folder, const char *const *endings)
{
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        bool folders = !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "middle") || !strcmp(name, "run")
            || !strcmp(name, "plots");
        if (folders || (ends_in(name, endings) && *name != '-')) continue;
        n++;
        print_message("%s/%s should not be\n", folder, name);
    }
    closedir(dir);
    return n;
}

static int all_strangers(void)
{
    static const char *const none[] = {NULL}, *const data[] = {".csv", ".json", NULL};
    static const char *const plots[] = {".gp", ".svg", ".dat", NULL};
    char path[200];
    return strangers(top, none) + strangers(text(path, sizeof path, "%s/middle", top), none) + strangers(run, data)
        + strangers(text(path, sizeof path, "%s/plots", run), plots);
}

static void no_cell_is_obeyed(void **state)
{
    (void)state;
    if (!have_gnuplot()) skip();
    struct table none = {0};
    write_run("env.json",
        "{\"schema\": 1, \"device\": {\"engine\": \"host\"}, \"ceilings\": {\"read_GBps\": 100, \"matrix_GFLOPs\": 1000}}");
    for (int i = 0; i < COUNT(hostile); i++) {
        char *parts = breakdown_of(&hostile[i], 1), *counters = counters_of(&hostile[i], 1);
        write_run("breakdown.csv", parts), write_run("counters.csv", counters);
        struct plot_result result = plot_run(run, &none);
        if (result.written != 2 || result.unfit) fail_msg("%s: %d plots, %s", hostile[i], result.written, result.note);
        assert_int_equal(all_strangers(), 0);
        char *svg = read_plot("roofline.svg");
        assert_true(!strpbrk(svg, "\xff\033"));   /* XML has no such byte */
        if (i == COUNT(hostile) - 1) assert_has(svg, "&lt;/title>&lt;script>");
        free(svg), free(parts), free(counters);
    }
}

/* Two kernels that win a problem of four each, with the words in every place of a row that takes some. */
static struct table table_of(const char *words)
{
    struct table table = {.row = must_alloc(8, sizeof(struct row))};
    for (; table.n < 8; table.n++) {
        struct row *row = &table.row[table.n];
        int kernel = table.n & 1, batch = table.n >> 1 & 1, ctx = table.n >> 2;
        row_clear(row);
        text(row->op, sizeof row->op, "%s", words), text(row->cache, sizeof row->cache, "%s", words);
        text(row->kernel, sizeof row->kernel, "%s%s", words, kernel ? "b" : ""), text(row->tune, sizeof row->tune, "%s", words);
        text(row->engine, sizeof row->engine, "%s", words), strcpy(row->status, "ok");
        row->n_dims = 3;
        row->dim[0] = (struct row_dim){"batch", 1 + batch}, row->dim[1] = (struct row_dim){"ctx", 1024 << ctx};
        text(row->dim[2].name, sizeof row->dim[2].name, "%.20s_", words);
        row->dim[2].value = 1;
        row->t_med_ns = kernel == batch ? 100 : 200;
        row->t_lo_ns = row->t_med_ns - 1, row->t_hi_ns = row->t_med_ns + 1, row->checked_pct = 100, row->seed = 1;
    }
    return table;
}

/* Line plots and maps take rows. */
static void no_row_is_obeyed(void **state)
{
    char path[200];
    (void)state;
    if (!have_gnuplot()) skip();
    unlink(text(path, sizeof path, "%s/breakdown.csv", run)), unlink(text(path, sizeof path, "%s/counters.csv", run));
    for (int i = 0; i < COUNT(hostile); i++) {
        struct table table = table_of(hostile[i]);
        struct plot_result result = plot_run(run, &table);
        if (result.written != 9 || result.unfit) fail_msg("%s: %d plots, %s", hostile[i], result.written, result.note);
        assert_int_equal(all_strangers(), 0);
        table_free(&table);
    }
}

/* A link where a picture goes does not lead gnuplot to what is no picture. */
static void no_link_is_followed(void **state)
{
    char file[200], link[200], *words;
    size_t n;
    struct table none = {0};
    (void)state;
    if (!have_gnuplot()) skip();
    write_run("victim.csv", "mine");
    char *parts = breakdown_of((const char *const[]){"../../PWNED"}, 1);
    text(link, sizeof link, "%s/plots/_._.._PWNED-breakdown.svg", run);
    unlink(link);
    assert_int_equal(symlink("../victim.csv", link), 0);
    write_run("breakdown.csv", parts);
    assert_int_equal(plot_run(run, &none).written, 1);
    assert_int_equal(file_read(text(file, sizeof file, "%s/victim.csv", run), &words, &n), 0);
    assert_string_equal(words, "mine");
    unlink(file), free(words), free(parts);
}

/* Numbers that no axis holds are no points, and take no time. */
static void odd_numbers_are_left_out(void **state)
{
    struct table none = {0};
    (void)state;
    if (!have_gnuplot()) skip();
    write_run("counters.csv", COUNTERS_HEAD "attn,a,host,1,,cold,1,1000,4e6,4e-324\nattn,a,host,1,,cold,1,1000,4e6,1e308\n"
        "attn,a,host,1,,cold,1,5e-324,4e300,2\nattn,a,host,1,,cold,1,1000,4e6,2\n");
    struct plot_result result = plot_run(run, &none);
    if (result.written != 2) fail_msg("%d plots: %s", result.written, result.note);
    char *script = read_plot("roofline.gp");
    assert_has(script, "$dots << END\n\"a\"\n2 4\n\n\nEND\n");
    free(script);
}

static char *bars_of(const char *breakdown)
{
    struct table none = {0};
    write_run("breakdown.csv", breakdown);
    plot_run(run, &none);
    return read_plot("attn-breakdown.gp");
}

static void ranges_are_shown(void **state)
{
    (void)state;
    if (!have_gnuplot()) skip();
    char *script = bars_of(BREAKDOWN_HEAD
        "attn,a,cuda,1,,cold,1,replay,kernel,nvjet_sm90_tss_64x384_64x3_1x2_h_bz_coopB_TNT,product,1,1,60,60,60\n"
        "attn,a,cuda,1,,cold,1,replay,kernel,indexer_relu,relu,1,1,30,30,30\n"
        "attn,a,cuda,1,,cold,1,replay,copy,copy,gather,1,1,10,10,10\n"
        "attn,a,cuda,1,,cold,1,replay,span,,,,1,100,100,100\n");
    assert_has(script, "'product: nvjet_sm90_tss_64x384.. 60.0 %'");
    assert_has(script, "'indexer_relu 30.0 %'");
    assert_has(script, "'gather: copy 10.0 %'");
    free(script);
}

/* Replays of one row: parts with their shares, the rest of 1000 ns gaps. */
static void put_row(FILE *out, const char *key, int n, const double *share)
{
    for (int i = 0; i < n; i++)
        fprintf(out, "attn,%s,1,replay,kernel,part%d,,1,1,%g,%g,%g\n", key, i, 10 * share[i], 10 * share[i], share[i]);
    fprintf(out, "attn,%s,1,replay,gaps,,,,1,1,1,0.1\nattn,%s,1,replay,span,,,,1,1000,1000,100\n", key, key);
}

static char *bars_of_rows(int n, const char *const *key, int parts, const double *share)
{
    char *sheet;
    size_t size;
    FILE *out = open_memstream(&sheet, &size);
    fputs(BREAKDOWN_HEAD, out);
    for (int i = 0; i < n; i++) put_row(out, key[i], parts, share);
    fclose(out);
    char *script = bars_of(sheet);
    free(sheet);
    return script;
}

static int count(const char *words, const char *word)
{
    int n = 0;
    for (; (words = strstr(words, word)); words++) n++;
    return n;
}

/* What has no room is said, on the last page and to whoever asked for plots. */
static void left_out_bars_are_said(void **state)
{
    static const double all[] = {99.9};
    struct table none = {0};
    char *sheet, key[80];
    size_t size;
    (void)state;
    if (!have_gnuplot()) skip();
    FILE *out = open_memstream(&sheet, &size);
    fputs(BREAKDOWN_HEAD, out);
    for (int i = 1; i <= 60; i++) put_row(out, text(key, sizeof key, "attn/k,cuda,%d,,cold", i), 1, all);
    fclose(out);
    write_run("breakdown.csv", sheet), unlink(text(key, sizeof key, "%s/counters.csv", run));
    struct plot_result result = plot_run(run, &none);
    assert_int_equal(result.written, 3);
    assert_true(!result.unfit && !result.refused);
    assert_has(result.note, "breakdowns of 24 of 60 rows of attn drawn");
    char *first = read_plot("attn-breakdown.gp"), *last = read_plot("attn-breakdown-3.gp");
    assert_has(first, "(grey: nothing runs), 1 of 3\"");
    assert_has(last, "'36 more rows: breakdown.csv'");
    assert_true(count(first, "'attn/k batch=") == 8 && !strstr(first, "more rows"));
    free(sheet), free(first), free(last);
}

static void left_out_kernels_are_said(void **state)
{
    struct table none = {0};
    char *sheet;
    size_t size;
    (void)state;
    if (!have_gnuplot()) skip();
    write_run("breakdown.csv", BREAKDOWN_HEAD);
    for (int kernels = 9; kernels <= 40; kernels += 31) {
        FILE *out = open_memstream(&sheet, &size);
        fputs(COUNTERS_HEAD, out);
        for (int i = 0; i < 12 * kernels; i++)
            fprintf(out, "attn,attn/k%d,cuda,%d,,cold,1,1000,4e6,%d\n", i % kernels, i / kernels,
                i % kernels < 9 ? 1 + i : 1000000);
        fclose(out);
        write_run("counters.csv", sheet);
        struct plot_result result = plot_run(run, &none);
        char *script = read_plot("roofline.gp");
        assert_int_equal(result.written, 1);
        assert_has(script, "\nkernels = 9\n");
        assert_int_equal(count(script, "\n\"attn/k"), 9);
        assert_null(strstr(script, ":4e+06]"));   /* no room for what is not drawn */
        assert_int_equal(count(script, " 4\n"), 12 * 9);   /* dots, at 4 TFLOP/s */
        assert_true(!strstr(script, "31 more kernels: counters.csv") == (kernels == 9));
        assert_true(!strstr(result.note, "31 more kernels than the roofline has marks for") == (kernels == 9));
        free(sheet), free(script);
    }
}

/* Rows have labels of their own: what differs is in them, and the time is never lost. */
static void labels_tell_rows_apart(void **state)
{
    static const char *const caches[] = {"a,cuda,1,splits=0;path=0,cold", "a,cuda,1,splits=0;path=0,hot"},
        *const tunes[] = {"a,cuda,1024,splits=0;path=0,cold", "a,cuda,2048,splits=4;path=0,cold", "b,cuda,1024,stages=0,cold"},
        *const wide[] = {"attn/a_kernel_with_quite_a_long_name,cuda,1,"
            "first_tunable=1;second_tunable=2;third_tunable=3;last=4,cold"};
    static const double all[] = {99.9};
    (void)state;
    if (!have_gnuplot()) skip();
    char *script = bars_of_rows(2, caches, 1, all);
    assert_has(script, "'a cold'"), assert_has(script, "'a hot'");
    free(script);
    script = bars_of_rows(3, tunes, 1, all);
    assert_has(script, "'a splits=0 batch=1K'"), assert_has(script, "'a splits=4 batch=2K'"), assert_has(script, "'b batch=1K'");
    assert_int_equal(count(script, "'1.00 us' at screen 0.97500, screen "), 3);   /* at the right edge */
    free(script);
    script = bars_of_rows(1, wide, 1, all);
    assert_has(script, "'attn/a_kernel_with_quite_a_long_name first_tunable=1' at screen 0.02500");
    assert_has(script, "'second_tunable=2 third_tunable=3 last=4' at screen 0.02500");
    free(script);
}

/* Beyond seven parts the smallest are one, and it is named. */
static void small_parts_are_one(void **state)
{
    static const char *const key[] = {"a,cuda,1,,cold"};
    static const double share[] = {30, 20, 15, 10, 9, 8, 4, 2, 1, 0.5};
    (void)state;
    if (!have_gnuplot()) skip();
    char *script = bars_of_rows(1, key, 8, share);
    assert_has(script, "'part7 2.00 %'");
    assert_null(strstr(script, "others"));
    free(script);
    script = bars_of_rows(1, key, 10, share);
    assert_has(script, "'part6 4.00 %'"), assert_has(script, "'3 others 3.50 %'");
    assert_null(strstr(script, "part7"));
    assert_int_equal(count(script, " rect from "), 1 + 8);
    free(script);
}

/* The words and the boxes of these parts have these colours, in this order. */
static void assert_colours(const char *script, int n, const char *const *parts, const char *const *colours)
{
    const char *box = script;
    for (int i = 0; i < n; i++) {
        char words[80];
        const char *at = strstr(script, text(words, sizeof words, "'%s %%'", parts[i]));
        assert_non_null(at);
        assert_memory_equal(strstr(at, "rgb '") + 5, colours[i], 7);
        do box = strstr(box + 1, " rect from "); while (strstr(box, "rgb '") && !strncmp(strstr(box, "rgb '") + 5, "#E4E4E4", 7));
        assert_memory_equal(strstr(box, "rgb '") + 5, colours[i], 7);
    }
}

#define PART_OF(batch, name, range, ns) \
    "attn,a,cuda," batch ",,cold,1,replay,kernel," name "," range ",1,1," ns "," ns "," ns "\n"
#define SPAN_OF(batch) "attn,a,cuda," batch ",,cold,1,replay,span,,,,1,100,100,100\n"
#define OTHER(batch) PART_OF(batch, "other", "", "99") SPAN_OF(batch)

/* Bars compare by colours: a part has its own in all of them, in whatever order and on whichever page; one with another name
 * takes a free one. */
static void parts_keep_their_colours(void **state)
{
    static const char *const parts[] = {"product64 40.0", "sum 30.0", "relu 20.0", "product32 40.0", "relu 30.0",
        "late: sum 20.0", "sum 10.0"};
    static const char *const colours[] = {"#0072B2", "#D55E00", "#009E73", "#0072B2", "#009E73", "#E69F00", "#D55E00"};
    static const char *const later[] = {"relu 50.0", "sum 30.0", "late: sum 10.0"};
    static const char *const kept[] = {"#009E73", "#D55E00", "#E69F00"};
    (void)state;
    if (!have_gnuplot()) skip();
    char *script = bars_of(BREAKDOWN_HEAD
        PART_OF("1", "product64", "", "40") PART_OF("1", "sum", "", "30") PART_OF("1", "relu", "", "20") SPAN_OF("1")
        PART_OF("2", "product32", "", "40") PART_OF("2", "relu", "", "30") PART_OF("2", "sum", "late", "20")
        PART_OF("2", "sum", "", "10") SPAN_OF("2")
        OTHER("3") OTHER("4") OTHER("5") OTHER("6") OTHER("7") OTHER("8")
        PART_OF("9", "relu", "", "50") PART_OF("9", "sum", "", "30") PART_OF("9", "sum", "late", "10") SPAN_OF("9"));
    char *second = read_plot("attn-breakdown-2.gp");
    assert_colours(script, COUNT(parts), parts, colours);
    assert_colours(second, COUNT(later), later, kept);
    free(script), free(second);
}
#undef PART_OF
#undef SPAN_OF
#undef OTHER

/* Parts that ran at once sum up to more than the bar has. */
static void bars_end_where_they_should(void **state)
{
    static const char *const key[] = {"a,cuda,1,,cold"};
    static const double share[] = {80, 60, 40};
    (void)state;
    if (!have_gnuplot()) skip();
    char *script = bars_of_rows(1, key, 3, share);
    int boxes = 0;
    for (const char *at = script; (at = strstr(at, " rect from screen ")); at++, boxes++) {
        double from, to;
        assert_int_equal(sscanf(at, " rect from screen %lf, screen %*f to screen %lf", &from, &to), 2);
        assert_true(from <= to && to < 624.01 / 640);
    }
    assert_int_equal(boxes, 4);
    free(script);
}

static void refused(const char *name, const char *words, const char *why)
{
    struct table none = {0};
    char path[200];
    write_run(name, words);
    struct plot_result result = plot_run(run, &none);
    if (result.written || !result.refused || result.unfit) fail_msg("%s: %d plots, '%s'", why, result.written, result.note);
    assert_has(result.note, why);
    unlink(text(path, sizeof path, "%s/%s", run, name));
}

/* What is cut short, or no such file, is told with its line. */
static void torn_files_are_told(void **state)
{
    const char line[] = "attn,a,cuda,1,,cold,1,replay,kernel,k,,1,1,90,90,90\n";
    const char span[] = "attn,a,cuda,1,,cold,1,replay,span,,,,1,100,100,100\n";
    char words[2000], path[200];
    (void)state;
    if (!have_gnuplot()) skip();
    unlink(text(path, sizeof path, "%s/counters.csv", run));
    refused("breakdown.csv", "", "breakdown.csv:1: no header");
    refused("breakdown.csv", "\x1f\x8b\x08 noise \n\"", "breakdown.csv:1: 'op': no such column");
    refused("breakdown.csv", "op,kernel\n", "breakdown.csv:1: 'tune': no such column");
    refused("breakdown.csv", text(words, sizeof words, "%s%s%sattn,a", BREAKDOWN_HEAD, line, span),
        "breakdown.csv:4: cut short within this line");
    refused("breakdown.csv", text(words, sizeof words, "%s%s%sattn,a\n", BREAKDOWN_HEAD, line, span),
        "breakdown.csv:4: another number of cells");
    refused("breakdown.csv", text(words, sizeof words, "%s%s%s", BREAKDOWN_HEAD, line, line),
        "breakdown.csv:3: cut short: the parts of a row without their span");
    refused("breakdown.csv", text(words, sizeof words, "%s%s%.*sx\n", BREAKDOWN_HEAD, line, (int)sizeof span - 5, span),
        "breakdown.csv:3: 'x': not a number");
    refused("breakdown.csv", text(words, sizeof words, "%s%s%.*s\n%s", BREAKDOWN_HEAD, line, (int)sizeof span - 5, span,
        span),
        "breakdown.csv:3: no share, or no time");
    refused("counters.csv", COUNTERS_HEAD "attn,a,host,1,,cold,1,1000,4e6,2\nattn", "counters.csv:3: cut short within this line");
    refused("counters.csv", COUNTERS_HEAD "attn,a,host,1,,cold,1,1000,\"4e6,2\n", "counters.csv:2: cut short within this line");
    write_run("breakdown.csv", text(words, sizeof words, "%s%s\n%s", BREAKDOWN_HEAD, line, span));   /* a blank line is nothing */
    struct table none = {0};
    struct plot_result result = plot_run(run, &none);
    assert_true(result.written == 1 && !result.refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cell_is_obeyed), cmocka_unit_test(no_row_is_obeyed), cmocka_unit_test(no_link_is_followed),
        cmocka_unit_test(odd_numbers_are_left_out), cmocka_unit_test(ranges_are_shown),
        cmocka_unit_test(left_out_bars_are_said), cmocka_unit_test(left_out_kernels_are_said),
        cmocka_unit_test(labels_tell_rows_apart), cmocka_unit_test(small_parts_are_one),
        cmocka_unit_test(parts_keep_their_colours),
        cmocka_unit_test(bars_end_where_they_should), cmocka_unit_test(torn_files_are_told),
    };
    return cmocka_run_group_tests(tests, make_top, remove_top);
}

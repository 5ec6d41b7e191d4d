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
        "attn,a,host,1,,cold,1,5e-324,4e300,2\nattn,a,host,1,,cold,1,nan,inf,2\nattn,a,host,1,,cold,1,1000,4e6,2\n");
    assert_int_equal(plot_run(run, &none).written, 2);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cell_is_obeyed), cmocka_unit_test(no_row_is_obeyed), cmocka_unit_test(no_link_is_followed),
        cmocka_unit_test(odd_numbers_are_left_out), cmocka_unit_test(ranges_are_shown),
    };
    return cmocka_run_group_tests(tests, make_top, remove_top);
}

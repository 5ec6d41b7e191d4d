/* Plots: which figures a table gives, what their scripts say, and every way in which gnuplot can fail to be there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base.h"
#include "comma_locale.h"
#include "csv.h"
#include "figure.h"
#include "gnuplot.h"
#include "plot.h"
#include "plot_script.h"

static char top[64], real_path[4000];

static int make_top(void **state)
{
    (void)state;
    strcpy(top, "/tmp/kbench-plot-XXXXXX");
    text(real_path, sizeof(real_path), "%s", getenv("PATH") ? getenv("PATH") : "");
    return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
    (void)state;
    char command[128];
    return system(text(command, sizeof(command), "rm -rf '%s'", top));
}

static struct row *add_row(struct table *table, const char *op, const char *kernel, int64_t batch, int64_t ctx, double ns)
{
    table->row = must_grow(table->row, (size_t)table->n + 1, sizeof(table->row[0]));
    struct row *row = &table->row[table->n++];
    row_clear(row);
    text(row->op, sizeof(row->op), "%s", op);
    text(row->kernel, sizeof(row->kernel), "%s", kernel);
    strcpy(row->engine, "host");
    strcpy(row->status, "ok");
    strcpy(row->cache, "cold");
    row->n_dims = 2;
    row->dim[0] = (struct row_dim){"batch", batch};
    row->dim[1] = (struct row_dim){"ctx", ctx};
    row->t_med_ns = ns;
    row->t_lo_ns = ns * 0.9;
    row->t_hi_ns = ns * 1.25;
    row->limit_ns = ns / 10;
    row->checked_pct = 100;
    row->seed = 1;
    return row;
}

/* Kernels times batch times ctx; time grows with batch. */
static struct table make_table(int n_kernels, int n_batch, int n_ctx)
{
    struct table table = {0};
    for (int c = 0; c < n_ctx; c++) {
        for (int b = 0; b < n_batch; b++) {
            for (int k = 0; k < n_kernels; k++) {
                char kernel[32];
                add_row(&table, "attn", text(kernel, sizeof(kernel), "attn/k%d", k), 1 << b, 1024 << c,
                    1000.0 * (1 << b) / (k + 1));
            }
            add_row(&table, "attn", "attn/probe", 1 << b, 1024 << c, 100.0 * (1 << b))->checked_pct = NAN;
        }
    }
    return table;
}

static int count_slices(const struct table *table)
{
    int n;
    free(slices_find(table, &n));
    return n;
}

static void test_slices(void **state)
{
    (void)state;
    struct table table = make_table(2, 3, 2);
    int n;
    struct slice *slices = slices_find(&table, &n);
    assert_int_equal(n, 2 + 3);   /* batch at 2 ctx, ctx at 3 batches */
    assert_string_equal(slices[0].dim, "batch");
    assert_string_equal(slices[0].unit, "requests");
    assert_string_equal(slices[1].dim, "ctx");   /* axes take turns */
    assert_int_equal(slices[0].values, 3);
    assert_int_equal(slices[0].points, 6);
    assert_true(row_dim(slices[0].like, "ctx") == 2048);   /* none is a default: the larger one */
    free(slices);
    strcpy(table.row[0].cache, "hot");
    assert_int_equal(count_slices(&table), 5);   /* one hot row makes no axis */
    table_free(&table);
}

static void test_most_points_come_first_then_defaults(void **state)
{
    (void)state;
    struct table table = {0};
    int n;
    for (int b = 1; b <= 4; b *= 2) {
        add_row(&table, "attn", "attn/a", b, 4096, 100.0 * b);
        add_row(&table, "attn", "attn/a", b, 8192, 100.0 * b);   /* the op's default */
        add_row(&table, "attn", "attn/a", b, 16384, 100.0 * b);
    }
    add_row(&table, "attn", "attn/a", 8, 4096, 800);
    struct slice *slices = slices_find(&table, &n);
    int64_t order[3], k = 0;
    for (int s = 0; s < n; s++) {
        if (!strcmp(slices[s].dim, "batch")) order[k++] = row_dim(slices[s].like, "ctx");
    }
    assert_true(k == 3 && order[0] == 4096 && order[1] == 8192 && order[2] == 16384);
    free(slices);
    table_free(&table);
}

static void test_no_axis_without_two_measured_values(void **state)
{
    (void)state;
    struct table table = {0};
    assert_int_equal(count_slices(&table), 0);
    add_row(&table, "attn", "attn/a", 1, 1024, 100);
    assert_int_equal(count_slices(&table), 0);
    strcpy(add_row(&table, "attn", "attn/a", 2, 1024, 100)->status, "crash");
    assert_int_equal(count_slices(&table), 0);
    add_row(&table, "attn", "attn/probe", 2, 1024, 100)->checked_pct = NAN;   /* a probe alone is no figure */
    assert_int_equal(count_slices(&table), 0);
    add_row(&table, "attn", "attn/a", 4, 1024, NAN);
    assert_int_equal(count_slices(&table), 0);
    add_row(&table, "attn", "attn/a", 4, 1024, 100);
    assert_int_equal(count_slices(&table), 1);
    for (int i = 0; i < table.n; i++) {   /* what the op calls a label gives no axis */
        table.row[i].dim[1] = (struct row_dim){"ragged", i % 2};
        table.row[i].dim[0].value = 1;
    }
    assert_int_equal(count_slices(&table), 0);
    table_free(&table);
}

static const struct curve *find_curve(const struct figure *f, const char *label)
{
    for (int c = 0; c < f->n; c++) {
        if (!strcmp(f->curve[c].label, label)) return &f->curve[c];
    }
    fail_msg("no line %s", label);
    return NULL;
}

static int figures_of_first(const struct table *table, struct figure **ret)
{
    int n;
    struct slice *slices = slices_find(table, &n);
    assert_true(n >= 1);
    int made = figures_make(table, &slices[0], ret);
    free(slices);
    return made;
}

static void test_lines_of_a_figure(void **state)
{
    (void)state;
    struct table table = make_table(2, 3, 1);
    struct figure *f;
    strcpy(table.row[4].status, "wrong");   /* k1 at batch 2 */
    add_row(&table, "attn", "attn/k0", 4, 1024, 8000);   /* measured again: the later one counts */
    assert_int_equal(figures_of_first(&table, &f), 2);
    assert_false(f[0].ratio);
    assert_int_equal(f[0].n, 4);
    const struct curve *k0 = find_curve(&f[0], "attn/k0"), *k1 = find_curve(&f[0], "attn/k1");
    assert_int_equal(k0->n, 3);
    assert_true(k0->point[0].x == 1 && k0->point[0].y == 1000 && k0->point[0].lo == 900 && k0->point[0].hi == 1250);
    assert_true(k0->point[2].x == 4 && k0->point[2].y == 8000);
    assert_true(k1->n == 3 && isnan(k1->point[1].y));   /* the line breaks, it does not pass over */
    assert_int_equal(find_curve(&f[0], "attn/probe (probe)")->style, -1);
    assert_int_equal(find_curve(&f[0], "limit")->style, -2);

    assert_true(f[1].ratio);
    assert_string_equal(f[1].base, "attn/k0");
    const struct curve *ratio = find_curve(&f[1], "attn/k1");
    assert_true(ratio->point[0].y == 2);   /* the interval is the widest that both allow */
    assert_true(fabs(ratio->point[0].lo - 900 / 625.0) < 1e-12 && fabs(ratio->point[0].hi - 1250 / 450.0) < 1e-12);
    const struct point *one = &find_curve(&f[1], "attn/k0")->point[0];
    assert_true(one->y == 1 && one->lo == 1 && one->hi == 1);
    assert_true(find_curve(&f[1], "attn/probe (probe)")->point[0].y == 10);
    figures_free(f, 2);
    table_free(&table);
}

static void test_at_most_seven_lines(void **state)
{
    (void)state;
    struct table table = make_table(14, 2, 1);
    struct figure *f;
    int n = figures_of_first(&table, &f);
    assert_int_equal(n, 2 * 4);   /* the first of 14 and 4 others on each page */
    bool seen[14] = {false};
    for (int i = 0; i < n; i++) {
        assert_true(f[i].n <= MAX_LINES);
        assert_string_equal(f[i].curve[0].label, "attn/k0");
        for (int c = 0; c < f[i].n; c++) {
            int k;
            for (int d = 0; d < c; d++) assert_int_not_equal(f[i].curve[c].style, f[i].curve[d].style);
            assert_true(f[i].curve[c].style < STYLES);
            if (sscanf(f[i].curve[c].label, "attn/k%d", &k) == 1) seen[k] = true;
        }
    }
    for (int k = 0; k < 14; k++) assert_true(seen[k]);
    figures_free(f, n);
    table_free(&table);
}

static void test_names_of_figures(void **state)
{
    (void)state;
    struct table table = make_table(2, 2, 2);
    struct figure *f;
    char name[200];
    int n = figures_of_first(&table, &f);
    assert_string_equal(figure_name(&table, &f[0], name, sizeof(name)), "attn-batch-ctx2K");
    assert_string_equal(figure_name(&table, &f[1], name, sizeof(name)), "attn-batch-ctx2K-speedup");
    table.row[0].seed = 2;
    f[0].page = 1;
    assert_string_equal(figure_name(&table, &f[0], name, sizeof(name)), "attn-batch-ctx2K-seed1-2");
    strcpy(((struct row *)f[0].like)->op, "../etc/x y");
    assert_null(strpbrk(figure_name(&table, &f[0], name, sizeof(name)), "/ "));
    figures_free(f, n);
    table_free(&table);
}

static char *script_of(const struct table *table, int which)
{
    struct figure *f;
    int n = figures_of_first(table, &f);
    assert_true(which < n);
    char *script = figure_script(&f[which], "name", "# look\n");
    figures_free(f, n);
    return script;
}

static void assert_has(const char *script, const char *line)
{
    if (!strstr(script, line)) fail_msg("no '%s' in\n%s", line, script);
}

static void test_axes_of_a_script(void **state)
{
    (void)state;
    struct table table = make_table(2, 8, 1);
    char *script = script_of(&table, 0);
    assert_has(script, "xname = 'batch (requests)'");
    assert_has(script, "yname = 'time of one call (us)'");
    assert_has(script, "set logscale x");
    assert_has(script, "set logscale y");
    assert_has(script, "'128' 128)");
    assert_has(script, "styles = '1 2'\nkernels = 2\nprobes = 1\nlimits = 1\n");
    assert_has(script, "title = 'attn, cold, host'.\"\\n\".'ctx=1K'");
    assert_has(script, "# look\n");
    free(script);
    script = script_of(&table, 1);
    assert_has(script, "yname = 'speed-up'");
    assert_has(script, "speed-up over attn/k0");
    free(script);
    for (int i = 0; i < table.n; i++) table.row[i].dim[0].value = 1024 * (1 + row_dim(&table.row[i], "batch"));
    script = script_of(&table, 0);
    assert_has(script, "'2K' 2048");   /* powers of 1024 */
    free(script);
    table_free(&table);
}

/* Two long labels need more room than two short ones. */
static void test_labels_stand_apart(void **state)
{
    static const int64_t lengths[] = {2048, 16384, 131072, 262144, 1048576};
    (void)state;
    struct table table = {0};
    for (int i = 0; i < COUNT(lengths); i++) add_row(&table, "attn", "attn/a", 1, lengths[i], 1000);
    char *script = script_of(&table, 0);
    assert_has(script, "set xtics ('2K' 2048, '16K' 16384, '128K' 131072, '1M' 1048576)");
    free(script);
    table_free(&table);
    for (int b = 1; b <= 128; b *= 2) add_row(&table, "attn", "attn/a", b, 1024, 1000);
    script = script_of(&table, 0);
    assert_has(script, "set xtics ('1' 1, '2' 2, '4' 4, '8' 8, '16' 16, '32' 32, '64' 64, '128' 128)");
    free(script);
    table_free(&table);
}

static void test_ranges_are_never_empty(void **state)
{
    (void)state;
    struct table table = {0};
    for (int b = 0; b < 3; b++) {
        struct row *row = add_row(&table, "attn", "attn/a", b, 1024, 1000);
        row->t_lo_ns = row->t_hi_ns = 1000;
        row->limit_ns = NAN;
    }
    char *script = script_of(&table, 0);   /* zero on x, all equal on y */
    assert_null(strstr(script, "logscale"));
    assert_has(script, "set yrange [0:");
    assert_has(script, "'0' 0, '1' 1, '2' 2)");
    free(script);
    table.row[2].t_med_ns = table.row[2].t_hi_ns = INFINITY;
    table.row[1].t_lo_ns = 0;   /* no bar down to nothing on a log axis */
    script = script_of(&table, 0);
    assert_null(strstr(script, "inf"));
    free(script);
    table_free(&table);
}

static struct table odd_names(void)
{
    static const char *const names[] = {"attn/under_score", "a\"quote'd", "new\nline \033", "{/Symbol a}^2 @x", "back\\slash <&>"};
    struct table table = {0};
    for (int b = 0; b <= 4; b += 2) {
        for (int k = 0; k < COUNT(names); k++) {
            struct row *row = add_row(&table, "o'p_x", names[k], b, 1024, 1000.0 * (k + 1));
            if (b == 2 && k == 1) strcpy(row->status, "wrong");
            strcpy(row->dim[0].name, "d_i'm");
        }
    }
    return table;
}

static void use_path(const char *path)
{
    setenv("PATH", path, 1);
}

static bool have_gnuplot(void)
{
    char why[256];
    return !gnuplot_probe(why, sizeof(why));
}

static char *read_all(const char *name)
{
    char path[300], *bytes;
    size_t n;
    if (file_read(text(path, sizeof(path), "%s/%s", top, name), &bytes, &n)) fail_msg("no %s", path);
    return bytes;
}

static void test_gnuplot_draws(void **state)
{
    (void)state;
    if (!have_gnuplot()) skip();
    struct table table = make_table(2, 3, 2);
    struct plot_result result = plot_run(top, &table);
    assert_string_equal(result.note, "");
    assert_int_equal(result.written, 2 * 5);
    char *svg = read_all("plots/attn-batch-ctx2K.svg");
    assert_has(svg, "time of one call (ns)");
    assert_has(svg, "attn/probe (probe)");
    assert_has(svg, "rgb(  0, 114, 178)");   /* the palette's blue */
    free(svg);
    svg = read_all("plots/attn-batch-ctx2K-speedup.svg");
    assert_has(svg, "speed-up over attn/k0");
    free(svg);
    table_free(&table);
    table = make_table(2, 6, 6);
    result = plot_run(top, &table);
    assert_int_equal(result.written, 12);
    assert_has(result.note, "12 of 24 plots drawn");
    assert_false(result.unfit);
    table_free(&table);
}

static void test_gnuplot_draws_odd_names(void **state)
{
    (void)state;
    if (!have_gnuplot()) skip();
    struct table table = odd_names();
    struct plot_result result = plot_run(top, &table);
    assert_string_equal(result.note, "");
    assert_int_equal(result.written, 2);
    char *svg = read_all("plots/o_p_x-d_i_m.svg");
    static const char *const words[] = {"o'p_x, cold", "d_i'm", "attn/under_score", "a'quote'd", "new line ?", "{/Symbol a}^2 @x"};
    for (int i = 0; i < COUNT(words); i++) assert_has(svg, words[i]);
    assert_has(svg, "back\\slash &lt;&amp;>");
    free(svg);
    table_free(&table);
}

static void test_comma_locale_draws_the_same(void **state)
{
    (void)state;
    struct table table = make_table(2, 3, 1);
    struct figure *f;
    int n = figures_of_first(&table, &f);
    char *data = figure_data(&f[0]), *script = figure_script(&f[0], "name", "");
    if (!comma_locale_enter(top)) {
        comma_locale_leave();
        skip();
    }
    char *data_then = figure_data(&f[0]), *script_then = figure_script(&f[0], "name", "");
    comma_locale_leave();
    assert_string_equal(data_then, data);
    assert_string_equal(script_then, script);
    free(data);
    free(script);
    free(data_then);
    free(script_then);
    figures_free(f, n);
    table_free(&table);
}

/* A gnuplot of ours on PATH. */
static void fake_gnuplot(const char *script)
{
    char bin[100], path[128];
    mkdir(text(bin, sizeof(bin), "%s/bin", top), 0777);
    FILE *file = fopen(text(path, sizeof(path), "%s/gnuplot", bin), "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
    use_path(bin);
}

static void test_gnuplot_not_fit(void **state)
{
    (void)state;
    static const struct { const char *script, *note; } cases[] = {
        {"echo gnuplot 4.6 patchlevel 0", "gnuplot 4.6 patchlevel 0 is too old"},
        {"echo hello", "does not answer to --version"},
        {"exit 3", "does not answer to --version"},
        {"[ $1 = --version ] && { echo gnuplot 5.4; exit; }; exit 1", "has no svg terminal"},
        {"[ $1 = --version ] && { echo gnuplot 5.4; exit; }; [ $1 = -e ] && exit; echo '\"x.gp\" line 3: bad' >&2; exit 1",
            "gnuplot failed on attn-batch.gp: \"x.gp\" line 3: bad"},
        {"[ $1 = --version ] && { echo gnuplot 5.4; exit; }; [ $1 = -e ] && exit; kill -9 $$", "gnuplot failed on attn-batch.gp"},
        {"[ $1 = --version ] && { echo gnuplot 5.4; exit; }; [ $1 = -e ] && exit; echo '<svg' > attn-batch.svg", "came out torn"},
    };
    struct table table = make_table(1, 3, 1);
    for (int i = 0; i < COUNT(cases); i++) {
        char svg[128];
        fake_gnuplot(cases[i].script);
        struct plot_result result = plot_run(top, &table);
        use_path(real_path);
        assert_int_equal(result.written, 0);
        assert_true(result.unfit);
        assert_has(result.note, cases[i].note);
        assert_int_not_equal(access(text(svg, sizeof(svg), "%s/plots/attn-batch.svg", top), F_OK), 0);
    }
    char empty[100];
    mkdir(text(empty, sizeof(empty), "%s/empty", top), 0777);
    use_path(empty);
    struct plot_result result = plot_run(top, &table);
    use_path(real_path);
    assert_has(result.note, "gnuplot not found: no plots; apt-get install gnuplot-nox");
    table_free(&table);
}

static void test_folder_not_fit(void **state)
{
    (void)state;
    if (!have_gnuplot()) skip();
    struct table table = make_table(1, 3, 1);
    char folder[100], plots[128];
    mkdir(text(folder, sizeof(folder), "%s/blocked", top), 0777);
    fclose(fopen(text(plots, sizeof(plots), "%s/plots", folder), "w"));   /* a file where the folder should be */
    struct plot_result result = plot_run(folder, &table);
    assert_true(result.written == 0 && result.unfit);
    assert_has(result.note, "can't be written");
    result = plot_run("/nowhere/run", &table);
    assert_true(result.written == 0 && result.unfit);
    table_free(&table);
    struct table none = {0};
    result = plot_run(top, &none);
    assert_true(result.written == 0 && !result.unfit);
    assert_has(result.note, "no dimension has two values");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices), cmocka_unit_test(test_most_points_come_first_then_defaults),
        cmocka_unit_test(test_no_axis_without_two_measured_values), cmocka_unit_test(test_lines_of_a_figure),
        cmocka_unit_test(test_at_most_seven_lines), cmocka_unit_test(test_names_of_figures),
        cmocka_unit_test(test_axes_of_a_script),
        cmocka_unit_test(test_labels_stand_apart),
        cmocka_unit_test(test_ranges_are_never_empty), cmocka_unit_test(test_gnuplot_draws),
        cmocka_unit_test(test_gnuplot_draws_odd_names), cmocka_unit_test(test_comma_locale_draws_the_same),
        cmocka_unit_test(test_gnuplot_not_fit), cmocka_unit_test(test_folder_not_fit),
    };
    return cmocka_run_group_tests(tests, make_top, remove_top);
}

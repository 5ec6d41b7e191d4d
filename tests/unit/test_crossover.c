/* Which kernel is fastest where: winners, ties that are shown as ties, maps, and what stands in crossover.csv. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include "base.h"
#include "crossover.h"
#include "csv.h"
#include "fake.h"
#include "plot_map.h"
#include "report.h"

static struct row make_row(const char *kernel, int64_t batch, int64_t ctx, double t, double width)
{
    struct row row;
    row_clear(&row);
    strcpy(row.op, "mix");
    text(row.kernel, sizeof(row.kernel), "%s", kernel);
    strcpy(row.engine, "cuda");
    strcpy(row.status, "ok");
    strcpy(row.cache, "cold");
    row.n_dims = 3;
    row.dim[0] = (struct row_dim){"batch", batch};
    row.dim[1] = (struct row_dim){"ctx", ctx};
    row.dim[2] = (struct row_dim){"topk", 512};
    row.seed = 1;
    row.t_med_ns = t, row.t_lo_ns = t * (1 - width), row.t_hi_ns = t * (1 + width);
    row.checked_pct = 100;
    return row;
}

static void winners(void **state)
{
    (void)state;
    struct row row[] = {make_row("mix/slow", 1, 1024, 200, 0.001), make_row("mix/near", 1, 1024, 101.9, 0.001),
        make_row("mix/fast", 1, 1024, 100, 0.001), make_row("mix/wide", 1, 1024, 120, 0.25),
        make_row("mix/far", 1, 1024, 103, 0.001)};
    struct contest c = contest_of(row, 5);
    assert_ptr_equal(c.best, &row[2]);
    assert_int_equal(c.n_ties, 3);                   /* within 2 %, or an interval that reaches it */
    assert_ptr_equal(c.tie[0], &row[2]);
    assert_ptr_equal(c.tie[1], &row[1]);
    assert_ptr_equal(c.tie[2], &row[3]);
    assert_ptr_equal(c.next, &row[4]);
    assert_null(contest_of(row, 1).best);            /* alone is no contest */
    assert_null(contest_of(row, 0).best);
}

static void who_does_not_compete(void **state)
{
    (void)state;
    struct row row[] = {make_row("mix/a", 1, 1024, 100, 0.001), make_row("mix/wrong", 1, 1024, 10, 0.001),
        make_row("mix/probe", 1, 1024, 10, 0.001), make_row("mix/nan", 1, 1024, NAN, 0.001), make_row("mix/b", 1, 1024, 300, 0.001),
        make_row("mix/b", 1, 1024, 90, 0.001)};
    strcpy(row[1].status, "wrong");
    row[2].checked_pct = NAN;
    strcpy(row[4].tune, "splits=1"), strcpy(row[5].tune, "splits=4");
    struct contest c = contest_of(row, 6);
    assert_ptr_equal(c.best, &row[5]);               /* of a kernel's tunables the fastest counts */
    assert_int_equal(c.n_ties, 1);
    assert_ptr_equal(c.next, &row[0]);
}

/* a wins below batch 16, b above, and they tie at it. */
static struct table crossing(struct row *row)
{
    int n = 0;
    for (int64_t ctx = 1024; ctx <= 1 << 20; ctx *= 32)
        for (int64_t batch = 1; batch <= 64; batch *= 4) {
            row[n++] = make_row("mix/a", batch, ctx, (double)batch, 0.001);
            row[n++] = make_row("mix/b", batch, ctx, batch == 16 ? 16 : 8 + (double)batch / 2, 0.001);
            row[n++] = make_row("mix/never", batch, ctx, 1000, 0.001);
        }
    return (struct table){.n = n, .row = row, .n_dims = 3, .dims = {"batch", "ctx", "topk"}};
}

static void maps(void **state)
{
    struct row row[36];
    int n;
    (void)state;
    struct table table = crossing(row);
    struct map *map = maps_find(&table, &n);
    assert_int_equal(n, 1);
    assert_string_equal(map->down, "batch");
    assert_string_equal(map->across, "ctx");
    assert_int_equal(map->n_down, 4);
    assert_int_equal(map->n_across, 3);
    assert_int_equal(map->n_cells, 12);
    assert_int_equal(map->n_kernels, 2);             /* who never wins is not named */
    for (int x = 0; x < 3; x++) {
        assert_int_equal(map->cell[0][x].n, 1);
        assert_string_equal(map->kernel[map->cell[0][x].kernel[0]], "mix/a");
        assert_int_equal(map->cell[2][x].n, 2);
        assert_int_equal(map->cell[3][x].n, 1);
        assert_string_equal(map->kernel[map->cell[3][x].kernel[0]], "mix/b");
    }
    free(map);
    table.n = 12;                                    /* one context: nothing crosses */
    map = maps_find(&table, &n);
    assert_int_equal(n, 0);
    free(map);
    table.n = 0;
    map = maps_find(&table, &n);
    assert_int_equal(n, 0);
    free(map);
}

static void pages(void **state)
{
    static const char plain[] =
        "\nfastest: mix (cold, cuda); several letters: a tie\n"
        "  a mix/a    b mix/b O(ctx)\n"
        "     batch  ctx\n"
        "               1K    32K     1M\n"
        "         1      a      a      a\n"
        "         4      a      a      a\n"
        "        16     ab     ab     ab\n"
        "        64      b      b      b\n";
    struct row row[36];
    struct table table = crossing(row);
    char *page;
    size_t size;
    (void)state;
    for (int i = 1; i < 36; i += 3) strcpy(row[i].declared, "ctx^1");
    for (int markdown = 0; markdown < 2; markdown++) {
        struct report_options options = {.width = 80, .markdown = markdown};
        FILE *out = open_memstream(&page, &size);
        report_crossover(out, &table, &options);
        fclose(out);
        if (markdown) assert_non_null(strstr(page, "| 16 | `mix/a` = `mix/b O(ctx)` | `mix/a` = `mix/b O(ctx)` |"));
        else assert_string_equal(page, plain);
        free(page);
    }
}

static void lines_of_csv(void **state)
{
    struct row row[36];
    struct table table = crossing(row);
    (void)state;
    char *csv = crossover_csv(&table);
    assert_non_null(strstr(csv, "op,batch,ctx,topk,engine,cache,seed,fastest,tune,t_med_ns,ties,next,next_ratio\n"));
    assert_non_null(strstr(csv, "\nmix,1,1024,512,cuda,cold,1,mix/a,,1,,mix/b,8.5\n"));
    assert_non_null(strstr(csv, "\nmix,16,1024,512,cuda,cold,1,mix/a,,16,mix/b,mix/never,62.5\n"));
    free(csv);
}

static void scripts(void **state)
{
    struct row row[36];
    struct table table = crossing(row);
    int n, fields = 0;
    char name[100];
    (void)state;
    struct map *map = maps_find(&table, &n);
    assert_string_equal(map_name(&table, map, name, sizeof(name)), "mix-fastest-cuda-cold");
    char *script = map_script(&table, map, name, "# look\n");
    for (const char *at = script; (at = strstr(at, "set object ")); at++) fields++;
    assert_int_equal(fields, 15);                    /* twelve fields, three of them in two strips */
    assert_non_null(strstr(script, "set ytics ('1' 0, '4' 1, '16' 2, '64' 3)\n"));
    assert_non_null(strstr(script, "set xtics ('1K' 0, '32K' 1, '1M' 2)\n"));
    assert_non_null(strstr(script, "name(i) = i == 1 ? 'a  mix/a' : i == 2 ? 'b  mix/b' : ''\n"));
    assert_non_null(strstr(script, "\n# look\n"));
    free(script);
    free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(winners), cmocka_unit_test(who_does_not_compete), cmocka_unit_test(maps), cmocka_unit_test(pages),
        cmocka_unit_test(lines_of_csv), cmocka_unit_test(scripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A profile read back: `kbench report` shows of its files what `kbench profile` showed, line by line; of torn ones why not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base.h"
#include "csv.h"
#include "profile_files.h"
#include "profile_read.h"
#include "report_profile.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/kbench-report-XXXXXX");
    return !mkdtemp(folder);
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    return system(text(command, sizeof command, "rm -rf '%s'", folder));
}

static void write_file(const char *name, const char *words)
{
    char path[200];
    FILE *file = fopen(text(path, sizeof path, "%s/%s", folder, name), "w");
    assert_non_null(file);
    fputs(words, file);
    fclose(file);
}

static struct row a_row(const char *kernel)
{
    struct row row;
    row_clear(&row);
    strcpy(row.op, "attn"), strcpy(row.engine, "cuda"), strcpy(row.cache, "cold"), strcpy(row.status, "ok");
    text(row.kernel, sizeof row.kernel, "%s", kernel);
    row.n_dims = 1, row.dim[0].value = 64, row.seed = 1;
    strcpy(row.dim[0].name, "batch");
    row.checked_pct = 100, row.t_med_ns = 62345.678, row.flop = 5e9, row.bytes = 5e7, row.workspace_B = 200 << 20;
    return row;
}

static struct machine a_machine(void)
{
    return (struct machine){.engine = CUDA, .facts.l2_bytes = 60 << 20, .ceilings = {.read_GBps = 4691, .matrix_GFLOPs = 787e3}};
}

/* Two kernels a call, of 7 calls a launch; all that a device counts. To be freed. */
static struct profile *a_profile(void)
{
    struct profile *p = must_alloc(1, sizeof *p);
    profile_clear(p);
    p->replay = (struct breakdown){.launches = 20, .used = 19, .calls = 7, .n = 2, .span_ns = 8291983, .busy_ns = 8291083,
        .gap_ns = 1900, .overlap_ns = 1000, .records = 281, .unmatched = 1, .missing = 1, .zero_time = 3, .kernels = 266,
        .kernels_per_call = 2, .untraced_ns = 61999.5, .ratio = 8291983 / (19 * 7 * 61999.5), .mapped = true};
    p->replay.part[0] = (struct part){.count = 133, .total_ns = 6291083, .name = "attn_gather", .range = "scores"};
    p->replay.part[1] = (struct part){.count = 133, .total_ns = 2000000, .name = "attn_softmax<64>, 1"};
    p->eager = (struct breakdown){.launches = 1, .used = 1, .calls = 1, .span_ns = 509877, .kernels = 3, .records = 3};
    p->read_B = 46301952, p->write_B = 4210688, p->calls = 7;
    p->counters.dram_read_B = 90e6, p->counters.dram_write_B = 4e6, p->counters.l2_read_B = 2567808201.142857;
    p->counters.l2_write_B = 4325376, p->counters.l2_hit_pct = 96.31462144928902, p->counters.tensor_pct = 0.62;
    p->counters.issue_pct = 63.27, p->counters.occupancy_pct = 24.56, p->counters.sm_busy_pct = 97.27;
    p->counters.cycles = 3e6, p->counters.instructions = 4e6, p->counters.passes = 14;
    return p;
}

/* What reading the folder gives; to be freed. */
static char *reported(const struct row *row, bool markdown)
{
    struct report_options o = {.width = 80, .markdown = markdown};
    struct sheet breakdown, counters;
    char *words, why[700];
    size_t size;
    if (!profile_read_breakdown(folder, &breakdown, why, sizeof why)) o.breakdown = &breakdown;
    else fail_msg("%s", why);
    if (!profile_read_lines(folder, &counters, why, sizeof why)) o.counters = &counters;
    else fail_msg("%s", why);
    FILE *out = open_memstream(&words, &size);
    report_trees(out, row, 1, &o);
    fclose(out);
    sheet_free(&breakdown), sheet_free(&counters);
    return words;
}

/* Written and read again it is what was shown; the words are the caller's to look at, and to free. */
static char *same_again(const struct row *row, const struct profile *p)
{
    struct machine machine = a_machine();
    struct runfolder run = {.n_dims = 1, .dims = {"batch"}};
    struct profile_files files;
    char *live = NULL;
    text(run.path, sizeof run.path, "%s", folder);
    assert_int_equal(profile_files_open(&files, &run, false), 0);
    assert_int_equal(profile_files_write(&files, row, p, &machine), 0);
    profile_files_close(&files);
    for (int markdown = 1; markdown >= 0; markdown--) {
        struct report_options o = {.width = 80, .markdown = markdown};
        size_t size;
        free(live);
        FILE *out = open_memstream(&live, &size);
        report_profile(out, row, p, &machine, &o);
        fclose(out);
        char *again = reported(row, markdown);
        assert_string_equal(again, live);
        free(again);
    }
    return live;
}

static void assert_has(const char *words, const char *what)
{
    if (!strstr(words, what)) fail_msg("no '%s' in\n%s", what, words);
}

static void report_says_what_profile_said(void **state)
{
    struct row row = a_row("attn/lt");
    struct profile *p = a_profile();
    (void)state;
    char *words = same_again(&row, p);
    assert_has(words, "L2 to SMs 55.5x");
    assert_has(words, "DRAM reads 1.94x of what must be read");
    assert_has(words, "281 records of 20 launches (19\n      used), 3 without time, 1 foreign, 1 missing; eager 510 us");
    assert_has(words, "eager 510 us with 3 kernels\n");
    assert_has(words, "1.33 instructions a cycle");
    free(words);
    p->counters.l2_write_B = 150e6;   /* a workspace larger than L2, of which not all came from DRAM */
    words = same_again(&row, p);
    assert_has(words, "workspace moves 292 MB");
    assert_has(words, "no DRAM factor: the workspace is partly in L2");
    assert_null(strstr(words, "DRAM reads"));
    free(words);
    p->replay.used = p->replay.launches = 1, p->replay.span_ns = 68;   /* 7 calls: no whole nanoseconds each */
    words = same_again(&row, p);
    assert_has(words, "traced: 9.71 ns a call");
    free(words), free(p);
}

/* What the machine was not quiet for, alone and behind another reason. */
static void doubts_are_read_back(void **state)
{
    struct row row = a_row("attn/lt");
    struct profile *p = a_profile();
    (void)state;
    p->replay.disturbed = 3, p->replay.disturbed_ns = 400000, p->disturbed = 2;
    char *words = same_again(&row, p);
    assert_has(words, "\n    not quiet under the tracer: 3 of 19 launches took longer, 4.82 % of all; not\n");
    assert_has(words, "\n      quiet under the counters: 2 of 14 passes took longer\n");
    assert_null(strstr(words, "no trace"));
    free(words);
    counters_clear(&p->counters);
    strcpy(p->counters.why, "no CUPTI");
    p->disturbed = 0, p->replay.disturbed_ns = 0, p->replay.untraced_ns = 2 * row.t_med_ns;
    words = same_again(&row, p);
    assert_has(words, "\n    no counters: no CUPTI\n    not quiet: untraced, it takes 2.00x of the row's time\n");
    free(words), free(p);
}

/* Who lacks something says why where it said it at once, each reason in its own place. */
static void reasons_keep_their_places(void **state)
{
    const char *held = "another tool holds CUPTI (nsys, ncu, a debugger?); events alone are used beside it";
    const char *refused = "the kernel refuses counters: as root, sysctl kernel.perf_event_paranoid=2; counters of others";
    struct row row = a_row("attn/lt");
    struct profile *p = a_profile();
    (void)state;
    counters_clear(&p->counters);
    strcpy(p->counters.why, refused);
    strcpy(p->eager.failed, "the tracer dropped 1 records");
    char *words = same_again(&row, p);
    assert_has(words, "the eager launch is not\n      believed: the tracer dropped 1 records\n    no counters: the kernel");
    free(words);
    p->eager = (struct breakdown){.launches = 0};
    strcpy(p->note, "a trace is under way already");   /* before the launch outside of a graph */
    free(same_again(&row, p));
    p->replay = (struct breakdown){.launches = 0};
    strcpy(p->note, held);
    words = same_again(&row, p);
    assert_has(words, "\n    no trace: another tool holds CUPTI");
    assert_has(words, "\n    no counters: the kernel refuses");
    free(words);
    *p->counters.why = 0;
    free(same_again(&row, p));
    *p->note = 0;
    strcpy(p->replay.failed, "crash: signal 11 under the tracer");
    words = same_again(&row, p);
    assert_has(words, "\n    the breakdown does not hold: crash: signal 11 under the tracer\n");
    free(words);
    p->replay.launches = 20, p->replay.records = 3, p->replay.kernels_per_call = 0, p->replay.missing = 137;   /* none whole */
    p->replay.ratio = p->replay.untraced_ns = NAN;
    free(same_again(&row, p));
    free(p);
}

/* As another version has it: columns in another order, new ones, and without those that came later. */
#define HEAD "why,kernel,op,l2_reread,new,engine,dram_reread,batch,l2_hit_pct,tune,cache,seed,breakdown,traced_ns,trace_ratio," \
    "records,launches,launches_used,kernels_per_call,grid,tensor_pct,workspace_moved_B,pct_read_ceiling\n"
#define PARTS "op,kernel,engine,batch,tune,cache,seed,pass,part,grid,name,count,calls,total_ns,t_ns,share_pct\n" \
    "attn,attn/simt,cuda,64,,cold,1,replay,kernel,64,attn_simt,140,140,66606552,475761.1,100\n" \
    "attn,attn/simt,cuda,64,,cold,1,replay,span,,,,140,66606552,475761.1,100\n"

static void columns_go_by_name(void **state)
{
    static const char *const lines[] = {"attn_simt                             1x    476 us  100.0 %  ###############",
        "traced: 476 us a call, 1.00x of untraced, 140 records of 20 launches",
        "bytes: DRAM reads 1.00x of what must be read, L2 to SMs 55.5x, 96.3 % of L2\n      sectors hit",
        "use: DRAM at 2.27 % of the read ceiling, tensor pipe 0.62 %"};
    struct row row = a_row("attn/simt"), other = a_row("attn/mma");
    (void)state;
    write_file("breakdown.csv", PARTS);
    write_file("counters.csv", HEAD ",attn/mma,attn,1.105,,cuda,,64,,,cold,1,,,,,,,,,,,\n"
        ",attn/simt,attn,55.45788223232699,7,cuda,1.0005434143004843,64,96.31,,cold,1,ok,475761.09,1.0044,140,20,20,1,64,"
        "0.6197,0,2.2745\n");
    char *words = reported(&row, false);
    for (int i = 0; i < COUNT(lines); i++) assert_has(words, lines[i]);
    free(words);
    words = reported(&other, false);   /* nothing else is known of it: empty is no 0 */
    assert_string_equal(words, "\n  attn/mma\n    bytes: L2 to SMs 1.10x\n");
    free(words);
}

/* Files from before reasons had labels. */
static void older_reasons_are_shown(void **state)
{
    struct row row = a_row("attn/simt");
    (void)state;
    write_file("breakdown.csv", PARTS);
    write_file("counters.csv", HEAD
        "no hardware counters here; really,attn/simt,attn,,,cuda,,64,,,cold,1,ok,475761.09,,140,20,20,1,,,,\n");
    char *words = reported(&row, false);
    assert_has(words, "\n    no counters: no hardware counters here; really\n");
    free(words);
    write_file("counters.csv", HEAD "no CUPTI\x1b[7m\x07,attn/simt,attn,,,cuda,,64,,,cold,1,,,,,,,,,,,\n");
    words = reported(&row, false);
    assert_has(words, "\n    no trace: no CUPTI?[7m?\n");
    free(words);
}

/* No line of it, and no file of it: the tree alone. */
static void trees_stand_alone(void **state)
{
    struct row row = a_row("attn/simt");
    struct report_options o = {.width = 80};
    struct sheet breakdown;
    char *words, *alone, why[700];
    size_t size;
    (void)state;
    write_file("breakdown.csv", PARTS);
    write_file("counters.csv", HEAD);
    words = reported(&row, false);
    assert_has(words, "\n    traced: 476 us a call\n");
    assert_null(strstr(words, "records"));
    assert_int_equal(profile_read_breakdown(folder, &breakdown, why, sizeof why), 0);
    o.breakdown = &breakdown;
    FILE *out = open_memstream(&alone, &size);
    report_trees(out, &row, 1, &o);
    fclose(out);
    assert_string_equal(alone, words);
    sheet_free(&breakdown), free(words), free(alone);
}

static void refused(const char *words, int error, const char *why)
{
    struct sheet sheet;
    char said[700], path[100];
    unlink(text(path, sizeof path, "%s/counters.csv", folder));
    if (words) write_file("counters.csv", words);
    assert_int_equal(profile_read_lines(folder, &sheet, said, sizeof said), error);
    assert_has(said, why);
}

static void torn_files_are_told(void **state)
{
    (void)state;
    refused(NULL, ENOENT, "counters.csv: can't be read");
    refused("", -1, "counters.csv:1: no header");
    refused(HEAD "no,attn/simt,attn", -1, "counters.csv:2: cut short within this line");
    refused(HEAD "no,attn/simt,attn\n", -1, "counters.csv:2: another number of cells");
    refused(HEAD ",attn/simt,attn,fifty,,cuda,,64,,,cold,1,ok,,,,,,,,,,\n", -1, "counters.csv:2: 'fifty': not a number");
    refused(HEAD ",attn/simt,attn,,,cuda,,64,nan,,cold,1,ok,,,,,,,,,,\n", -1, "counters.csv:2: 'nan': not a number");
}

/* No figure of a file is too large for what takes it. */
static void odd_figures_are_survived(void **state)
{
    static const char *const odd[] = {"1e300", "-1", "0", "1e18", "99999999999", "0.5"};
    struct row row = a_row("attn/simt");
    char line[600];
    (void)state;
    write_file("breakdown.csv", PARTS);
    for (int i = 0; i < COUNT(odd); i++) {
        const char *v = odd[i];
        write_file("counters.csv", text(line, sizeof line, HEAD
            ",attn/simt,attn,%s,,cuda,%s,64,%s,,cold,1,ok,%s,%s,%s,%s,%s,%s,,%s,%s,%s\n", v, v, v, v, v, v, v, v, v, v, v, v));
        char *words = reported(&row, true);
        assert_has(words, "L2 to SMs ");
        free(words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_says_what_profile_said), cmocka_unit_test(doubts_are_read_back),
        cmocka_unit_test(reasons_keep_their_places),
        cmocka_unit_test(columns_go_by_name), cmocka_unit_test(older_reasons_are_shown), cmocka_unit_test(trees_stand_alone),
        cmocka_unit_test(torn_files_are_told), cmocka_unit_test(odd_figures_are_survived),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

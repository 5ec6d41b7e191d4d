#include "report_profile.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base.h"
#include "profile_read.h"
#include "scaling.h"

enum { NAME = 34, COUNTS = 6, TIME = 10, SHARE = 9, BAR = 15, SHOWN = 12 };   /* columns of a part; with the indent 78 */

__attribute__((format(printf, 3, 4))) static void add(char *ret, size_t size, const char *format, ...)
{
    va_list list;
    size_t n = strlen(ret);
    va_start(list, format);
    vsnprintf(ret + n, size - n, format, list);
    va_end(list);
}

/* "3.00x"-like words only where there is a figure. */
static void add_if(char *ret, size_t size, double value, const char *format, const char *figure)
{
    char words[160];
    if (isnan(value)) return;
    text(words, sizeof words, format, figure);
    add(ret, size, "%s%s", *ret ? ", " : "", words);
}

static void put_paragraph(FILE *out, const struct report_options *o, const char *title, const char *words)
{
    if (!*words) return;
    char tame[700];   /* they may come from a file */
    int column = fprintf(out, "    %s%s", title, *title ? ": " : "");
    wrap_words(out, o->width, column, 6, tame_text(words, tame, sizeof tame));
}

static void put_part(FILE *out, const char *name, double count, double ns, double share_pct)
{
    char counts[24] = "", time[32], share[32], bar[BAR + 1], tame[200];
    int filled = share_pct > 0 ? (int)lround(fmin(share_pct, 100) * BAR / 100) : 0;
    if (!isnan(count)) text(counts, sizeof counts, count == floor(count) ? "%.0fx" : "%.2fx", count);
    memset(bar, '#', (size_t)filled);
    bar[filled] = 0;
    tame_text(name, tame, sizeof tame);
    fprintf(out, "    %-*.*s%*s%*s%*s%s%s\n", NAME, NAME, tame, COUNTS, counts, TIME, ns_text(ns, time, sizeof time), SHARE,
        percent_text(share_pct, share, sizeof share), filled ? "  " : "", bar);
}

static void put_tree(FILE *out, const struct breakdown *b)
{
    double calls = (double)b->used * b->calls, others = 0;
    int64_t rest_ns = 0;
    for (int i = 0; i < b->n; i++) {
        const struct part *p = &b->part[i];
        if (i >= SHOWN && b->n > SHOWN + 1) {
            others += (double)p->count;
            rest_ns += p->total_ns;
            continue;
        }
        char name[256];
        part_text(p->range, p->name, NAME, name, sizeof name);
        put_part(out, name, (double)p->count / calls, (double)p->total_ns / calls, breakdown_share_pct(b, p->total_ns));
    }
    if (rest_ns) put_part(out, "others", others / calls, (double)rest_ns / calls, breakdown_share_pct(b, rest_ns));
    put_part(out, "gaps", NAN, (double)b->gap_ns / calls, breakdown_share_pct(b, b->gap_ns));
    if (b->overlap_ns) put_part(out, "overlap (ran twice)", NAN, -(double)b->overlap_ns / calls,
        -breakdown_share_pct(b, b->overlap_ns));
}

/* Whether to believe it: how much longer tracing took, and what became of the records. */
static void put_health(FILE *out, const struct profile *p, const struct report_options *o)
{
    const struct breakdown *b = &p->replay, *e = &p->eager;
    char words[600] = "", number[32];
    add(words, sizeof words, "%s a call", ns_text(breakdown_call_ns(b), number, sizeof number));
    add_if(words, sizeof words, b->ratio, "%s of untraced", ratio_text(b->ratio, number, sizeof number));
    add(words, sizeof words, ", %lld records of %d launches", (long long)b->records, b->launches);
    if (b->used < b->launches) add(words, sizeof words, " (%d used)", b->used);
    const struct { const char *name; int64_t n; } faults[] = {{"dropped", b->dropped}, {"without time", b->zero_time},
        {"reversed", b->reversed}, {"foreign", b->unmatched}, {"missing", b->missing}, {"double", b->duplicates}};
    for (int i = 0; i < COUNT(faults); i++)
        if (faults[i].n) add(words, sizeof words, ", %lld %s", (long long)faults[i].n, faults[i].name);
    if (*e->failed) add(words, sizeof words, "; the eager launch is not believed: %s", e->failed);
    else if (e->launches && e->used) {
        add(words, sizeof words, "; eager %s", ns_text(breakdown_call_ns(e), number, sizeof number));
        if (e->kernels != (int64_t)b->kernels_per_call) add(words, sizeof words, " with %lld kernels", (long long)e->kernels);
    }
    put_paragraph(out, o, "traced", words);
}

static void put_counters(FILE *out, const struct counters *c, const struct derived *d, const struct report_options *o)
{
    char words[600] = "", n[32];
    add_if(words, sizeof words, d->dram_reread, "DRAM reads %s of what must be read", ratio_text(d->dram_reread, n, sizeof n));
    add_if(words, sizeof words, d->l2_reread, "L2 to SMs %s", ratio_text(d->l2_reread, n, sizeof n));
    add_if(words, sizeof words, c->l2_hit_pct, "%s of L2 sectors hit", percent_text(c->l2_hit_pct, n, sizeof n));
    if (d->workspace_B > 0) add_if(words, sizeof words, d->workspace_B, "workspace moves %s MB",
        amount_text(d->workspace_B * 1e-6, n, sizeof n));
    put_paragraph(out, o, "bytes", words);
    *words = 0;
    add_if(words, sizeof words, d->pct_read_ceiling, "DRAM at %s of the read ceiling",
        percent_text(d->pct_read_ceiling, n, sizeof n));
    if (!isnan(c->tensor_pct) || !isnan(c->instructions))
        add_if(words, sizeof words, d->pct_matrix_ceiling, "flop at %s of the matrix ceiling",
            percent_text(d->pct_matrix_ceiling, n, sizeof n));
    add_if(words, sizeof words, c->tensor_pct, "tensor pipe %s", percent_text(c->tensor_pct, n, sizeof n));
    add_if(words, sizeof words, c->fma_pct, "FMA pipe %s", percent_text(c->fma_pct, n, sizeof n));
    add_if(words, sizeof words, c->issue_pct, "issue %s", percent_text(c->issue_pct, n, sizeof n));
    add_if(words, sizeof words, c->occupancy_pct, "occupancy %s", percent_text(c->occupancy_pct, n, sizeof n));
    add_if(words, sizeof words, c->sm_busy_pct, "SMs busy %s", percent_text(c->sm_busy_pct, n, sizeof n));
    add_if(words, sizeof words, c->instructions / c->cycles, "%s instructions a cycle",
        amount_text(c->instructions / c->cycles, n, sizeof n));
    add_if(words, sizeof words, c->llc_misses, "%s last-level misses a call", amount_text(c->llc_misses, n, sizeof n));
    put_paragraph(out, o, "use", words);
    if (*c->why) put_paragraph(out, o, "no counters", c->why);
    if (*d->why) put_paragraph(out, o, "no DRAM factor", d->why);
    put_paragraph(out, o, "", d->doubt);
}

/* Why a row has no tree, in the words of both a profile and the report of its files. */
static void put_lack(FILE *out, const struct report_options *o, bool traced, const char *why)
{
    put_paragraph(out, o, traced ? "the breakdown does not hold" : "no trace", why);
}

static void begin_row(FILE *out, const struct row *row, const struct report_options *o)
{
    char name[256], tune[256];
    if (o->markdown) fputs("\n```\n", out);
    fprintf(out, "%s  %s%s%s\n", o->markdown ? "" : "\n", tame_text(row->kernel, name, sizeof name), *row->tune ? " " : "",
        tame_text(row->tune, tune, sizeof tune));
}

/* tree: of the replays; NULL: there is none that could be shown. */
static void put_profile(FILE *out, const struct row *row, const struct breakdown *tree, const struct profile *p,
    const struct derived *d, const struct report_options *o)
{
    char time[32];
    begin_row(out, row, o);
    if (tree) put_tree(out, tree);
    if (*p->replay.failed) put_lack(out, o, true, p->replay.failed);
    if (p->replay.launches) put_health(out, p, o);
    else if (tree) fprintf(out, "    traced: %s a call\n", ns_text(breakdown_call_ns(tree), time, sizeof time));
    if (*p->note) put_lack(out, o, false, p->note);
    put_counters(out, &p->counters, d, o);
    if (o->markdown) fputs("```\n", out);
}

void report_profile(FILE *out, const struct row *row, const struct profile *p, const struct machine *machine,
    const struct report_options *o)
{
    struct derived d = profile_derive(p, row, machine);
    put_profile(out, row, p->replay.used ? &p->replay : NULL, p, &d, o);
}

/* A row of the files. One that counters.csv doesn't believe has no tree, even where breakdown.csv has one. */
static void put_read_row(FILE *out, const struct row *row, const struct report_options *o)
{
    struct breakdown tree;
    struct profile p;
    struct derived d;
    bool told = profile_read_line(o->counters, row, &p, &d);
    bool there = !*p.replay.failed && o->breakdown && profile_read_row(o->breakdown, row, &tree);
    if (there || told) put_profile(out, row, there ? &tree : NULL, &p, &d, o);
}

void report_trees(FILE *out, const struct row *rows, int n, const struct report_options *o)
{
    for (int i = 0; i < n; i++) {
        bool again = !strncmp(rows[i].reason, MEASURED_AGAIN, strlen(MEASURED_AGAIN));   /* for its time alone */
        if (!again) put_read_row(out, &rows[i], o);
    }
}

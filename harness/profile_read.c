#include "profile_read.h"

#include <math.h>
#include <string.h>

#include "base.h"
#include "format.h"
#include "table.h"

static bool same_until(const struct sheet *s, int a, int b, const char *column)
{
    for (int c = 0; c < s->columns && strcmp(s->name[c], column); c++)
        if (strcmp(s->cell[(size_t)a * (size_t)s->columns + (size_t)c], s->cell[(size_t)b * (size_t)s->columns + (size_t)c]))
            return false;
    return true;
}

bool profile_same_row(const struct sheet *s, int a, int b)
{
    return same_until(s, a, b, "pass");   /* everything up to the seed */
}

bool profile_same_pass(const struct sheet *s, int a, int b)
{
    return same_until(s, a, b, "part");
}

static bool part_is(const struct sheet *s, int line, const char *part)
{
    return !strcmp(sheet_text(s, line, "part"), part);
}

/* NULL, or why the lines from `line` are no row's; *ret_end: behind its parts. */
static const char *row_is_odd(const struct sheet *s, int line, int *ret_end)
{
    bool whole = false;
    int i = line;
    for (; i < s->n && profile_same_pass(s, line, i); i++) {
        bool there = isfinite(sheet_real(s, i, "share_pct")) && isfinite(sheet_real(s, i, "t_ns"));
        if (!there) return *ret_end = i, "no share, or no time";
        whole |= part_is(s, i, "span") && sheet_real(s, i, "t_ns") > 0;
    }
    *ret_end = i;
    return whole ? NULL : "cut short: the parts of a row without their span";
}

int profile_read_breakdown(const char *folder, struct sheet *ret, char *ret_error, size_t size)
{
    static const char *const needs[] = {"op", "kernel", "tune", "pass", "part", "name", "t_ns", "share_pct", NULL};
    static const char *const reals[] = {"count", "calls", "total_ns", "t_ns", "share_pct", NULL};
    char path[600];
    TRY(sheet_read(text(path, sizeof path, "%s/breakdown.csv", folder), needs, reals, ret, ret_error, size));
    for (int i = 0, end; i < ret->n; i = end) {
        const char *why = row_is_odd(ret, i, &end);
        if (!why) continue;
        text(ret_error, size, "%s:%d: %s", path, sheet_line(ret, end < ret->n ? end : ret->n - 1), why);
        sheet_free(ret);
        return -1;
    }
    return 0;
}

int profile_read_counters(const char *folder, struct sheet *ret, char *ret_error, size_t size)
{
    static const char *const needs[] = {"op", "kernel", "t_med_ns", "flop", "flop_per_B", NULL};
    static const char *const reals[] = {"t_med_ns", "flop", "flop_per_B", "dram_read_B", NULL};
    char path[600];
    return sheet_read(text(path, sizeof path, "%s/counters.csv", folder), needs, reals, ret, ret_error, size);
}

/* A column that isn't there holds nothing: whoever wrote the file didn't know it yet. */
int profile_read_lines(const char *folder, struct sheet *ret, char *ret_error, size_t size)
{
    static const char *const needs[] = {"op", "kernel", "engine", "tune", "cache", "seed", "breakdown", "why", NULL};
#define COUNTER(name, unit, help) #name,
    static const char *const reals[] = {"t_med_ns", "traced_ns", "untraced_ns", "trace_ratio", "trace_cost_ns", "eager_ns",
        "kernels_per_call", "eager_kernels", "records", "dropped", "zero_time", "reversed", "unmatched", "missing", "duplicates",
        "launches", "launches_used", "passes", "counted_calls", "read_B", "write_B", "workspace_B", "workspace_moved_B",
        "l2_reread", "dram_reread", "pct_read_ceiling", "pct_matrix_ceiling", "flop_per_B",
#include "counters.def"
        NULL};
#undef COUNTER
    char path[600];
    return sheet_read(text(path, sizeof path, "%s/counters.csv", folder), needs, reals, ret, ret_error, size);
}

/* Is it this row's line? Of breakdown.csv also its replays'; counters.csv has no passes. */
static bool is_of(const struct sheet *s, int line, const struct row *row, const char *pass)
{
    const struct { const char *column, *value; } of[] = {{"op", row->op}, {"kernel", row->kernel}, {"engine", row->engine},
        {"tune", row->tune}, {"cache", row->cache}, {"pass", pass}};
    int64_t value;
    for (int i = 0; i < COUNT(of); i++)
        if (strcmp(sheet_text(s, line, of[i].column), of[i].value)) return false;
    for (int d = 0; d < row->n_dims; d++)
        if (cell_dim(row->dim[d].name, sheet_text(s, line, row->dim[d].name), &value) || value != row->dim[d].value) return false;
    return !cell_whole(sheet_text(s, line, "seed"), &value) && value == row->seed;
}

static int64_t whole(const struct sheet *s, int line, const char *column)
{
    double value = sheet_real(s, line, column);
    return fabs(value) < 1e15 ? (int64_t)value : 0;
}

static void add_line(const struct sheet *s, int line, struct breakdown *b)
{
    int64_t total_ns = whole(s, line, "total_ns");
    if (part_is(s, line, "span")) b->span_ns = total_ns, b->used = 1;
    else if (part_is(s, line, "gaps")) b->gap_ns = total_ns;
    else if (part_is(s, line, "overlap")) b->overlap_ns = total_ns;
    else if (b->n < MAX_PARTS) {
        struct part *part = &b->part[b->n++];
        *part = (struct part){.count = whole(s, line, "count"), .total_ns = total_ns};
        text(part->name, sizeof part->name, "%s", sheet_text(s, line, "name"));
        text(part->range, sizeof part->range, "%s", sheet_text(s, line, "range"));
    }
}

bool profile_read_row(const struct sheet *s, const struct row *row, struct breakdown *ret)
{
    int line = 0;
    *ret = (struct breakdown){.used = 0};
    while (line < s->n && !is_of(s, line, row, "replay")) line++;
    if (line == s->n) return false;
    ret->calls = (int32_t)whole(s, line, "calls");
    for (int i = line; i < s->n && profile_same_pass(s, line, i); i++) add_line(s, i, ret);
    return ret->used && ret->calls > 0 && ret->span_ns > 0;
}

/* What follows a label of the cell, which ends before it from now on; "" where there is no such label. */
static const char *cut_label(char *said, const char *label)
{
    for (char *at = said; (at = strstr(at, label)); at++) {
        if (at != said && (at < said + 2 || strncmp(at - 2, "; ", 2))) continue;
        at[at == said ? 0 : -2] = 0;
        return at + strlen(label);
    }
    return "";
}

static void read_why(const char *cell, struct profile *p, struct derived *d)
{
    char said[1200];
    text(said, sizeof said, "%s", cell);
    const char *doubt = cut_label(said, WHY_DOUBT);
    text(d->doubt, sizeof d->doubt, "%s%s", *doubt ? WHY_DOUBT : "", doubt);
    text(d->why, sizeof d->why, "%s", cut_label(said, WHY_DRAM));
    const char *counters = cut_label(said, WHY_COUNTERS), *eager = cut_label(said, WHY_EAGER), *trace = said;
    /* Files from before that label: of a row that was traced and not counted they say why it was not counted. */
    if (!*counters && !p->counters.passes && p->replay.launches) counters = trace, trace = "";
    text(p->counters.why, sizeof p->counters.why, "%s", counters);
    text(p->eager.failed, sizeof p->eager.failed, "%s", eager);
    text(p->note, sizeof p->note, "%s", trace);
}

static int32_t few(const struct sheet *s, int line, const char *column)
{
    int64_t value = whole(s, line, column);
    return value < 0 || value > INT32_MAX ? 0 : (int32_t)value;
}

static void read_replay(const struct sheet *s, int line, struct breakdown *b)
{
    const struct { const char *column; int64_t *to; } counts[] = {{"records", &b->records}, {"dropped", &b->dropped},
        {"zero_time", &b->zero_time}, {"reversed", &b->reversed}, {"unmatched", &b->unmatched}, {"missing", &b->missing},
        {"duplicates", &b->duplicates}};
    const char *breakdown = sheet_text(s, line, "breakdown");
    if (!*breakdown) return;   /* nothing was traced */
    if (strcmp(breakdown, "ok")) text(b->failed, sizeof b->failed, "%s", breakdown);
    b->launches = few(s, line, "launches"), b->used = few(s, line, "launches_used");
    for (int i = 0; i < COUNT(counts); i++) *counts[i].to = whole(s, line, counts[i].column);
    b->calls = 1000;   /* the file has no span but that of a call: it is kept to a thousandth of a nanosecond */
    double span_ns = sheet_real(s, line, "traced_ns") * b->used * b->calls;
    if (span_ns > 0 && span_ns < 1e18) b->span_ns = (int64_t)(span_ns + 0.5);
    else b->used = 0;
    b->kernels_per_call = fmin(fmax(0, sheet_real(s, line, "kernels_per_call")), 1e15);   /* unknown: 0 */
    b->untraced_ns = sheet_real(s, line, "untraced_ns"), b->ratio = sheet_real(s, line, "trace_ratio");
}

static void read_eager(const struct sheet *s, int line, const struct breakdown *replay, struct breakdown *b)
{
    b->span_ns = whole(s, line, "eager_ns");
    b->launches = b->used = b->calls = b->span_ns > 0;
    bool known = sheet_real(s, line, "eager_kernels") > 0 && replay->kernels_per_call > 0;
    b->kernels = known ? whole(s, line, "eager_kernels") : (int64_t)replay->kernels_per_call;   /* not known to differ */
}

static void read_derived(const struct sheet *s, int line, struct derived *d)
{
    const struct { const char *column; double *to; } figures[] = {{"workspace_moved_B", &d->workspace_B},
        {"l2_reread", &d->l2_reread}, {"dram_reread", &d->dram_reread}, {"pct_read_ceiling", &d->pct_read_ceiling},
        {"pct_matrix_ceiling", &d->pct_matrix_ceiling}, {"flop_per_B", &d->flop_per_B}};
    for (int i = 0; i < COUNT(figures); i++) *figures[i].to = line < 0 ? NAN : sheet_real(s, line, figures[i].column);
    *d->why = *d->doubt = 0;
}

bool profile_read_line(const struct sheet *s, const struct row *row, struct profile *ret, struct derived *ret_derived)
{
    int line = 0;
    profile_clear(ret);
    while (s && line < s->n && !is_of(s, line, row, "")) line++;
    bool there = s && line < s->n;
    read_derived(s, there ? line : -1, ret_derived);
    if (!there) return false;
    read_replay(s, line, &ret->replay);
    read_eager(s, line, &ret->replay, &ret->eager);
    for (int i = 0; i < n_counters; i++)
        *(double *)((char *)&ret->counters + counter_columns[i].offset) = sheet_real(s, line, counter_columns[i].name);
    ret->counters.passes = few(s, line, "passes"), ret->calls = few(s, line, "counted_calls");
    ret->read_B = sheet_real(s, line, "read_B"), ret->write_B = sheet_real(s, line, "write_B");
    read_why(sheet_text(s, line, "why"), ret, ret_derived);
    return true;
}

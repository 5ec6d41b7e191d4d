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

int profile_read_lacks(const char *folder, struct sheet *ret, char *ret_error, size_t size)
{
    static const char *const needs[] = {"op", "kernel", "engine", "tune", "cache", "seed", "breakdown", "why", NULL};
    static const char *const reals[] = {"t_med_ns", "traced_ns", "untraced_ns", "trace_ratio", NULL};
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

const char *profile_read_lack(const struct sheet *s, const struct row *row, bool *ret_traced)
{
    int line = 0;
    while (line < s->n && !is_of(s, line, row, "")) line++;
    if (line == s->n) return NULL;
    const char *breakdown = sheet_text(s, line, "breakdown"), *why = sheet_text(s, line, "why");
    *ret_traced = *breakdown;
    if (!strcmp(breakdown, "ok")) return NULL;
    return *breakdown ? breakdown : *why ? why : NULL;
}

#include "breakdown.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "quiet.h"

/* Limits. Faulty: launches with a record that is missing, impossible, foreign or double. A trace that is shorter than the untraced
 * time has lost something; one that is far longer has measured the tracer: by half as much again and 3 us a kernel. */
static const double MOST_FAULTY = 0.05, LEAST_RATIO = 0.9, MOST_RATIO = 1.5, MOST_EXTRA_NS = 3000;

static const double MOST_DISTURBED_PCT = 1;

/* A record, and the start of the last one of a launch: a day. What a clock that ran off says has no room in sums. */
static const uint64_t MOST_NS = 86400ull * 1000000000;

/* By launch, then node, then time: doubles become neighbours. */
static int by_launch(const void *a, const void *b)
{
    const struct activity *x = *(const struct activity *const *)a, *y = *(const struct activity *const *)b;
    if (x->correlation != y->correlation) return x->correlation < y->correlation ? -1 : 1;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int by_start(const void *a, const void *b)
{
    const struct activity *x = *(const struct activity *const *)a, *y = *(const struct activity *const *)b;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct capture_node *)a)->id, y = ((const struct capture_node *)b)->id;
    return (x > y) - (x < y);
}

static const struct capture_node *find_node(const struct recording *r, uint64_t id)
{
    struct capture_node key = {.id = id};
    return r->n_nodes ? bsearch(&key, r->node, (size_t)r->n_nodes, sizeof key, by_id) : NULL;
}

/* Of the traced launches? In a replay every record has a node that its capture knows; eagerly none has one. */
static bool is_ours(const struct recording *r, const struct activity *a)
{
    if (!r->nodes) return a->node == 0;
    return a->node && (!r->n_nodes || find_node(r, a->node));
}

static bool is_double(const struct recording *r, const struct activity *a, const struct activity *before)
{
    if (a->correlation != before->correlation || a->node != before->node || a->kind != before->kind) return false;
    return r->nodes || (a->start_ns == before->start_ns && a->end_ns == before->end_ns);
}

/* Counts what time the record can't have. */
static bool has_time(struct breakdown *b, const struct activity *a)
{
    if (!a->start_ns || !a->end_ns || a->start_ns == a->end_ns) return b->zero_time++, false;
    if (a->end_ns < a->start_ns || a->end_ns - a->start_ns > MOST_NS) return b->reversed++, false;
    return true;
}

static struct part *find_part(struct breakdown *b, const struct activity *a, const char *range)
{
    char name[sizeof b->part[0].name];
    text(name, sizeof name, "%s", a->name ? a->name : "?");
    for (int i = 0; i < b->n; i++) {
        struct part *part = &b->part[i];
        if (part->kind == (int32_t)a->kind && !strcmp(part->name, name) && !strcmp(part->range, range)) return part;
    }
    if (b->n == MAX_PARTS) {
        struct part *last = &b->part[MAX_PARTS - 1];
        text(last->name, sizeof last->name, "others");
        *last->range = 0;
        last->shape = (struct launch_shape){.shared_B = 0};
        return last;
    }
    struct part *part = &b->part[b->n++];
    *part = (struct part){.kind = (int32_t)a->kind, .min_ns = INT64_MAX, .shape = a->shape};
    text(part->name, sizeof part->name, "%s", name);
    text(part->range, sizeof part->range, "%s", range);
    return part;
}

/* A whole launch, by start: its records follow each other, leave gaps, or overlap. */
static void add_launch(const struct recording *r, struct breakdown *b, const struct activity *const *a, int n)
{
    uint64_t until = a[0]->start_ns;   /* something ran up to here */
    int64_t ran = 0;
    for (int i = 0; i < n; i++) {
        const struct capture_node *node = find_node(r, a[i]->node);
        const char *range = node ? node->range : a[i]->range;
        struct part *part = find_part(b, a[i], range ? range : "");
        if (memcmp(&part->shape, &a[i]->shape, sizeof part->shape)) part->shape = (struct launch_shape){.shared_B = 0};
        int64_t ns = (int64_t)(a[i]->end_ns - a[i]->start_ns);
        int64_t gap = a[i]->start_ns > until ? (int64_t)(a[i]->start_ns - until) : 0;
        uint64_t from = a[i]->start_ns > until ? a[i]->start_ns : until;
        if (a[i]->end_ns > from) {
            ran += (int64_t)(a[i]->end_ns - from);
            until = a[i]->end_ns;
        }
        part->count++;
        part->total_ns += ns;
        part->bytes += (int64_t)a[i]->bytes;
        part->gap_ns += gap;
        if (ns < part->min_ns) part->min_ns = ns;
        if (ns > part->max_ns) part->max_ns = ns;
        b->busy_ns += ns;
        b->gap_ns += gap;
        b->overlap_ns += ns;
        b->kernels += a[i]->kind == ACTIVITY_KERNEL;
    }
    b->overlap_ns -= ran;
    b->span_ns += (int64_t)(until - a[0]->start_ns);
    b->used++;
}

/* One launch's records, foreign ones and doubles gone. */
static void judge_launch(const struct recording *r, struct breakdown *b, const struct activity **a, int n, bool whole)
{
    for (int i = 0; i < n; i++) whole = has_time(b, a[i]) && whole;
    if (r->nodes && n < r->nodes) b->missing += r->nodes - n;
    if (r->nodes && n > r->nodes) b->unmatched += n - r->nodes;
    if (!whole || !n || (r->nodes && n != r->nodes)) return;
    qsort(a, (size_t)n, sizeof *a, by_start);
    if (a[n - 1]->start_ns - a[0]->start_ns > MOST_NS) {
        b->reversed++;
        return;
    }
    add_launch(r, b, (const struct activity *const *)a, n);
}

/* span: of each launch in order, 0 of one that is not used. */
static void find_disturbed(const struct recording *r, struct breakdown *b, const int64_t *span, int n)
{
    int chunks = r->chunks > 1 ? r->chunks : 1;
    double *ns = must_alloc((size_t)n + 1, sizeof *ns), beyond_ns = 0;
    for (int c = 0; c < chunks; c++) {
        int found = 0;
        for (int i = c; i < n; i += chunks)
            if (span[i] > 0) ns[found++] = (double)span[i];
        b->disturbed += quiet_longer(ns, found, QUIET_LOST_NS, &beyond_ns);
    }
    b->disturbed_ns = (int64_t)beyond_ns;
    free(ns);
}

static int by_time(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

__attribute__((format(printf, 2, 3))) static void fail(struct breakdown *b, const char *format, ...)
{
    va_list list;
    if (*b->failed) return;   /* the first is the reason */
    va_start(list, format);
    vsnprintf(b->failed, sizeof b->failed, format, list);
    va_end(list);
}

static void hold_to_limits(const struct recording *r, struct breakdown *b)
{
    int faulty = b->launches - b->used;
    double call_ns = breakdown_call_ns(b), extra_ns = (call_ns - r->untraced_ns) / fmax(1, b->kernels_per_call);
    if (b->dropped) fail(b, "the tracer dropped %lld records", (long long)b->dropped);
    if (!b->used) fail(b, "no launch of %d was recorded whole (%lld records, %lld missing, %lld without time)", b->launches,
        (long long)b->records, (long long)b->missing, (long long)(b->zero_time + b->reversed));
    if (!(faulty <= MOST_FAULTY * b->launches)) fail(b, "%d of %d launches have records that are missing or impossible", faulty,
        b->launches);
    if (b->unmatched) fail(b, "%lld records belong to no launch of ours", (long long)b->unmatched);
    if (b->kernels_per_call != floor(b->kernels_per_call)) fail(b, "%lld kernels in %lld calls: not the same in each",
        (long long)b->kernels, (long long)b->used * b->calls);
    if (isnan(b->ratio) || r->by_clock) return;
    if (!(b->ratio >= LEAST_RATIO)) fail(b, "records cover %.0f %% of the untraced time: some are lost",
        100 * b->ratio);
    if (b->ratio > MOST_RATIO && extra_ns > MOST_EXTRA_NS)
        fail(b, "tracing takes %.2f times as long: it shows the tracer", b->ratio);
}

void breakdown_make(const struct recording *r, struct breakdown *b)
{
    *b = (struct breakdown){.launches = r->launches, .calls = r->calls, .records = r->n, .dropped = r->dropped,
        .untraced_ns = r->untraced_ns, .mapped = r->n_nodes > 0};
    const struct activity **a = must_alloc((size_t)r->n + 1, sizeof *a);
    int64_t *span = must_alloc((size_t)r->n + 1, sizeof *span);
    if (r->n_nodes) qsort(r->node, (size_t)r->n_nodes, sizeof *r->node, by_id);
    int n = 0, seen = 0;
    for (int i = 0; i < r->n; i++) {
        if (is_ours(r, &r->activity[i])) a[n++] = &r->activity[i];
        else b->unmatched++;
    }
    qsort(a, (size_t)n, sizeof *a, by_launch);
    for (int first = 0, end; first < n; first = end, seen++) {
        int kept = first + 1;
        bool whole = true;
        for (end = first + 1; end < n && (!r->nodes || a[end]->correlation == a[first]->correlation); end++) {
            if (is_double(r, a[end], a[kept - 1])) b->duplicates++, whole = false;
            else a[kept++] = a[end];
        }
        int64_t before = b->span_ns;
        judge_launch(r, b, a + first, kept - first, whole);
        span[seen] = b->span_ns - before;
    }
    if (r->nodes) find_disturbed(r, b, span, seen);
    free(span);
    if (seen < r->launches) b->missing += (int64_t)(r->launches - seen) * r->nodes;
    else b->unmatched += (int64_t)(seen - r->launches) * r->nodes;   /* of a graph of ours, but nobody of us launched it */
    free(a);
    b->kernels_per_call = b->used ? (double)b->kernels / ((double)b->used * b->calls) : NAN;
    if (b->used < b->launches && !b->used) b->kernels_per_call = 0;
    b->ratio = breakdown_call_ns(b) / r->untraced_ns;
    qsort(b->part, (size_t)b->n, sizeof b->part[0], by_time);
    hold_to_limits(r, b);
}

double breakdown_call_ns(const struct breakdown *b)
{
    return b->used ? (double)b->span_ns / ((double)b->used * b->calls) : NAN;
}

bool breakdown_disturbed(const struct breakdown *b)
{
    return breakdown_share_pct(b, b->disturbed_ns) > MOST_DISTURBED_PCT;
}

double breakdown_share_pct(const struct breakdown *b, int64_t ns)
{
    return b->span_ns > 0 ? 100 * (double)ns / (double)b->span_ns : NAN;
}

void recording_free(struct recording *r)
{
    free(r->activity);
    free(r->node);
    free(r->names);
    *r = (struct recording){0};
}

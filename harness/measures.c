#include "measures.h"

#include <math.h>
#include <string.h>

#include "base.h"
#include "format.h"

/* Ceilings are medians too: a time this far under the limit is no longer noise. */
static const double IMPLAUSIBLE_BELOW = 0.95, NOISY_ABOVE_PCT = 5, MODES_APART = 1.03;

double measures_probe_ns(const struct timer *timer)
{
    for (int l = 0; l < timer->n_lanes; l++)
        if (timer->lane[l].bound->kernel->promises & PROBE && timer->lane[l].n) return timer->lane[l].summary.median;
    return NAN;
}

double measures_limit_ns(const struct ceilings *ceilings, double bytes, double flop, const char **ret_by)
{
    double by_bytes = ceilings->read_GBps > 0 ? bytes / ceilings->read_GBps : 0;
    double by_flop = ceilings->matrix_GFLOPs > 0 ? flop / ceilings->matrix_GFLOPs : 0;
    double limit = fmax(fmax(by_bytes, by_flop), ceilings->latency_ns);
    *ret_by = limit == ceilings->latency_ns ? "latency" : limit == by_bytes ? "bytes" : "flop";
    return limit;
}

/* Mean over the ring of what this kernel must read: it may leave twins of a tensor alone. */
static double bytes_of(const struct kernel *kernel, const struct workload *w)
{
    double all = w->op->bytes(&w->problem, (void *const *)w->host[0], 0);
    if (!kernel->reads || !(all > 0)) return w->bytes;
    return w->bytes * w->op->bytes(&w->problem, (void *const *)w->host[0], kernel->reads) / all;
}

/* By the actual lengths: rows of an op's outputs may be far wider than what a call writes. A probe writes next to nothing, so its
 * limit is what it reads: less these. */
static double bytes_written(const struct workload *w)
{
    uint64_t outputs = 0;
    for (int t = 0; t < w->n; t++)
        if (w->shape[t].output && !w->shape[t].input) outputs |= 1ull << t;
    return w->op->bytes(&w->problem, (void *const *)w->host[0], outputs);
}

void measures_traffic(const struct kernel *kernel, const struct workload *w, double *ret_read, double *ret_written)
{
    *ret_written = bytes_written(w);
    *ret_read = bytes_of(kernel, w) - *ret_written;
}

static void add_mark(char *marks, size_t size, bool set, const char *mark)
{
    size_t n = strlen(marks);
    if (set) text(marks + n, size - n, "%s%s", n ? ";" : "", mark);
}

/* "1.90 us at 1980 MHz": the mean clock of the samples that are nearer to this mode than to the other. */
static char *mode_text(const struct lane *lane, double mode, double other, char *ret, size_t size)
{
    double sum = 0;
    int n = 0;
    char time[24];
    for (int i = 0; i < lane->n && lane->sample; i++) {
        const struct sample *s = &lane->sample[i];
        if (!(fabs(s->t_ns - mode) < fabs(s->t_ns - other)) || !(s->sm_clock_MHz > 0)) continue;
        sum += s->sm_clock_MHz;
        n++;
    }
    ns_text(mode, time, sizeof time);
    return n ? text(ret, size, "%s at %.0f MHz", time, sum / n) : text(ret, size, "%s", time);
}

static void set_marks(struct row *ret, const struct lane *lane)
{
    const struct summary *summary = &lane->summary;
    char low[48], high[48];
    double width_pct = 100 * (summary->hi - summary->lo) / summary->median;
    bool noisy = !(width_pct <= NOISY_ABOVE_PCT);
    bool bimodal = summary->bimodal && summary->mode_high > MODES_APART * summary->mode_low;   /* nearer ones change no verdict */
    add_mark(ret->marks, sizeof ret->marks, noisy, "noisy");
    add_mark(ret->marks, sizeof ret->marks, lane->witness.throttled, "throttled");
    add_mark(ret->marks, sizeof ret->marks, lane->witness.contended, "contended");
    add_mark(ret->marks, sizeof ret->marks, summary->drifting, "drifting");
    add_mark(ret->marks, sizeof ret->marks, bimodal, "bimodal");
    text(ret->reason, sizeof ret->reason, "%s", lane->witness.why);
    size_t n = strlen(ret->reason);
    if (bimodal)
        text(ret->reason + n, sizeof ret->reason - n, "%stwo modes: %s and %s", n ? "; " : "",
             mode_text(lane, summary->mode_low, summary->mode_high, low, sizeof low),
             mode_text(lane, summary->mode_high, summary->mode_low, high, sizeof high));
    else if (noisy)
        text(ret->reason + n, sizeof ret->reason - n, "%sinterval is %.0f %% of the median wide", n ? "; " : "", width_pct);
}

static void set_times(struct row *ret, const struct lane *lane, const struct workload *w, double probe_ns)
{
    const struct ceilings *ceilings = &w->dev->machine.ceilings;
    const char *by;
    ret->t_med_ns = lane->summary.median;
    ret->t_lo_ns = lane->summary.lo;
    ret->t_hi_ns = lane->summary.hi;
    ret->t_min_ns = lane->summary.min;
    ret->rounds = lane->n;
    ret->bytes = bytes_of(lane->bound->kernel, w);
    if (lane->bound->kernel->promises & PROBE) ret->bytes -= bytes_written(w);
    ret->flop = w->flop;
    ret->bw_GBps = ret->bytes / ret->t_med_ns;
    ret->limit_ns = measures_limit_ns(ceilings, ret->bytes, lane->bound->kernel->promises & PROBE ? 0 : ret->flop, &by);
    ret->pct_limit = 100 * ret->limit_ns / ret->t_med_ns;
    ret->pct_probe = 100 * probe_ns / ret->t_med_ns;
    ret->floor_ns = ceilings->floor_ns;
    ret->ring_MB = w->touched_bytes * w->sets * 1e-6;
    ret->sets = w->sets;
    ret->workspace_B = (int64_t)lane->bound->workspace_bytes;
    text(ret->limit_by, sizeof ret->limit_by, "%s", by);
    text(ret->stop, sizeof ret->stop, "%s", lane->stop ? lane->stop : "");
    text(ret->timer, sizeof ret->timer, "%s", w->dev->timer);
    const struct bound *bound = lane->bound;
    if (bound->kernel->describe) bound->kernel->describe(bound->state, ret->algorithm, sizeof ret->algorithm);
    set_marks(ret, lane);
}

void measures_row(struct row *ret, const struct job *job, int v, const struct lane *lane, const struct workload *w, double probe_ns)
{
    row_clear(ret);
    struct verdict verdict = job->verdict[v];
    if (lane && verdict.status == STATUS_OK && lane->verdict.status != STATUS_OK) verdict = lane->verdict;
    text(ret->status, sizeof ret->status, "%s", status_name[verdict.status]);
    text(ret->reason, sizeof ret->reason, "%s", verdict.reason);
    ret->err_rel = verdict.err_rel;
    ret->checked_pct = verdict.checked_pct;
    if (!lane || !lane->n || verdict.status != STATUS_OK) return;
    set_times(ret, lane, w, probe_ns);
    if (job->group.cache == COLD && !(ret->t_med_ns >= IMPLAUSIBLE_BELOW * ret->limit_ns)) {
        text(ret->status, sizeof ret->status, "%s", status_name[STATUS_IMPLAUSIBLE]);
        char took[24], limit[24];
        text(ret->reason, sizeof ret->reason, "%s is under the limit of %s by %s: inputs in a cache, or less work than declared",
             ns_text(ret->t_med_ns, took, sizeof took), ns_text(ret->limit_ns, limit, sizeof limit), ret->limit_by);
    }
}

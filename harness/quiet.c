#include "quiet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "stats.h"

static const double MUCH_LONGER = 1.4;
static const double CANARY_LONGER = 1.25, CANARY_SPREADS = 6, CANARY_WAIT_NS = 3e5;
static const double WAITED_PCT = 4, STOLEN_PCT = 2, CAPPED_SHARE = 0.25;
enum { WINDOW = 8, WITHIN = 3, CANARIES = 4, CANARY_PCT = 5, SAMPLES = 3, SAMPLES_PCT = 8 };

enum { CANARY = -1 };

struct observation {
    double at_s;
    int    witness;              /* or CANARY */
    bool   longer, much_longer;
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_time(const void *a, const void *b)
{
    const struct observation *x = a, *y = b;
    return x->at_s != y->at_s ? (x->at_s > y->at_s) - (x->at_s < y->at_s) : x->witness - y->witness;
}

/* Lower quartile, and where not NULL the median, of x, which is sorted; NaN where there is none. */
static double quarter(double *x, int n, double *ret_median)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    if (ret_median) *ret_median = n ? x[n / 2] : NAN;
    return n ? x[(n - 1) / 4] : NAN;
}

static double median_clock(const struct witness *w)
{
    double *clock = must_alloc((size_t)w->n + 1, sizeof *clock), median;
    int n = 0;
    for (int i = 0; i < w->n; i++)
        if (w->sample[i].sm_clock_MHz > 0) clock[n++] = w->sample[i].sm_clock_MHz;
    quarter(clock, n, &median);
    free(clock);
    return median;
}

/* A quarter of a kernel's samples at a placement is as short, whatever came between. */
static double shorter_ns(const struct witness *w, int placement)
{
    double *t = must_alloc((size_t)w->n + 1, sizeof *t);
    int n = 0;
    for (int i = 0; i < w->n; i++)
        if (w->sample[i].placement == placement) t[n++] = w->sample[i].t_ns;
    double ret = quarter(t, n, NULL);
    free(t);
    return ret;
}

/* What a call takes undisturbed at a placement. Other work may have covered all of its samples there; not at all placements. */
static double undisturbed_ns(const struct witness *w, int placement)
{
    double ret = shorter_ns(w, placement);
    for (int i = 0; i < w->n; i++)
        if (!i || w->sample[i].placement != w->sample[i - 1].placement)
            ret = fmin(ret, QUIET_PLACED * shorter_ns(w, w->sample[i].placement));
    return ret;
}

/* A slower clock explains a longer time: then it's the shorter of time and cycles that counts. */
static void observe_lane(const struct witness *w, int which, struct observation *ret)
{
    double clock = median_clock(w), undisturbed = NAN;
    for (int i = 0; i < w->n; i++) {
        const struct sample *s = &w->sample[i];
        if (!i || s->placement != s[-1].placement) undisturbed = undisturbed_ns(w, s->placement);
        double t = s->sm_clock_MHz > 0 && s->sm_clock_MHz < clock ? s->t_ns * s->sm_clock_MHz / clock : s->t_ns;
        bool lost = (t - undisturbed) * (s->calls > 0 ? s->calls : 1) > QUIET_LOST_NS;
        bool longer = lost && t > QUIET_LONGER * undisturbed;
        ret[i] = (struct observation){s->at_s, which, longer, longer && t > MUCH_LONGER * undisturbed};
    }
}

/* The canaries of all kernels are one witness. Returns how many there are. */
static int observe_canary(const struct witness *w, int n, int all, struct observation *ret)
{
    double *ns = must_alloc((size_t)all + 1, sizeof *ns), *wait = must_alloc((size_t)all + 1, sizeof *wait), median;
    int found = 0, waits = 0, at = 0;
    for (int l = 0; l < n; l++)
        for (int i = 0; i < w[l].n; i++) {
            if (w[l].sample[i].canary_ns > 0) ns[found++] = w[l].sample[i].canary_ns;
            if (!isnan(w[l].sample[i].wait_ns)) wait[waits++] = w[l].sample[i].wait_ns;
        }
    double short_ns = quarter(ns, found, &median), short_wait = quarter(wait, waits, NULL);
    double most = fmax(CANARY_LONGER * short_ns, short_ns + CANARY_SPREADS * (median - short_ns));
    for (int l = 0; l < n; l++)
        for (int i = 0; i < w[l].n; i++) {
            const struct sample *s = &w[l].sample[i];
            if (!(s->canary_ns > 0)) continue;
            bool late = s->canary_ns > most || s->wait_ns > short_wait + CANARY_WAIT_NS;
            ret[at++] = (struct observation){s->at_s, CANARY, late, false};
        }
    free(ns);
    free(wait);
    return found;
}

/* Whether the window [from, to) of observations speaks of other work. */
static bool speaks(const struct observation *o, int from, int to)
{
    int longer = 0, canary = 0, much = 0, first = CANARY;
    bool two = false;
    for (int i = from; i < to; i++) {
        longer += o[i].longer;
        canary += o[i].longer && o[i].witness == CANARY;
        if (!o[i].much_longer) continue;
        two |= much && o[i].witness != first;
        first = o[i].witness;
        much++;
    }
    return longer >= WITHIN && (canary || (two && much >= WITHIN));
}

/* Short work that comes often leaves no cluster: a canary now and then, and samples, or many samples of two kernels. */
static bool often(const struct observation *o, int n)
{
    int canaries = 0, late = 0, samples = 0, longer = 0, much = 0, first = CANARY;
    bool two = false;
    for (int i = 0; i < n; i++) {
        canaries += o[i].witness == CANARY;
        late += o[i].witness == CANARY && o[i].longer;
        if (o[i].witness == CANARY) continue;
        samples++;
        longer += o[i].longer;
        if (!o[i].much_longer) continue;
        two |= much && o[i].witness != first;
        first = o[i].witness;
        much++;
    }
    bool many = longer >= SAMPLES && 100 * longer >= SAMPLES_PCT * samples;
    bool often_late = late >= CANARIES && 100 * late >= CANARY_PCT * canaries;
    return often_late || (many && (late >= 2 || (two && much >= 2 * SAMPLES)));
}

/* Kernels with a sample inside a window that speaks were struck; all, where it comes often: it may have covered one from end to
 * end. */
static void find_struck(const struct observation *o, int n, struct witness *w)
{
    bool all = often(o, n);
    for (int from = 0; from < n; from++) {
        int to = from + WINDOW < n ? from + WINDOW : n;
        if (all && o[from].witness != CANARY) w[o[from].witness].contended = true;
        if (!o[from].longer || !speaks(o, from, to)) continue;
        for (int i = from; i < to; i++)
            if (o[i].witness != CANARY) w[o[i].witness].contended = true;
    }
}

static void say_contended(struct witness *w, const struct observation *o, int n, int which)
{
    int longer = 0, canary = 0, canaries = 0;
    double most = 0, wait = 0;
    for (int i = 0; i < n; i++) {
        longer += o[i].witness == which && o[i].longer;
        canaries += o[i].witness == CANARY;
        canary += o[i].witness == CANARY && o[i].longer;
    }
    for (int i = 0; i < w->n; i++) {
        most = fmax(most, w->sample[i].t_ns / undisturbed_ns(w, w->sample[i].placement) - 1);
        wait = fmax(wait, w->sample[i].wait_ns);
    }
    text(w->why, sizeof w->why, "other work: %d of %d samples longer, by up to %.0f %%", longer, w->n, 100 * most);
    size_t at = strlen(w->why);
    if (canary) text(w->why + at, sizeof w->why - at, "; %d of %d canaries late", canary, canaries);
    at = strlen(w->why);
    if (wait > CANARY_WAIT_NS) text(w->why + at, sizeof w->why - at, ", by up to %.1f ms", wait * 1e-6);
}

/* HOST: the kernel counts what our threads waited for, and a hypervisor what it took. Means over the rounds. */
static void judge_waiting(struct witness *w)
{
    double waited = 0, stolen = 0;
    int n = 0;
    for (int i = 0; i < w->n; i++) {
        const struct weather *weather = &w->sample[i].weather;
        if (isnan(weather->waited_pct) && isnan(weather->stolen_pct)) continue;
        waited += isnan(weather->waited_pct) ? 0 : weather->waited_pct;
        stolen += isnan(weather->stolen_pct) ? 0 : weather->stolen_pct;
        n++;
    }
    if (!n || (waited / n < WAITED_PCT && stolen / n < STOLEN_PCT)) return;
    w->contended = true;
    text(w->why, sizeof w->why, "other work: threads waited for a CPU %.0f %% of the time, %.0f %% were stolen", waited / n,
         stolen / n);
}

static void judge_clocks(struct witness *w)
{
    int seen[5] = {0};
    static const char *const words[] = {"the power cap", "a hardware slow-down", "heat", "a power brake", "the quota of a cgroup"};
    char why[sizeof w->why];
    for (int i = 0; i < w->n; i++)
        for (int b = 0; b < COUNT(words); b++) seen[b] += w->sample[i].weather.held > 0 && w->sample[i].weather.held >> b & 1;
    for (int b = COUNT(words) - 1; b >= 0; b--) {
        double least = 1 << b == HELD_POWER_CAP ? fmax(1, CAPPED_SHARE * w->n) : 1;
        if (seen[b] < least) continue;
        memcpy(why, w->why, sizeof why);
        w->throttled = true;
        text(w->why, sizeof w->why, "held back by %s in %d of %d samples%s%.80s", words[b], seen[b], w->n, *why ? "; " : "", why);
    }
}

void quiet_judge(struct witness *w, int n)
{
    int all = 0, at = 0;
    bool counted = false;        /* waiting is counted by the machine: then nothing has to be concluded */
    for (int l = 0; l < n; l++) {
        w[l].contended = w[l].throttled = false;
        w[l].why[0] = 0;
        all += w[l].n;
        for (int i = 0; i < w[l].n; i++) counted |= !isnan(w[l].sample[i].weather.waited_pct);
    }
    struct observation *o = must_alloc(2 * (size_t)all + 1, sizeof *o);
    for (int l = 0; l < n; at += w[l++].n) observe_lane(&w[l], l, o + at);
    at += observe_canary(w, n, all, o + at);
    qsort(o, (size_t)at, sizeof *o, by_time);
    if (!counted) find_struck(o, at, w);
    for (int l = 0; l < n; l++) {
        if (w[l].contended) say_contended(&w[l], o, at, l);
        if (counted) judge_waiting(&w[l]);
        judge_clocks(&w[l]);
    }
    free(o);
}

int quiet_longer(const double *ns, int n, double least_ns, double *ret_beyond_ns)
{
    double usual = n >= 3 ? stats_summarise(ns, n, 0.95).q1 : NAN;
    int longer = 0;
    for (int i = 0; i < n; i++) {
        if (!(ns[i] > QUIET_LONGER * usual && ns[i] - usual > least_ns)) continue;
        *ret_beyond_ns += ns[i] - usual;
        longer++;
    }
    return longer;
}

/* Each one's samples over their median, all first ones first. */
bool quiet_drifts(const struct sample *sample, int n)
{
    double *t = must_alloc(2 * (size_t)n + 1, sizeof *t), *room = t + n;
    int found = 0;
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && sample[end].placement == sample[i].placement; end++)
            room[end - i] = sample[end].t_ns;
        double median = stats_median(room, end - i);
        for (int k = i; k < end; k++) t[k] = sample[k].t_ns / median;
    }
    for (int k = 0; found < n; k++)   /* the k-th of each placement */
        for (int i = 0, at = 0; i < n; i++) {
            at = i && sample[i].placement == sample[i - 1].placement ? at + 1 : 0;
            if (at == k) room[found++] = t[i];
        }
    bool ret = stats_summarise(room, n, 0.95).drifting;
    free(t);
    return ret;
}

static bool has(const char *marks, const char *mark)
{
    for (size_t n = strlen(mark); *marks; marks += strcspn(marks, ";"), marks += *marks == ';')
        if (!strncmp(marks, mark, n) && (!marks[n] || marks[n] == ';')) return true;
    return false;
}

int quiet_badness(const char *marks)
{
    return 8 * has(marks, "contended") + 4 * has(marks, "throttled") + 2 * has(marks, "drifting") + has(marks, "bimodal");
}

int quiet_tries(const char *marks)
{
    int badness = quiet_badness(marks);
    return badness >= 4 ? 2 : badness ? 1 : 0;
}

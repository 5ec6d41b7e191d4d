#include "profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "quiet.h"
#include "tour.h"

enum { LAUNCHES = 20, FEWEST_LAUNCHES = 3, TRIES = 3, MOST_PASSES = 64 };
static const double BUDGET_S = 0.3;   /* of traced running, and of a walk round the ring */
static const double PASS_LOST_NS = 1e6;   /* to a time slice of another process; less is the host's doing */

static int capture_and_time(struct tour *tour, step_fn *step, void *step_arg, double *ret_call_ns)
{
    step(step_arg, "graphs for untraced replays");
    int error = tour_capture(tour);
    if (!error) error = tour_time(tour, step, step_arg, ret_call_ns);
    tour_drop(tour);
    return error;
}

static int rounds_of(const struct tour *tour, double call_ns)
{
    double round_s = call_ns * 1e-9 * tour->at_once * tour->calls * tour->passes;
    double rounds = fmin(ceil((double)LAUNCHES / tour->at_once), floor(BUDGET_S / fmax(round_s, 1e-9)));
    return (int)fmax(rounds, ceil((double)FEWEST_LAUNCHES / tour->at_once));
}

/* calls: as many as the clock has to record on a HOST. */
static int begin_recording(struct tour *tour, const char *name, int calls, bool eager, struct recording *r, char *ret_why,
    size_t size)
{
    *r = (struct recording){0};
    if (tour->dev->machine.engine == CUDA) return tour->dev->trace->begin(tour->dev, eager, ret_why, size);
    r->activity = must_alloc((size_t)calls, sizeof *r->activity);
    r->by_clock = true;
    tour->host = r, tour->name = name, tour->room = calls;
    return 0;
}

static int end_recording(struct tour *tour, struct recording *r, char *ret_why, size_t size)
{
    if (tour->dev->machine.engine == CUDA) return tour->dev->trace->end(tour->dev, r, ret_why, size);
    tour->host = NULL;
    return 0;
}

/* How many nodes each graph has, as its capture says; without a capture that says so, what each launch left. */
static int nodes_a_launch(const struct tour *tour, const struct recording *r)
{
    if (tour->dev->machine.engine == HOST) return tour->calls;
    if (r->n_nodes && r->n_nodes % tour->chunks == 0) return r->n_nodes / tour->chunks;
    return r->n % r->launches ? r->n / r->launches + 1 : r->n / r->launches;
}

/* *ret stays where nothing was recorded: words in ret_note. */
static int trace_replays(struct bound *bound, const char *name, double untraced_ns, step_fn *step, void *step_arg,
    struct breakdown *ret, char *ret_note, size_t size)
{
    struct tour tour;
    struct recording r;
    tour_plan(&tour, bound, untraced_ns, BUDGET_S);
    if (tour.dev->machine.engine == CUDA) tour.passes = tour_passes(&tour, untraced_ns);   /* HOST: no graph around a call */
    int rounds = rounds_of(&tour, untraced_ns);
    step(step_arg, "graphs for traced replays");
    if (begin_recording(&tour, name, rounds * tour.at_once * tour.calls, false, &r, ret_note, size)) return 0;
    int error = tour_capture(&tour);
    for (int i = 0; i < rounds && !error; i++) {
        step(step_arg, "traced replays");
        error = tour_walk(&tour);
    }
    int lost = end_recording(&tour, &r, ret_note, size);
    tour_drop(&tour);
    r.launches = rounds * tour.at_once;
    r.calls = tour.calls * tour.passes;
    r.chunks = tour.chunks;
    r.untraced_ns = untraced_ns;
    r.nodes = nodes_a_launch(&tour, &r);
    if (r.n_nodes && r.n_nodes % tour.chunks) r.n_nodes = 0;   /* not what was captured: believed in nothing */
    if (!error && !lost) breakdown_make(&r, ret);
    recording_free(&r);
    return error;
}

/* A canary would be a record itself: other work is found in the launches. A trace beside it is taken again, and the best stays. */
static int trace_quietly(struct bound *bound, const char *name, double untraced_ns, step_fn *step, void *step_arg,
    struct profile *ret)
{
    struct breakdown *again = must_alloc(1, sizeof *again);
    char note[sizeof ret->note] = "";   /* of what is no trace in the place of one: it is none, and no more */
    int error = trace_replays(bound, name, untraced_ns, step, step_arg, &ret->replay, ret->note, sizeof ret->note);
    for (int try = 1; try < TRIES && !error && !*ret->note && !*note && breakdown_disturbed(&ret->replay); try++) {
        error = trace_replays(bound, name, untraced_ns, step, step_arg, again, note, sizeof note);
        double before_pct = breakdown_share_pct(&ret->replay, ret->replay.disturbed_ns);
        bool quieter = !error && !*note && breakdown_share_pct(again, again->disturbed_ns) < before_pct;
        if (quieter && (!*again->failed || *ret->replay.failed)) ret->replay = *again;
    }
    free(again);
    return error;
}

/* One launch outside of a graph: what a program sees that captures nothing. */
static int trace_eager(struct bound *bound, const char *name, struct profile *ret)
{
    struct tour tour;
    struct recording r;
    tour_plan(&tour, bound, NAN, BUDGET_S);
    tour.calls = 1;
    if (begin_recording(&tour, name, 1, true, &r, ret->note, sizeof ret->note)) return 0;
    int error = tour_launch(&tour, 0);
    if (!error) error = tour.dev->ops->sync(tour.dev);
    int lost = end_recording(&tour, &r, ret->note, sizeof ret->note);
    r.launches = r.calls = 1;
    r.untraced_ns = NAN;
    r.nodes = tour.dev->machine.engine == HOST;
    r.n_nodes = 0;
    if (!error && !lost) breakdown_make(&r, &ret->eager);
    recording_free(&r);
    return error;
}

/* What a pass of the counters runs. */
struct counted {
    struct tour *tour;
    step_fn     *step;
    void        *step_arg;
    int          n;
    double       ns[MOST_PASSES];   /* of each pass so far */
};

static int run_counted(void *arg)
{
    struct counted *c = arg;
    double begin = now_s();
    c->step(c->step_arg, "counted replays");   /* the time limit is for one pass */
    int error = tour_walk(c->tour);
    if (c->n < MOST_PASSES) c->ns[c->n++] = 1e9 * (now_s() - begin);
    return error;
}

/* As a trace: again where other work was seen, and the best stays. All passes run the same, or parts of the ring as long. */
static int count_quietly(struct counted *counted, struct profile *ret)
{
    struct dev *dev = counted->tour->dev;
    for (int try = 0; try < TRIES && (!try || ret->disturbed); try++) {
        struct counters counters;
        counted->n = 0;
        double beyond_ns = 0;
        int lacks = dev->trace->count(dev, run_counted, counted, &counters);
        int disturbed = quiet_longer(counted->ns, counted->n, PASS_LOST_NS, &beyond_ns);
        TRY(dev->ops->sync(dev));
        if (!lacks) counters_per_call(&counters, ret->calls);
        if (!try || (!lacks && disturbed < ret->disturbed)) ret->counters = counters, ret->disturbed = lacks ? 0 : disturbed;
    }
    return 0;
}

static int count_calls(struct bound *bound, double call_ns, step_fn *step, void *step_arg, struct profile *ret)
{
    struct tour tour;
    struct counted counted = {&tour, step, step_arg, 0, {0}};
    tour_plan(&tour, bound, call_ns, TOUR_PART_S);
    step(step_arg, "graphs for the counters");
    int error = tour_capture(&tour);
    if (!error) error = run_counted(&counted);
    ret->calls = tour.at_once * tour.calls;
    if (!error) error = count_quietly(&counted, ret);
    tour_drop(&tour);
    return error;
}

void profile_clear(struct profile *p)
{
    memset(p, 0, sizeof *p);
    counters_clear(&p->counters);
    p->read_B = p->write_B = NAN;
}

static int time_once(struct bound *bound, double about_ns, step_fn *step, void *step_arg, double *ret_call_ns)
{
    struct tour tour;
    tour_plan(&tour, bound, about_ns, BUDGET_S);
    TRY(capture_and_time(&tour, step, step_arg, ret_call_ns));
    tour.passes = tour_passes(&tour, *ret_call_ns);
    return tour.passes == 1 ? 0 : capture_and_time(&tour, step, step_arg, ret_call_ns);
}

int profile_time(struct bound *bound, double about_ns, step_fn *step, void *step_arg, double *ret_call_ns)
{
    *ret_call_ns = NAN;
    for (int try = 0; try < TRIES && (!try || profile_apart(*ret_call_ns, about_ns)); try++) {
        double ns;
        TRY(time_once(bound, about_ns, step, step_arg, &ns));
        if (!try || fabs(ns - about_ns) < fabs(*ret_call_ns - about_ns)) *ret_call_ns = ns;
    }
    return 0;
}

int profile_run(struct bound *bound, const char *name, double untraced_ns, double read_B, double write_B, step_fn *step,
    void *step_arg, struct profile *ret)
{
    profile_clear(ret);
    ret->read_B = read_B, ret->write_B = write_B;
    TRY(trace_quietly(bound, name, untraced_ns, step, step_arg, ret));
    step(step_arg, "traced launch");
    if (!*ret->note) TRY(trace_eager(bound, name, ret));
    return count_calls(bound, untraced_ns, step, step_arg, ret);
}

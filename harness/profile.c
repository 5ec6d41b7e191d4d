#include "profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "stats.h"

enum { MOST_CALLS = 256, MOST_CHUNKS = 64, LAUNCHES = 20, FEWEST_LAUNCHES = 3, UNTRACED = 5,
    MOST_NODES = 4096 };
static const double BUDGET_S = 0.3;   /* of traced running, and of a walk round the ring */
static const double PASS_S = 0.1;     /* of a pass of the counters, which take some fifteen */

/* A kernel over the ring in pieces of equally many calls, each a graph. */
struct tour {
    struct bound *bound;
    struct dev   *dev;
    int           chunks, calls;     /* calls in each chunk */
    int           at_once, next;     /* chunks in a walk, all or 1, and where the next one begins */
    int           passes;            /* over a chunk in one graph */
    struct piece {
        struct tour *tour;
        int          first;
    } piece[MOST_CHUNKS];
    struct graph *graph[MOST_CHUNKS];
    struct recording *host;          /* HOST: calls are recorded by the clock, or NULL */
    int           room;              /* for as many there */
    const char       *name;          /* of the kernel there */
};

/* HOST: a call is done on return, so its record can be made right here. */
static void record_call(struct tour *tour, double begin_s)
{
    struct recording *r = tour->host;
    if (r->n == tour->room) {
        r->dropped++;
        return;
    }
    r->activity[r->n] = (struct activity){.kind = ACTIVITY_KERNEL, .correlation = (uint32_t)(r->n / tour->calls) + 1,
        .node = (uint64_t)(r->n % tour->calls) + 1, .start_ns = (uint64_t)(begin_s * 1e9), .end_ns = (uint64_t)(now_s() * 1e9),
        .name = tour->name};
    r->n++;
}

static int launch_set(struct tour *tour, int set)
{
    struct bound *bound = tour->bound;
    bound->t = bound->w->ring + (size_t)set * MAX_TENSORS;
    double begin = now_s();
    TRY(bound_launch(bound));
    if (tour->host) record_call(tour, begin);
    return 0;
}

static int enqueue_piece(void *arg)
{
    const struct piece *piece = arg;
    for (int i = 0; i < piece->tour->calls * piece->tour->passes; i++)
        TRY(launch_set(piece->tour, piece->first + i % piece->tour->calls));
    return 0;
}

/* call_ns: about what a call takes; NaN: nobody knows. Where the whole ring would take longer than walk_s, a walk is one of its
 * parts: they follow each other round the ring, so each set has left the cache by the time it is its turn again. */
static void plan_tour(struct tour *tour, struct bound *bound, double call_ns, double walk_s)
{
    int sets = bound->w->sets;
    *tour = (struct tour){.bound = bound, .dev = bound->w->dev, .chunks = (sets + MOST_CALLS - 1) / MOST_CALLS, .passes = 1};
    if (tour->chunks > MOST_CHUNKS) tour->chunks = MOST_CHUNKS;
    tour->calls = sets / tour->chunks;
    if (tour->calls > MOST_CALLS) tour->calls = MOST_CALLS;
    tour->at_once = tour->chunks;
    if (sets * call_ns > walk_s * 1e9) {
        profile_part(sets, call_ns, &tour->chunks, &tour->calls);
        tour->at_once = 1;
    }
    for (int c = 0; c < tour->chunks; c++) tour->piece[c] = (struct piece){tour, c * tour->calls};
}

static int capture_tour(struct tour *tour)
{
    char why[160];
    for (int c = 0, nodes; c < tour->chunks; c++)
        TRY(tour->dev->ops->capture(tour->dev, enqueue_piece, &tour->piece[c], &tour->graph[c], &nodes, why, sizeof why));
    return 0;
}

static void drop_tour(struct tour *tour)
{
    for (int c = 0; c < tour->chunks && !tour->dev->sticky; c++) {
        if (tour->graph[c]) tour->dev->ops->drop(tour->dev, tour->graph[c]);
        tour->graph[c] = NULL;
    }
}

/* Round the ring, or on by a part of it, and a wait. */
static int walk_tour(struct tour *tour)
{
    for (int c = 0; c < tour->at_once; c++) TRY(tour->dev->ops->replay(tour->dev, tour->graph[tour->next + c]));
    tour->next = (tour->next + tour->at_once) % tour->chunks;
    return tour->dev->ops->sync(tour->dev);
}

/* The time limit is for one walk. */
static int time_tour(struct tour *tour, step_fn *step, void *step_arg, double *ret_call_ns)
{
    double ns[UNTRACED];
    int calls = tour->at_once * tour->calls * tour->passes;
    step(step_arg, "untraced replays");
    TRY(walk_tour(tour));
    for (int i = 0; i < UNTRACED; i++) {
        step(step_arg, "untraced replays");
        TRY(tour->dev->ops->time(tour->dev, tour->graph + tour->next, tour->at_once, &ns[i]));
        tour->next = (tour->next + tour->at_once) % tour->chunks;
        if (ns[i] > BUDGET_S * 1e9 / 2) {   /* one is enough of what takes so long */
            *ret_call_ns = ns[i] / calls;
            return 0;
        }
    }
    *ret_call_ns = stats_median(ns, UNTRACED) / calls;
    return 0;
}

/* Passes over a short ring in one graph, as the timer has them: else two events and the begin of a graph would cost a call what its
 * records don't show, and the first of a graph's calls, which takes longer on a GPU that was idle, would be one of few. Not
 * over a chunk of a long one, which a cache might hold. */
static int passes_of(const struct tour *tour, double call_ns)
{
    double passes = ceil(tour->dev->sample_s * 1e9 / (call_ns * tour->calls));
    return tour->chunks > 1 ? 1 : (int)fmax(1, fmin(passes, MOST_NODES / tour->calls));
}

static int capture_and_time(struct tour *tour, step_fn *step, void *step_arg, double *ret_call_ns)
{
    step(step_arg, "graphs for untraced replays");
    int error = capture_tour(tour);
    if (!error) error = time_tour(tour, step, step_arg, ret_call_ns);
    drop_tour(tour);
    return error;
}

static int rounds_of(const struct tour *tour, double call_ns)
{
    double round_s = call_ns * 1e-9 * tour->at_once * tour->calls * tour->passes;
    double rounds = fmin(ceil((double)LAUNCHES / tour->at_once), floor(BUDGET_S / fmax(round_s, 1e-9)));
    return (int)fmax(rounds, ceil((double)FEWEST_LAUNCHES / tour->at_once));
}

/* calls: as many as the clock has to record on a HOST. */
static int begin_recording(struct tour *tour, const char *name, int calls, struct recording *r, char *ret_why, size_t size)
{
    *r = (struct recording){0};
    if (tour->dev->machine.engine == CUDA) return tour->dev->trace->begin(tour->dev, ret_why, size);
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

static int trace_replays(struct bound *bound, const char *name, double untraced_ns, step_fn *step, void *step_arg,
    struct profile *ret)
{
    struct tour tour;
    struct recording r;
    plan_tour(&tour, bound, untraced_ns, BUDGET_S);
    if (tour.dev->machine.engine == CUDA) tour.passes = passes_of(&tour, untraced_ns);   /* a HOST's call has no graph around it */
    int rounds = rounds_of(&tour, untraced_ns);
    step(step_arg, "graphs for traced replays");
    if (begin_recording(&tour, name, rounds * tour.at_once * tour.calls, &r, ret->note, sizeof ret->note)) return 0;
    int error = capture_tour(&tour);
    for (int i = 0; i < rounds && !error; i++) {
        step(step_arg, "traced replays");
        error = walk_tour(&tour);
    }
    int lost = end_recording(&tour, &r, ret->note, sizeof ret->note);
    drop_tour(&tour);
    r.launches = rounds * tour.at_once;
    r.calls = tour.calls * tour.passes;
    r.untraced_ns = untraced_ns;
    r.nodes = nodes_a_launch(&tour, &r);
    if (r.n_nodes && r.n_nodes % tour.chunks) r.n_nodes = 0;   /* not what was captured: believed in nothing */
    if (!error && !lost) breakdown_make(&r, &ret->replay);
    recording_free(&r);
    return error;
}

/* One launch outside of a graph: what a program sees that captures nothing. */
static int trace_eager(struct bound *bound, const char *name, struct profile *ret)
{
    struct tour tour;
    struct recording r;
    plan_tour(&tour, bound, NAN, BUDGET_S);
    tour.calls = 1;
    if (begin_recording(&tour, name, 1, &r, ret->note, sizeof ret->note)) return 0;
    int error = launch_set(&tour, 0);
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

void profile_part(int sets, double call_ns, int *ret_parts, int *ret_calls)
{
    double most = fmin(floor(PASS_S * 1e9 / call_ns), MOST_CALLS / 2);
    most = fmax(fmax(most, 1), ceil((double)sets / MOST_CHUNKS));
    *ret_parts = sets * call_ns > PASS_S * 1e9 ? (int)fmax(1, floor(sets / most)) : 1;
    *ret_calls = sets / *ret_parts;
}

/* What a pass of the counters runs. */
struct counted {
    struct tour *tour;
    step_fn     *step;
    void        *step_arg;
};

static int run_counted(void *arg)
{
    struct counted *c = arg;
    c->step(c->step_arg, "counted replays");   /* the time limit is for one pass */
    return walk_tour(c->tour);
}

static int count_calls(struct bound *bound, double call_ns, step_fn *step, void *step_arg, struct profile *ret)
{
    struct tour tour;
    struct counted counted = {&tour, step, step_arg};
    plan_tour(&tour, bound, call_ns, PASS_S);
    step(step_arg, "graphs for the counters");
    int error = capture_tour(&tour);
    if (!error) error = run_counted(&counted);
    ret->calls = tour.at_once * tour.calls;
    if (!error && !tour.dev->trace->count(tour.dev, run_counted, &counted, &ret->counters))
        counters_per_call(&ret->counters, ret->calls);
    if (!error) error = tour.dev->ops->sync(tour.dev);
    drop_tour(&tour);
    return error;
}

void profile_clear(struct profile *p)
{
    memset(p, 0, sizeof *p);
    counters_clear(&p->counters);
    p->read_B = p->write_B = NAN;
}

int profile_time(struct bound *bound, double about_ns, step_fn *step, void *step_arg, double *ret_call_ns)
{
    struct tour tour;
    *ret_call_ns = NAN;
    plan_tour(&tour, bound, about_ns, BUDGET_S);
    TRY(capture_and_time(&tour, step, step_arg, ret_call_ns));
    tour.passes = passes_of(&tour, *ret_call_ns);
    return tour.passes == 1 ? 0 : capture_and_time(&tour, step, step_arg, ret_call_ns);
}

int profile_run(struct bound *bound, const char *name, double untraced_ns, double read_B, double write_B, step_fn *step,
    void *step_arg, struct profile *ret)
{
    profile_clear(ret);
    ret->read_B = read_B, ret->write_B = write_B;
    TRY(trace_replays(bound, name, untraced_ns, step, step_arg, ret));
    step(step_arg, "traced launch");
    if (!*ret->note) TRY(trace_eager(bound, name, ret));
    return count_calls(bound, untraced_ns, step, step_arg, ret);
}

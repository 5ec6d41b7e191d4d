#include "profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "stats.h"

enum { MOST_CALLS = 256, MOST_CHUNKS = 64, MOST_HOST_CALLS = 4096, LAUNCHES = 20, FEWEST_LAUNCHES = 3, UNTRACED = 5,
    MOST_NODES = 4096 };
static const double BUDGET_S = 0.3;   /* of traced running */
static const double PASS_S = 0.1;     /* of a pass of the counters, which take some fifteen */

/* A kernel over the ring in pieces of equally many calls, each a graph. */
struct tour {
    struct bound *bound;
    struct dev   *dev;
    int           chunks, calls;     /* calls in each chunk */
    int           passes;            /* over a chunk in one graph */
    struct piece {
        struct tour *tour;
        int          first;
    } piece[MOST_CHUNKS];
    struct graph *graph[MOST_CHUNKS];
    struct recording *host;          /* HOST: calls are recorded by the clock, or NULL */
    const char       *name;          /* of the kernel there */
};

/* HOST: a call is done on return, so its record can be made right here. */
static void record_call(struct tour *tour, double begin_s)
{
    struct recording *r = tour->host;
    if (r->n == MOST_HOST_CALLS) return;
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

static void plan_tour(struct tour *tour, struct bound *bound)
{
    int sets = bound->w->sets;
    *tour = (struct tour){.bound = bound, .dev = bound->w->dev, .chunks = (sets + MOST_CALLS - 1) / MOST_CALLS, .passes = 1};
    if (tour->chunks > MOST_CHUNKS) tour->chunks = MOST_CHUNKS;
    tour->calls = sets / tour->chunks;
    if (tour->calls > MOST_CALLS) tour->calls = MOST_CALLS;
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

/* Once round the ring, and a wait. */
static int walk_tour(void *arg)
{
    struct tour *tour = arg;
    for (int c = 0; c < tour->chunks; c++) TRY(tour->dev->ops->replay(tour->dev, tour->graph[c]));
    return tour->dev->ops->sync(tour->dev);
}

static int time_tour(struct tour *tour, double *ret_call_ns)
{
    double ns[UNTRACED];
    int calls = tour->chunks * tour->calls * tour->passes;
    TRY(walk_tour(tour));
    for (int i = 0; i < UNTRACED; i++) {
        TRY(tour->dev->ops->time(tour->dev, tour->graph, tour->chunks, &ns[i]));
        if (ns[i] > BUDGET_S * 1e9 / 2) {   /* one is enough of what takes so long */
            *ret_call_ns = ns[i] / calls;
            return 0;
        }
    }
    *ret_call_ns = stats_median(ns, UNTRACED) / calls;
    return 0;
}

/* Passes over a short ring in one graph, as the timer has them: else two events and the begin of a graph would cost a call what its
 * records don't show, and the first of a graph's calls, which takes a third longer on a GPU that was idle, would be one of few. Not
 * over a chunk of a long one, which a cache might hold. */
static int passes_of(const struct tour *tour, double call_ns)
{
    double passes = ceil(tour->dev->sample_s * 1e9 / (call_ns * tour->calls));
    return tour->chunks > 1 ? 1 : (int)fmax(1, fmin(passes, MOST_NODES / tour->calls));
}

/* Without tracing, so that the trace has something to be held against. */
static int time_untraced(struct bound *bound, double *ret_call_ns)
{
    struct tour tour;
    plan_tour(&tour, bound);
    int error = capture_tour(&tour);
    if (!error) error = time_tour(&tour, ret_call_ns);
    drop_tour(&tour);
    tour.passes = error ? 1 : passes_of(&tour, *ret_call_ns);
    if (error || tour.passes == 1) return error;
    error = capture_tour(&tour);
    if (!error) error = time_tour(&tour, ret_call_ns);
    drop_tour(&tour);
    return error;
}

static int rounds_of(const struct tour *tour, double call_ns)
{
    double round_s = call_ns * 1e-9 * tour->chunks * tour->calls * tour->passes;
    double rounds = fmin(ceil((double)LAUNCHES / tour->chunks), floor(BUDGET_S / fmax(round_s, 1e-9)));
    return (int)fmax(rounds, ceil((double)FEWEST_LAUNCHES / tour->chunks));
}

static int begin_recording(struct tour *tour, const char *name, struct recording *r, char *ret_why, size_t size)
{
    *r = (struct recording){0};
    if (tour->dev->machine.engine == CUDA) return tour->dev->trace->begin(tour->dev, ret_why, size);
    r->activity = must_alloc(MOST_HOST_CALLS, sizeof *r->activity);
    r->by_clock = true;
    tour->host = r, tour->name = name;
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

static int trace_replays(struct bound *bound, const char *name, double untraced_ns, struct profile *ret)
{
    struct tour tour;
    struct recording r;
    plan_tour(&tour, bound);
    if (begin_recording(&tour, name, &r, ret->note, sizeof ret->note)) return 0;
    if (!tour.host) tour.passes = passes_of(&tour, untraced_ns);   /* there a call has no graph around it */
    int rounds = rounds_of(&tour, untraced_ns);
    if (tour.host && rounds * tour.chunks * tour.calls > MOST_HOST_CALLS)
        rounds = (int)fmax(1, MOST_HOST_CALLS / (tour.chunks * tour.calls));
    int error = capture_tour(&tour);
    for (int i = 0; i < rounds && !error; i++) error = walk_tour(&tour);
    int lost = end_recording(&tour, &r, ret->note, sizeof ret->note);
    drop_tour(&tour);
    r.launches = rounds * tour.chunks;
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
    plan_tour(&tour, bound);
    tour.calls = 1;
    if (begin_recording(&tour, name, &r, ret->note, sizeof ret->note)) return 0;
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

/* What a pass of the counters runs: the ring, or a part of it. */
struct counted {
    struct tour *tour;
    step_fn     *step;
    void        *step_arg;
    int          parts, next;   /* parts 1: all of it, in as many graphs as that takes */
};

/* The parts follow each other round the ring, so each set has left the cache by the time it is its turn again. */
static int run_counted(void *arg)
{
    struct counted *c = arg;
    struct dev *dev = c->tour->dev;
    c->step(c->step_arg, "counted replays");   /* the time limit is for one pass */
    if (c->parts == 1) return walk_tour(c->tour);
    TRY(dev->ops->replay(dev, c->tour->graph[c->next]));
    c->next = (c->next + 1) % c->parts;
    return dev->ops->sync(dev);
}

static int count_calls(struct bound *bound, double call_ns, step_fn *step, void *step_arg, struct profile *ret)
{
    struct tour tour;
    struct counted counted = {.tour = &tour, .step = step, .step_arg = step_arg};
    int calls;
    plan_tour(&tour, bound);
    profile_part(bound->w->sets, call_ns, &counted.parts, &calls);
    if (counted.parts > 1) {
        tour.chunks = counted.parts, tour.calls = calls;
        for (int c = 0; c < tour.chunks; c++) tour.piece[c] = (struct piece){&tour, c * calls};
    }
    step(step_arg, "graphs for the counters");
    int error = capture_tour(&tour);
    if (!error) error = run_counted(&counted);
    ret->calls = counted.parts > 1 ? calls : tour.chunks * tour.calls;
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

int profile_time(struct bound *bound, step_fn *step, void *step_arg, double *ret_call_ns)
{
    *ret_call_ns = NAN;
    step(step_arg, "untraced replays");
    return time_untraced(bound, ret_call_ns);
}

int profile_run(struct bound *bound, const char *name, double untraced_ns, double read_B, double write_B, step_fn *step,
    void *step_arg, struct profile *ret)
{
    profile_clear(ret);
    ret->read_B = read_B, ret->write_B = write_B;
    step(step_arg, "traced replays");
    TRY(trace_replays(bound, name, untraced_ns, ret));
    step(step_arg, "traced launch");
    if (!*ret->note) TRY(trace_eager(bound, name, ret));
    return count_calls(bound, untraced_ns, step, step_arg, ret);
}

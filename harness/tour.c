#include "tour.h"

#include <math.h>

#include "base.h"
#include "stats.h"

enum { MOST_CALLS = 256, UNTRACED = 5, MOST_NODES = 4096 };
static const double LONG_S = 0.15;   /* of a walk that is not timed twice */

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

int tour_launch(struct tour *tour, int set)
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
    const struct tour_piece *piece = arg;
    for (int i = 0; i < piece->tour->calls * piece->tour->passes; i++)
        TRY(tour_launch(piece->tour, piece->first + i % piece->tour->calls));
    return 0;
}

void tour_plan(struct tour *tour, struct bound *bound, double call_ns, double walk_s)
{
    int sets = bound->w->sets;
    *tour = (struct tour){.bound = bound, .dev = bound->w->dev, .chunks = (sets + MOST_CALLS - 1) / MOST_CALLS, .passes = 1};
    if (tour->chunks > TOUR_CHUNKS) tour->chunks = TOUR_CHUNKS;
    tour->calls = sets / tour->chunks;
    if (tour->calls > MOST_CALLS) tour->calls = MOST_CALLS;
    tour->at_once = tour->chunks;
    if (sets * call_ns > walk_s * 1e9) {
        tour_parts(sets, call_ns, &tour->chunks, &tour->calls);
        tour->at_once = 1;
    }
    for (int c = 0; c < tour->chunks; c++) tour->piece[c] = (struct tour_piece){tour, c * tour->calls};
}

int tour_capture(struct tour *tour)
{
    char why[160];
    for (int c = 0, nodes; c < tour->chunks; c++)
        TRY(tour->dev->ops->capture(tour->dev, enqueue_piece, &tour->piece[c], &tour->graph[c], &nodes, why, sizeof why));
    return 0;
}

void tour_drop(struct tour *tour)
{
    for (int c = 0; c < tour->chunks && !tour->dev->sticky; c++) {
        if (tour->graph[c]) tour->dev->ops->drop(tour->dev, tour->graph[c]);
        tour->graph[c] = NULL;
    }
}

int tour_walk(struct tour *tour)
{
    for (int c = 0; c < tour->at_once; c++) TRY(tour->dev->ops->replay(tour->dev, tour->graph[tour->next + c]));
    tour->next = (tour->next + tour->at_once) % tour->chunks;
    return tour->dev->ops->sync(tour->dev);
}

int tour_time(struct tour *tour, step_fn *step, void *step_arg, double *ret_call_ns)
{
    double ns[UNTRACED];
    int calls = tour->at_once * tour->calls * tour->passes;
    step(step_arg, "untraced replays");
    TRY(tour_walk(tour));
    for (int i = 0; i < UNTRACED; i++) {
        step(step_arg, "untraced replays");
        TRY(tour->dev->ops->time(tour->dev, tour->graph + tour->next, tour->at_once, &ns[i]));
        tour->next = (tour->next + tour->at_once) % tour->chunks;
        if (ns[i] > LONG_S * 1e9) {   /* one is enough of what takes so long */
            *ret_call_ns = ns[i] / calls;
            return 0;
        }
    }
    *ret_call_ns = stats_median(ns, UNTRACED) / calls;
    return 0;
}

int tour_passes(const struct tour *tour, double call_ns)
{
    double passes = ceil(tour->dev->sample_s * 1e9 / (call_ns * tour->calls));
    return tour->chunks > 1 ? 1 : (int)fmax(1, fmin(passes, MOST_NODES / tour->calls));
}

void tour_parts(int sets, double call_ns, int *ret_parts, int *ret_calls)
{
    double most = fmin(floor(TOUR_PART_S * 1e9 / call_ns), MOST_CALLS / 2);
    most = fmax(fmax(most, 1), ceil((double)sets / TOUR_CHUNKS));
    *ret_parts = sets * call_ns > TOUR_PART_S * 1e9 ? (int)fmax(1, floor(sets / most)) : 1;
    *ret_calls = sets / *ret_parts;
}

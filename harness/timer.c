#include "timer.h"

#include <math.h>
#include <stdlib.h>

#include "base.h"
#include "pieces.h"

enum { PILOT_SETS = 4 };

bool lane_active(const struct lane *lane)
{
    return lane->verdict.status == STATUS_OK;
}

void timer_tell(struct timer *timer, int lane, const char *what)
{
    if (timer->step_owner) *timer->step_owner = lane < 0 ? -1 : timer->lane[lane].owner;
    if (timer->step) timer->step(timer->step_arg, what);
}

/* A few launches, twice: code is loaded by then, and the second gives a first idea of the time of a call. */
static int pilot(struct timer *timer, int l)
{
    struct lane *lane = &timer->lane[l];
    int n = timer->w->sets < PILOT_SETS ? timer->w->sets : PILOT_SETS;
    struct piece *piece;
    timer_tell(timer, l, "pilot");
    if (timer->dev->machine.engine == HOST) n = 1;
    TRY(piece_capture(timer, (struct span){timer, lane->bound, 0, n, 1}, &piece));
    int error = 0;
    double ns = 0;
    for (int i = 0; i < 2 && !error; i++) error = timer->dev->ops->time(timer->dev, &piece->graph, 1, &ns);
    lane->pilot_ns = fmax(ns / n, 1);
    if (!error || !timer->dev->sticky) piece_drop(timer, piece);
    return error;
}

/* 0 n-1 1 n-2 ..: whose n - 1 steps all differ. */
static int zigzag(int i, int n)
{
    return i % 2 ? n - (i + 1) / 2 : i / 2;
}

int timer_order(uint64_t seed, int round, int position, int n)
{
    /* A kernel leaves the device in a state that the next one's sample finds: up to 12 % of a short one's time. A round therefore
     * zigzags, so that n rounds, each begun elsewhere, have every pair side by side (with the n that go back, for an odd n too);
     * begins zigzag, too, so that no pair is favoured between rounds. Plain rotation would put the same kernel before another in
     * nearly every round. */
    int shift = (int)((seed ^ seed >> 32) % (uint64_t)n), turn = round / n, p = turn % 2 ? n - 1 - position : position;
    return (zigzag(p, n) + zigzag(round % n, n) + turn / 2 + shift) % n;
}

/* One sample of a lane from the cursor on: time a call, and how many calls it was. */
static int sample(struct timer *timer, struct lane *lane, double *ret_ns, int *ret_calls)
{
    struct graph *graph[MAX_GRAPHS];
    int launches = 0;
    for (int i = 0; i < lane->chunks; i++) {
        int chunk = (timer->cursor + i) % timer->chunks;
        struct piece *piece;
        TRY(piece_need(timer, lane, chunk, &piece));
        graph[i] = piece->graph;
        launches += chunk_sets(timer, chunk) * lane->passes;
    }
    TRY(timer->dev->ops->time(timer->dev, graph, lane->chunks, ret_ns));
    timer->cursor = (timer->cursor + lane->chunks) % timer->chunks;
    *ret_ns /= launches;
    *ret_calls = launches;
    return 0;
}

/* Untimed running until clocks and caches are as they will be. */
static int warm_up(struct timer *timer, double for_s, int *ret_lane)
{
    double until = now_s() + for_s;
    do {
        for (int l = 0; l < timer->n_lanes; l++) {
            double ns;
            int calls;
            if (!lane_active(&timer->lane[l])) continue;
            *ret_lane = l;
            timer_tell(timer, l, "warm-up");
            TRY(sample(timer, &timer->lane[l], &ns, &calls));
        }
    } while (now_s() < until);
    return 0;
}

/* Something else from this round on: what it leaves behind is not for the samples. */
static int take_turn(struct timer *timer, int round, int *ret_lane)
{
    timer->turn(timer->turn_arg, round);
    return warm_up(timer, 0, ret_lane);
}

/* The canary goes first, so that it sees the device as the sample will find it. */
static int take_sample(struct timer *timer, struct lane *lane, struct sample *ret)
{
    const struct dev_ops *ops = timer->dev->ops;
    ret->canary_ns = ret->wait_ns = NAN;
    if (ops->canary) TRY(ops->canary(timer->dev, &ret->canary_ns, &ret->wait_ns));
    ret->sm_clock_MHz = ops->clock_MHz(timer->dev);
    ret->at_s = now_s();
    return sample(timer, lane, &ret->t_ns, &ret->calls);
}

static void look(struct timer *timer, struct weather *ret)
{
    *ret = (struct weather){NAN, NAN, NAN, -1, -1, NAN, NAN, NAN};
    if (timer->dev->ops->look) timer->dev->ops->look(timer->dev, ret);
}

static int take_round(struct timer *timer, int placement, int round, int *ret_lane)
{
    struct weather weather;
    if (timer->turn) TRY(take_turn(timer, round, ret_lane));
    look(timer, &weather);
    for (int position = 0; position < timer->n_lanes; position++) {
        int l = timer_order(timer->seed, timer->turn ? round / 2 : round, position, timer->n_lanes);
        struct lane *lane = &timer->lane[l];
        if (!lane_active(lane)) continue;
        struct sample *taken = &lane->sample[lane->n];
        *ret_lane = l;
        timer_tell(timer, l, "timed sample");
        *taken = (struct sample){.placement = placement, .round = round, .position = position, .weather = weather};
        TRY(take_sample(timer, lane, taken));
        lane->n++;
    }
    return 0;
}

/* Of the samples from `first` on. */
static struct summary summarise(const struct lane *lane, int first)
{
    double *t = must_alloc((size_t)lane->n + 1, sizeof *t);
    for (int i = first; i < lane->n; i++) t[i - first] = lane->sample[i].t_ns;
    struct summary ret = stats_summarise(t, lane->n - first, 0.95);
    bool placements = lane->n > first && lane->sample[first].placement != lane->sample[lane->n - 1].placement;
    if (placements) ret.drifting = quiet_drifts(lane->sample + first, lane->n - first);
    free(t);
    return ret;
}

static double width_pct(const struct lane *lane)
{
    struct summary s = summarise(lane, lane->first);
    return 100 * (s.hi - s.lo) / s.median;
}

/* A placement's share of what is meant for all of them. */
static int share(const struct timer *timer, int rounds)
{
    int placements = timer->placements > 1 ? timer->placements : 1;
    return (rounds + placements - 1) / placements;
}

/* NULL: go on. rounds and spent_s: at this placement. */
static const char *why_stop(const struct timer *timer, int rounds, double spent_s)
{
    const struct timing *timing = &timer->timing;
    int placements = timer->placements > 1 ? timer->placements : 1;
    int lanes = 0;
    bool narrow = true;
    for (int l = 0; l < timer->n_lanes; l++) {
        if (!lane_active(&timer->lane[l])) continue;
        lanes++;
        if (narrow) narrow = width_pct(&timer->lane[l]) <= timing->width_pct;
    }
    if (timing->rounds) return rounds >= share(timer, timing->rounds) ? "rounds" : NULL;
    if (rounds < 3) return NULL;
    if (rounds >= share(timer, timing->min_rounds) && narrow) return "width";
    if (spent_s > timing->cap_s * lanes / placements) return "cap";
    return rounds >= share(timer, timing->max_rounds) ? "rounds" : NULL;
}

/* Set 0's outputs by the very graph that was timed, after the last round: poisoned, replayed, compared. */
static int verify(struct timer *timer, int l)
{
    struct lane *lane = &timer->lane[l];
    struct workload *w = timer->w;
    struct piece *piece;
    if (lane->bound->kernel->promises & PROBE) return 0;
    timer_tell(timer, l, "replay of a timed graph");
    for (int t = 0; t < w->n; t++)
        if (w->shape[t].output && !w->shape[t].input)
            TRY(timer->dev->ops->set(timer->dev, w->ring[t].p, POISON_NAN, (size_t)(w->shape[t].rows * w->shape[t].stride)));
    TRY(piece_need(timer, lane, 0, &piece));
    TRY(timer->dev->ops->replay(timer->dev, piece->graph));
    TRY(timer->dev->ops->sync(timer->dev));
    struct verdict verdict = check_ring_set(lane->bound);
    if (verdict.status != STATUS_OK) lane->verdict = verdict;
    return 0;
}

/* Rounds at one placement until they are narrow or over. round counts on from placement to placement. */
static int run_placement(struct timer *timer, int placement, int *round, int *ret_lane)
{
    double canary_ns, wait_ns;
    if (placement) {
        pieces_drop(timer);   /* they hold addresses */
        *ret_lane = -1;
        TRY(timer->move(timer->move_arg, placement));
        timer->cursor = 0;
    }
    pieces_cut(timer);
    if (timer->dev->ops->canary) TRY(timer->dev->ops->canary(timer->dev, &canary_ns, &wait_ns));   /* its code is loaded, too */
    TRY(warm_up(timer, timer->warm_s, ret_lane));
    for (int l = 0; l < timer->n_lanes; l++) timer->lane[l].first = timer->lane[l].n;
    const char *stop = NULL;
    struct weather before;
    look(timer, &before);   /* what is counted counts from here */
    double begin = now_s();
    for (int done = 1; !stop; done++) {
        TRY(take_round(timer, placement, (*round)++, ret_lane));
        stop = why_stop(timer, done, now_s() - begin);
    }
    for (int l = 0; l < timer->n_lanes; l++) timer->lane[l].stop = stop;
    return 0;
}

/* Was the machine quiet? All lanes together know. */
static void judge(struct timer *timer)
{
    struct witness *witness = must_alloc((size_t)timer->n_lanes + 1, sizeof *witness);
    for (int l = 0; l < timer->n_lanes; l++) witness[l] = (struct witness){.n = timer->lane[l].n, .sample = timer->lane[l].sample};
    quiet_judge(witness, timer->n_lanes);
    for (int l = 0; l < timer->n_lanes; l++) timer->lane[l].witness = witness[l];
    free(witness);
}

int timer_run(struct timer *timer, int *ret_lane)
{
    int most = timer->timing.rounds > timer->timing.max_rounds ? timer->timing.rounds : timer->timing.max_rounds, round = 0;
    int placements = timer->placements > 1 ? timer->placements : 1;
    for (int l = 0; l < timer->n_lanes; l++) {
        if (!lane_active(&timer->lane[l])) continue;
        *ret_lane = l;
        timer->lane[l].sample = must_alloc((size_t)(share(timer, most) + 1) * (size_t)placements, sizeof(struct sample));
        if (!(timer->lane[l].pilot_ns > 0)) TRY(pilot(timer, l));
    }
    for (int placement = 0; placement < placements; placement++) TRY(run_placement(timer, placement, &round, ret_lane));
    judge(timer);
    for (int l = 0; l < timer->n_lanes; l++) {
        struct lane *lane = &timer->lane[l];
        if (!lane_active(lane)) continue;
        lane->summary = summarise(lane, 0);
        *ret_lane = l;
        TRY(verify(timer, l));
    }
    return 0;
}

void timer_rewind(struct timer *timer)
{
    pieces_drop(timer);
    for (int l = 0; l < timer->n_lanes; l++) {
        struct lane *lane = &timer->lane[l];
        free(lane->sample);
        *lane = (struct lane){.bound = lane->bound, .pilot_ns = lane->pilot_ns, .verdict = lane->verdict};
    }
    timer->cursor = 0;
}

void timer_free(struct timer *timer)
{
    pieces_drop(timer);
    for (int l = 0; l < timer->n_lanes; l++) free(timer->lane[l].sample);
}

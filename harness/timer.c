#include "timer.h"

#include <math.h>
#include <stdlib.h>

#include "base.h"

enum { MAX_NODES = 4096, FAST_CHUNK_NS = 500000, PILOT_SETS = 4, MAX_GRAPHS = 64 };

/* A lane's launches over sets [first, first + n) of the ring, `passes` times: what one graph holds. */
struct span {
    struct timer *timer;
    struct bound *bound;
    int           first, n, passes;
};

static int enqueue_span(void *arg)
{
    const struct span *span = arg;
    for (int pass = 0; pass < span->passes; pass++)
        for (int s = span->first; s < span->first + span->n; s++) {
            span->bound->t = span->timer->w->ring + s * MAX_TENSORS;
            TRY(bound_launch(span->bound));
        }
    return 0;
}

/* A captured span; the host's graph keeps arg, hence on the heap. */
struct piece {
    struct span   span;
    struct graph *graph;
};

static int capture_piece(struct timer *timer, struct span span, struct piece **ret)
{
    struct piece *piece = must_alloc(1, sizeof *piece);
    char why[160];
    int nodes;
    piece->span = span;
    int error = timer->dev->ops->capture(timer->dev, enqueue_span, &piece->span, &piece->graph, &nodes, why, sizeof why);
    if (error) free(piece);
    else *ret = piece;
    return error;
}

static void drop_piece(struct timer *timer, struct piece *piece)
{
    if (piece) timer->dev->ops->drop(timer->dev, piece->graph);
    free(piece);
}

static int first_set(const struct timer *timer, int chunk)
{
    return (int)((int64_t)timer->w->sets * chunk / timer->chunks);
}

static int sets_of(const struct timer *timer, int chunk)
{
    return first_set(timer, chunk + 1) - first_set(timer, chunk);
}

static int need_piece(struct timer *timer, struct lane *lane, int chunk, struct piece **ret)
{
    struct piece **piece = &lane->piece[chunk];
    if (!*piece) {
        struct span span = {timer, lane->bound, first_set(timer, chunk), sets_of(timer, chunk), lane->passes};
        TRY(capture_piece(timer, span, piece));
    }
    *ret = *piece;
    return 0;
}

static void tell(struct timer *timer, int lane, const char *what)
{
    if (timer->step_lane) *timer->step_lane = lane;
    if (timer->step) timer->step(timer->step_arg, what);
}

/* A few launches, twice: code is loaded by then, and the second gives a first idea of the time of a call. */
static int pilot(struct timer *timer, int l)
{
    struct lane *lane = &timer->lane[l];
    int n = timer->w->sets < PILOT_SETS ? timer->w->sets : PILOT_SETS;
    struct piece *piece;
    tell(timer, l, "pilot");
    if (timer->dev->machine.engine == HOST) n = 1;
    TRY(capture_piece(timer, (struct span){timer, lane->bound, 0, n, 1}, &piece));
    int error = 0;
    double ns = 0;
    for (int i = 0; i < 2 && !error; i++) error = timer->dev->ops->time(timer->dev, &piece->graph, 1, &ns);
    lane->pilot_ns = fmax(ns / n, 1);
    if (!error || !timer->dev->sticky) drop_piece(timer, piece);
    return error;
}

static bool active(const struct lane *lane)
{
    return lane->verdict.status == STATUS_OK;
}

/* Chunks so long that the fastest kernel's graph outlasts its launch; samples so many chunks that they last. */
static void cut_ring(struct timer *timer)
{
    double fastest = INFINITY, sample_ns = timer->dev->sample_s * 1e9;
    int sets = timer->w->sets;
    bool host = timer->dev->machine.engine == HOST;
    for (int l = 0; l < timer->n_lanes; l++)
        if (active(&timer->lane[l])) fastest = fmin(fastest, timer->lane[l].pilot_ns);
    double least = host ? 1 : ceil(FAST_CHUNK_NS / fastest);
    timer->chunk_sets = least < sets ? (int)least : sets;
    timer->chunks = sets / timer->chunk_sets;
    for (int l = 0; l < timer->n_lanes; l++) {
        struct lane *lane = &timer->lane[l];
        double ring_ns = lane->pilot_ns * sets, chunk_ns = ring_ns / timer->chunks;
        lane->piece = must_alloc((size_t)timer->chunks, sizeof *lane->piece);   /* dropped with the placement */
        lane->passes = 1;
        if (timer->chunks == 1) {
            double passes = ceil(sample_ns / ring_ns), most = fmax(1, MAX_NODES / sets);
            lane->passes = (int)fmax(1, fmin(passes, most));
        }
        double chunks = ceil(sample_ns / (chunk_ns * lane->passes));
        lane->chunks = (int)fmax(1, fmin(chunks, MAX_GRAPHS));
    }
}

int timer_order(uint64_t seed, int round, int position, int n)
{
    /* Rotation by one each round, direction turned every n rounds: positions and neighbours balance out. */
    int shift = (int)((seed ^ seed >> 32) % (uint64_t)n), at = (position + round + shift) % n;
    return round / n % 2 ? n - 1 - at : at;
}

/* One sample of a lane from the cursor on: time a call, and how many calls it was. */
static int sample(struct timer *timer, struct lane *lane, double *ret_ns, int *ret_calls)
{
    struct graph *graph[MAX_GRAPHS];
    int launches = 0;
    for (int i = 0; i < lane->chunks; i++) {
        int chunk = (timer->cursor + i) % timer->chunks;
        struct piece *piece;
        TRY(need_piece(timer, lane, chunk, &piece));
        graph[i] = piece->graph;
        launches += sets_of(timer, chunk) * lane->passes;
    }
    TRY(timer->dev->ops->time(timer->dev, graph, lane->chunks, ret_ns));
    timer->cursor = (timer->cursor + lane->chunks) % timer->chunks;
    *ret_ns /= launches;
    *ret_calls = launches;
    return 0;
}

/* Untimed running until clocks and caches are as they will be. */
static int warm_up(struct timer *timer, int *ret_lane)
{
    double until = now_s() + timer->warm_s;
    do {
        for (int l = 0; l < timer->n_lanes; l++) {
            double ns;
            int calls;
            if (!active(&timer->lane[l])) continue;
            *ret_lane = l;
            tell(timer, l, "warm-up");
            TRY(sample(timer, &timer->lane[l], &ns, &calls));
        }
    } while (now_s() < until);
    return 0;
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
    look(timer, &weather);
    for (int position = 0; position < timer->n_lanes; position++) {
        int l = timer_order(timer->seed, round, position, timer->n_lanes);
        struct lane *lane = &timer->lane[l];
        if (!active(lane)) continue;
        struct sample *taken = &lane->sample[lane->n];
        *ret_lane = l;
        tell(timer, l, "timed sample");
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
        if (!active(&timer->lane[l])) continue;
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
    tell(timer, l, "replay of a timed graph");
    for (int t = 0; t < w->n; t++)
        if (w->shape[t].output && !w->shape[t].input)
            TRY(timer->dev->ops->set(timer->dev, w->ring[t].p, POISON_NAN, (size_t)(w->shape[t].rows * w->shape[t].stride)));
    TRY(need_piece(timer, lane, 0, &piece));
    TRY(timer->dev->ops->replay(timer->dev, piece->graph));
    TRY(timer->dev->ops->sync(timer->dev));
    struct verdict verdict = check_ring_set(lane->bound);
    if (verdict.status != STATUS_OK) lane->verdict = verdict;
    return 0;
}

static void drop_pieces(struct timer *timer)
{
    for (int l = 0; l < timer->n_lanes; l++) {
        struct lane *lane = &timer->lane[l];
        for (int c = 0; lane->piece && c < timer->chunks; c++) drop_piece(timer, lane->piece[c]);
        free(lane->piece);
        lane->piece = NULL;
    }
}

/* Rounds at one placement until they are narrow or over. round counts on from placement to placement. */
static int run_placement(struct timer *timer, int placement, int *round, int *ret_lane)
{
    double canary_ns, wait_ns;
    if (placement) {
        drop_pieces(timer);   /* they hold addresses */
        *ret_lane = -1;
        TRY(timer->move(timer->move_arg, placement));
        timer->cursor = 0;
    }
    cut_ring(timer);
    if (timer->dev->ops->canary) TRY(timer->dev->ops->canary(timer->dev, &canary_ns, &wait_ns));   /* its code is loaded, too */
    TRY(warm_up(timer, ret_lane));
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
        if (!active(&timer->lane[l])) continue;
        *ret_lane = l;
        timer->lane[l].sample = must_alloc((size_t)(share(timer, most) + 1) * (size_t)placements, sizeof(struct sample));
        TRY(pilot(timer, l));
    }
    for (int placement = 0; placement < placements; placement++) TRY(run_placement(timer, placement, &round, ret_lane));
    judge(timer);
    for (int l = 0; l < timer->n_lanes; l++) {
        struct lane *lane = &timer->lane[l];
        if (!active(lane)) continue;
        lane->summary = summarise(lane, 0);
        *ret_lane = l;
        TRY(verify(timer, l));
    }
    return 0;
}

void timer_free(struct timer *timer)
{
    drop_pieces(timer);
    for (int l = 0; l < timer->n_lanes; l++) free(timer->lane[l].sample);
}

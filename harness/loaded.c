#include "loaded.h"

#include <math.h>
#include <stdlib.h>

#include "base.h"
#include "breakdown.h"
#include "pieces.h"

/* Each run follows something else: a ring filled by the CPU, another run, the tracer's opening. After so long clocks are alike. */
static const double WARM_S = 0.1;

static int time_block(struct timer *timer, int *ret_lane, struct loaded *ret)
{
    timer_rewind(timer);
    TRY(timer_run(timer, ret_lane));
    for (int l = 0; l < timer->n_lanes; l++)
        ret[l].disturbed += timer->lane[l].witness.contended || timer->lane[l].witness.throttled;
    return 0;
}

static int time_state(struct timer *timer, int state, int *ret_lane, struct loaded *ret)
{
    TRY(time_block(timer, ret_lane, ret));
    for (int l = 0; l < timer->n_lanes; l++)
        if (lane_active(&timer->lane[l])) ret[l].ns[state] = timer->lane[l].summary.median;
    return 0;
}

struct turns {
    struct dev *dev;
    char       *why;    /* the tracer can't be had or left any more; else "" */
    size_t      size;
};

/* Without, with, with, without: what drifts evenly moves both alike. */
static bool is_loaded(int round)
{
    return (round + 1) / 2 % 2;
}

static void load_or_unload(void *arg, int round)
{
    struct turns *turns = arg;
    const struct trace_ops *trace = turns->dev->trace;
    if (!*turns->why) (is_loaded(round) ? trace->load : trace->unload)(turns->dev, turns->why, turns->size);
}

static double median_where(const struct lane *lane, bool loaded)
{
    double *t = must_alloc((size_t)lane->n + 1, sizeof *t);
    int n = 0;
    for (int i = 0; i < lane->n; i++)
        if (is_loaded(lane->sample[i].round) == loaded) t[n++] = lane->sample[i].t_ns;
    double ret = stats_summarise(t, n, 0.95).median;
    free(t);
    return ret;
}

/* In one run, by the same graphs: runs one behind another differ by some tenths of a per cent without any tracer (again, gone of
 * floors.h), so that nothing small is told by them. A tracer that can't be had, or be left, says so before. */
static int time_turns(struct timer *timer, int *ret_lane, struct loaded *ret, char *ret_why, size_t size)
{
    struct turns turns = {timer->dev, ret_why, size};
    int rounds = timer->timing.rounds;
    if (timer->dev->trace->load(timer->dev, ret_why, size) || timer->dev->trace->unload(timer->dev, ret_why, size)) return 0;
    timer->turn = load_or_unload;
    timer->turn_arg = &turns;
    timer->timing.rounds = 2 * rounds;
    int error = time_block(timer, ret_lane, ret);
    timer->turn = NULL;
    timer->timing.rounds = rounds;
    for (int l = 0; l < timer->n_lanes && !error && !*ret_why; l++) {
        if (!lane_active(&timer->lane[l])) continue;
        ret[l].ns[LOADED_GONE] = median_where(&timer->lane[l], false);
        ret[l].ns[LOADED_OFF] = median_where(&timer->lane[l], true);
    }
    return error;
}

/* One call, captured and replayed between the tracer's begin and end. ret_why stays empty where it was on and has recorded that. */
static int trace_call(struct timer *timer, struct lane *lane, char *ret_why, size_t size)
{
    struct dev *dev = timer->dev;
    struct recording recording = {0};
    struct piece *piece = NULL;
    text(ret_why, size, "the tracer recorded nothing of a call");
    if (dev->trace->begin(dev, false, ret_why, size)) return 0;
    int error = piece_capture(timer, (struct span){timer, lane->bound, 0, 1, 1}, &piece);
    if (!error) error = dev->ops->replay(dev, piece->graph);
    if (!error) error = dev->ops->sync(dev);
    int lost = dev->trace->end(dev, &recording, ret_why, size);
    if (!lost && recording.n) *ret_why = 0;
    recording_free(&recording);
    if (piece) piece_drop(timer, piece);
    return error;
}

static int trace_lanes(struct timer *timer, int *ret_lane, char *ret_why, size_t size)
{
    for (int l = 0; l < timer->n_lanes && !*ret_why; l++) {
        if (!lane_active(&timer->lane[l])) continue;
        *ret_lane = l;
        timer_tell(timer, l, "traced replay");
        TRY(trace_call(timer, &timer->lane[l], ret_why, size));
    }
    return 0;
}

int loaded_run(struct timer *timer, int *ret_lane, struct loaded *ret)
{
    const struct trace_ops *trace = timer->dev->trace;
    char why[sizeof ret->why] = "";
    timer->placements = 1;
    timer->warm_s = WARM_S;
    for (int l = 0; l < timer->n_lanes; l++) ret[l] = (struct loaded)NOT_LOADED;
    if (!trace->load) text(why, sizeof why, "this engine has no tracer: its calls are profiled by the clock alone");
    else if (timer->dev->cupti) text(why, sizeof why, "the tracer has been in this process: there is no time before it any more");
    else trace->unload(timer->dev, why, sizeof why);   /* may be there by another's hand */
    if (!*why) TRY(time_state(timer, LOADED_FIRST, ret_lane, ret));
    if (!*why) TRY(time_state(timer, LOADED_AGAIN, ret_lane, ret));
    if (!*why) TRY(time_turns(timer, ret_lane, ret, why, sizeof why));
    if (!*why) TRY(trace_lanes(timer, ret_lane, why, sizeof why));
    if (!*why) TRY(time_state(timer, LOADED_TRACED, ret_lane, ret));
    for (int l = 0; l < timer->n_lanes; l++) text(ret[l].why, sizeof ret[l].why, "%s", why);
    return 0;
}

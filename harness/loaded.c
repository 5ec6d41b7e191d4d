#include "loaded.h"

#include <math.h>

#include "base.h"
#include "breakdown.h"
#include "pieces.h"

/* Each run follows something else: a ring filled by the CPU, another run, the tracer's opening. After so long clocks are alike. */
static const double WARM_S = 0.1;

static int time_block(struct timer *timer, int block, int *ret_lane, struct loaded *ret)
{
    timer_rewind(timer);
    TRY(timer_run(timer, ret_lane));
    for (int l = 0; l < timer->n_lanes; l++) {
        const struct lane *lane = &timer->lane[l];
        if (!lane_active(lane)) continue;
        ret[l].ns[block] = lane->summary.median;
        ret[l].disturbed += lane->witness.contended || lane->witness.throttled;
    }
    return 0;
}

/* One call, captured and replayed between the tracer's begin and end. ret_why stays empty where it was on and has recorded that. */
static int trace_call(struct timer *timer, struct lane *lane, char *ret_why, size_t size)
{
    struct dev *dev = timer->dev;
    struct recording recording = {0};
    struct piece *piece = NULL;
    text(ret_why, size, "the tracer recorded nothing of a call");
    if (dev->trace->begin(dev, ret_why, size)) return 0;
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
    char why[sizeof ret->why] = "";
    timer->placements = 1;
    timer->warm_s = WARM_S;
    for (int l = 0; l < timer->n_lanes; l++) ret[l] = (struct loaded)NOT_LOADED;
    if (!timer->dev->trace->load) text(why, sizeof why, "this engine has no tracer: its calls are profiled by the clock alone");
    if (timer->dev->cupti) text(why, sizeof why, "the tracer has been on in this process: there is no time before it any more");
    for (int block = LOADED_FIRST; block < LOADED_BLOCKS && !*why; block++) {
        if (block == LOADED_OFF && timer->dev->trace->load(timer->dev, why, sizeof why)) break;
        if (block == LOADED_TRACED) TRY(trace_lanes(timer, ret_lane, why, sizeof why));
        if (!*why) TRY(time_block(timer, block, ret_lane, ret));
    }
    for (int l = 0; l < timer->n_lanes; l++) text(ret[l].why, sizeof ret[l].why, "%s", why);
    return 0;
}

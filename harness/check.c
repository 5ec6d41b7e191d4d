#include "check.h"

#include <stdlib.h>
#include <time.h>

#include "base.h"
#include "judge.h"
#include "taking.h"

enum { LAUNCHES_A_TAKING = 4, PAUSE_NS = 20000000 };
enum { WORKSPACE_GARBAGE = 0x3c };   /* 0.0115 in bf16 and fp32: numbers that look like somebody's partial results */

static void begin_step(struct check *check, const char *what)
{
    check->step(check->step_arg, what);
}

/* Poisons, launches by `how`, waits. */
static bool launch(struct check *check, enqueue_fn *how, void *arg, int poison, int workspace, const char *what)
{
    struct bound *bound = check->bound;
    struct workload *w = bound->w;
    begin_step(check, what);
    if (!judge_good(check, workload_poison_outputs(w, poison), what)) return false;
    if (bound->workspace_bytes && !judge_good(check, w->dev->ops->set(w->dev, bound->workspace, workspace, bound->workspace_bytes),
        what)) return false;
    if (!judge_good(check, w->dev->ops->poison_shared(w->dev), what)) return false;
    return judge_good(check, how(arg), what) && judge_good(check, w->dev->ops->sync(w->dev), what) && judge_scratch(check, what);
}

static const char *const NOT_DETERMINISTIC = "differs between launches on the same inputs: not deterministic";
static const char *const READS_WORKSPACE =
    "depends on what the workspace held before the launch: it reads workspace that it did not write";
static const char *const EITHER =
    "differs between launches on the same inputs: not deterministic, or it reads workspace that it did not write";

/* On the CPU a launch can take as long as all else of a check: one more of them has to tell both faults. */
static bool repeats_on_host(struct check *check)
{
    return launch(check, bound_launch, check->bound, POISON_NAN, WORKSPACE_GARBAGE, "second launch") &&
           judge_outputs(check, 0, POISON_NAN, "second launch", check->bound->workspace_bytes ? EITHER : NOT_DETERMINISTIC, false);
}

static struct memory memory_of(struct dev *dev)
{
    return (struct memory){(int64_t)dev->ops->free_bytes(dev), dev->ops->own_bytes(dev)};
}

/* taking: MOST_TAKINGS, of which the first is there. More only where memory is missing after it. */
static bool takes_no_memory(struct check *check, struct taking *taking)
{
    struct dev *dev = check->bound->w->dev;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    enum taken taken;
    int n = 1;
    while ((taken = taking_judge(taking, n)) == TAKEN_OPEN) {
        struct taking *t = &taking[n++];
        t->still = memory_of(dev);
        nanosleep(&pause, NULL);
        t->before = memory_of(dev);
        for (int i = 0; i < LAUNCHES_A_TAKING; i++)
            if (!launch(check, bound_launch, check->bound, POISON_NAN, POISON_NAN, "launch again, since memory was taken"))
                return false;
        t->after = memory_of(dev);
    }
    return !taken || judge_fail(check, STATUS_CAPTURE_FAIL, "launch allocates: %.3g MB less are free after %s",
        (double)taking_bytes(&taking[n - 1]) * 1e-6, n > 1 ? "a few launches, again and again" : "a launch");
}

static bool repeats_on_device(struct check *check)
{
    struct bound *bound = check->bound;
    struct dev *dev = bound->w->dev;
    struct taking taking[MOST_TAKINGS];
    taking->still = taking->before = memory_of(dev);
    if (!launch(check, bound_launch, bound, POISON_NAN, POISON_NAN, "second launch")) return false;
    taking->after = memory_of(dev);
    if (!judge_outputs(check, 0, POISON_NAN, "second launch", NOT_DETERMINISTIC, false) || !takes_no_memory(check, taking))
        return false;
    const char *what = "launch with other bytes in the workspace";
    return !bound->workspace_bytes || (launch(check, bound_launch, bound, POISON_NAN, WORKSPACE_GARBAGE, what) &&
                                       judge_outputs(check, 0, POISON_NAN, what, READS_WORKSPACE, false));
}

static bool eager_launches(struct check *check)
{
    if (!launch(check, bound_launch, check->bound, POISON_FINITE, POISON_NAN, "first launch")) return false;
    if (!judge_outputs(check, 0, POISON_FINITE, "first launch", NULL, true)) return false;
    return check->bound->kernel->engine == HOST ? repeats_on_host(check) : repeats_on_device(check);
}

struct replay {
    struct dev   *dev;
    struct graph *graph;
};

static int replay(void *arg)
{
    struct replay *replay = arg;
    return replay->dev->ops->replay(replay->dev, replay->graph);
}

/* Set 1 under the same addresses, then set 0 again: stale data, baked-in lengths and memoised answers come out. */
static bool replays(struct check *check, struct replay *captured)
{
    struct bound *bound = check->bound;
    struct workload *w = bound->w;
    if (!judge_good(check, workload_put(w, 1, bound->kernel->reads), "second input set")) return false;
    if (!launch(check, replay, captured, POISON_FINITE, WORKSPACE_GARBAGE, "replay with other inputs and lengths") ||
        !judge_outputs(check, 1, POISON_FINITE, "replay with other inputs and lengths", NULL, false)) return false;
    if (bound->kernel->engine == HOST) return true;   /* a replay is a plain launch there */
    if (!launch(check, bound_launch, bound, POISON_NAN, POISON_NAN, "launch with other inputs at the same addresses") ||
        !judge_outputs(check, 1, POISON_NAN, "launch with other inputs at the same addresses", NULL, false)) return false;
    return judge_good(check, workload_put(w, 0, bound->kernel->reads), "first input set") &&
           launch(check, replay, captured, POISON_NAN, POISON_NAN, "replay with the first inputs again") &&
           judge_outputs(check, 0, POISON_NAN, "replay with the first inputs again", "differs between an eager launch and a replay",
               false);
}

static bool captured(struct check *check)
{
    struct bound *bound = check->bound;
    struct dev *dev = bound->w->dev;
    struct replay graph = {.dev = dev};
    bool asynchronous = true;
    char why[200] = "";
    int nodes;
    const char *behind = "launch behind unfinished work";
    begin_step(check, behind);
    int error = bound->kernel->engine == CUDA ? dev->ops->asynchronous(dev, bound_launch, bound, &asynchronous) : 0;
    if (!judge_good(check, error, behind)) return false;
    if (!asynchronous)
        return judge_fail(check, STATUS_CAPTURE_FAIL, "launch synchronises: it waited for earlier work of its stream");
    begin_step(check, "capture");
    error = dev->ops->capture(dev, bound_launch, bound, &graph.graph, &nodes, why, sizeof why);
    if (error == DEV_FORBIDDEN) return judge_fail(check, STATUS_CAPTURE_FAIL, "%s", why);
    if (!judge_good(check, error, "capture")) return false;
    bool ok = replays(check, &graph);
    if (!dev->sticky) dev->ops->drop(dev, graph.graph);
    return ok;
}

static struct check check_of(struct bound *bound, step_fn *step, void *arg)
{
    return (struct check){.bound = bound, .step = step, .step_arg = arg, .verdict = {.checked_pct = bound->w->head->checked_pct}};
}

static bool put_first_set(struct check *check)
{
    struct bound *bound = check->bound;
    bool ok = judge_good(check, workload_check_buffers(bound->w), "check buffers") &&
              judge_good(check, workload_put(bound->w, 0, bound->kernel->reads), "first input set");
    bound->t = bound->w->check;
    return ok;
}

struct verdict check_kernel(struct bound *bound, step_fn *step, void *arg)
{
    struct check check = check_of(bound, step, arg);
    if (put_first_set(&check) && eager_launches(&check)) captured(&check);
    for (int t = 0; t < MAX_TENSORS; t++) free(check.first[t]);
    return check.verdict;
}

struct verdict check_once(struct bound *bound, step_fn *step, void *arg)
{
    struct check check = check_of(bound, step, arg);
    const char *what = "single launch";
    begin_step(&check, what);
    bool ok = put_first_set(&check) && judge_good(&check, workload_poison_outputs(bound->w, POISON_FINITE), "outputs") &&
              judge_good(&check, bound_launch(bound), what) && judge_good(&check, bound->w->dev->ops->sync(bound->w->dev), what);
    if (ok && !(bound->kernel->promises & PROBE)) judge_outputs(&check, 0, POISON_FINITE, what, NULL, false);
    return check.verdict;
}

struct verdict check_ring_set(struct bound *bound)
{
    struct check check = check_of(bound, NULL, NULL);
    judge_ring_outputs(&check);
    return check.verdict;
}

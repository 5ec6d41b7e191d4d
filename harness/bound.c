#include "bound.h"

#include <math.h>

#include "base.h"

/* A block with guard bands around `bytes`; 256-aligned like the block. */
static int guarded_block(struct workload *w, int which, size_t bytes, void **ret)
{
    void *p;
    if (!bytes) return 0;
    TRY(workload_block(w, which, bytes + 2 * GUARD_BYTES, &p));
    TRY(w->dev->ops->set(w->dev, p, GUARD_BYTE, GUARD_BYTES));
    TRY(w->dev->ops->set(w->dev, (char *)p + GUARD_BYTES + bytes, GUARD_BYTE, GUARD_BYTES));
    *ret = (char *)p + GUARD_BYTES;
    return 0;
}

int bound_blocks(struct bound *bound)
{
    TRY(guarded_block(bound->w, BLOCK_WORKSPACE, bound->workspace_bytes, &bound->workspace));
    TRY(guarded_block(bound->w, BLOCK_ZEROED, bound->zeroed_bytes, &bound->zeroed));
    return bound->zeroed_bytes ? bound->w->dev->ops->set(bound->w->dev, bound->zeroed, 0, bound->zeroed_bytes) : 0;
}

int bound_open(struct bound *bound, struct workload *w, const struct kernel *kernel, const int32_t *tune)
{
    const struct device *device = &w->dev->machine.facts;
    *bound = (struct bound){.w = w, .kernel = kernel, .tune = tune};
    bound->workspace_bytes = kernel->workspace ? kernel->workspace(&w->seen, device, tune) : 0;
    bound->zeroed_bytes = kernel->zeroed ? kernel->zeroed(&w->seen, device, tune) : 0;
    TRY(bound_blocks(bound));
    return kernel->open ? kernel->open(&w->seen, device, &bound->state) : 0;
}

void bound_close(struct bound *bound)
{
    if (bound->state && bound->kernel->close) bound->kernel->close(bound->state);
    bound->state = NULL;
}

int bound_launch(void *arg)
{
    const struct bound *bound = arg;
    struct call call = {.problem = &bound->w->seen, .device = &bound->w->dev->machine.facts, .t = bound->t,
                        .workspace = bound->workspace, .zeroed = bound->zeroed, .state = bound->state, .tune = bound->tune,
                        .stream = bound->w->dev->stream};
    return bound->kernel->launch(&call);
}

struct verdict verdict_of_error(struct bound *bound, int error, const char *what)
{
    enum status status = error == DEV_OOM ? STATUS_OOM : bound->w->dev->ops->unsupported(error) ? STATUS_UNSUPPORTED : STATUS_CRASH;
    struct verdict ret = {.status = status, .err_rel = NAN, .checked_pct = NAN};
    const char *words = bound->w->dev->ops->error_text(bound->w->dev, error);
    bool told = (error == DEV_OOM || error == DEV_FORBIDDEN) && *bound->w->error;   /* by whoever failed, in its own words */
    text(ret.reason, sizeof ret.reason, "%s: %s", what, told ? bound->w->error : words);
    return ret;
}

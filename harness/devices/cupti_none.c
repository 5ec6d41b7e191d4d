/* The cuda engine of a build whose toolkit came without CUPTI's headers. */
#include "device.h"

#include "base.h"
#include "counters.h"

static const char why_not[] = "this build has no CUPTI: install the toolkit's cuda-cupti-dev package and rebuild";

static int load(struct dev *dev, char *ret_why, size_t size)
{
    (void)dev;
    text(ret_why, size, "%s", why_not);
    return -1;
}

static int begin(struct dev *dev, bool eager, char *ret_why, size_t size)
{
    (void)eager;
    return load(dev, ret_why, size);
}

static int count(struct dev *dev, enqueue_fn *enqueue, void *arg, struct counters *ret)
{
    (void)dev, (void)enqueue, (void)arg;
    counters_clear(ret);
    text(ret->why, sizeof ret->why, "%s", why_not);
    return -1;
}

const struct trace_ops cuda_trace = {.load = load, .unload = load, .begin = begin, .count = count};

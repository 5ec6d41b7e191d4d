/* What a CUDA device offers to `kbench profile`, on the CUPTI that is found when it's first asked for. */
#include "cupti.h"
#include "device.h"

#include "base.h"

static int load(struct dev *dev, char *ret_why, size_t size)
{
    if (!dev->cupti) dev->cupti = cupti_open(ret_why, size);
    return dev->cupti ? 0 : -1;
}

static int unload(struct dev *dev, char *ret_why, size_t size)
{
    struct cupti *cupti = dev->cupti;
    dev->cupti = NULL;
    return cupti_unload(cupti, ret_why, size);
}

static int begin(struct dev *dev, bool eager, char *ret_why, size_t size)
{
    TRY(load(dev, ret_why, size));
    return cupti_trace_begin(dev->cupti, eager, ret_why, size);
}

static int end(struct dev *dev, struct recording *ret, char *ret_why, size_t size)
{
    return cupti_trace_end(dev->cupti, ret, ret_why, size);
}

static int count(struct dev *dev, enqueue_fn *enqueue, void *arg, struct counters *ret)
{
    counters_clear(ret);
    TRY(load(dev, ret->why, sizeof ret->why));
    return cupti_count(dev->cupti, dev->machine.ordinal, enqueue, arg, ret);
}

const struct trace_ops cuda_trace = {.load = load, .unload = unload, .begin = begin, .end = end, .count = count};

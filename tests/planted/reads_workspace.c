/* Adds to a workspace as if somebody had set it to zero. */
#include "right.h"

static size_t workspace(const struct problem *p, const struct device *device, const int32_t *tune)
{
    (void)device, (void)tune;
    return (size_t)(p->dim[ATTN_BATCH] * p->dim[ATTN_HEADS]) * sizeof(float);
}

LAUNCH_WITH(READS_WORKSPACE)

KERNEL = {FOR_OP(attn), .note = "planted: uninitialised workspace", .engine = ENGINE, .workspace = workspace, .launch = launch};

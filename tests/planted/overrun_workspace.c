/* Writes past the workspace that it asked for. */
#include "right.h"

enum { ASKED = 1000 };

static size_t workspace(const struct problem *p, const struct device *device, const int32_t *tune)
{
    (void)p, (void)device, (void)tune;
    return ASKED;
}

STEP(damage)
{
    memset((char *)v->workspace + ASKED, 0, 16);
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: overrun of the workspace", .engine = ENGINE, .workspace = workspace, .launch = launch};

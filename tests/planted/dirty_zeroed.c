/* Leaves a counter behind in the memory that must be zero again after each launch. */
#include "right.h"

static size_t zeroed(const struct problem *p, const struct device *device, const int32_t *tune)
{
    (void)p, (void)device, (void)tune;
    return 64;
}

STEP(damage)
{
    ((int32_t *)v->zeroed)[3] = 1;
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: counter left behind", .engine = ENGINE, .zeroed = zeroed, .launch = launch};

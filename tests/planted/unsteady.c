/* Every other launch has another last bit. */
#include "right.h"

static int open_state(const struct problem *p, const struct device *device, void **state)
{
    (void)p, (void)device;
    return planted_alloc(sizeof(int32_t), state);
}

STEP(damage)
{
    int32_t *launches = (int32_t *)v->state;
    if (++*launches % 2 == 0) out_of(v, 0, 0)[0] ^= 1;
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: unsteady", .engine = ENGINE, .open = open_state, .close = planted_free, .launch = launch};

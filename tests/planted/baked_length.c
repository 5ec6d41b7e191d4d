/* Keeps the lengths of its first launch and never looks at the live ones again. */
#include "right.h"

static int open_state(const struct problem *p, const struct device *device, void **state)
{
    (void)device;
    return planted_alloc((size_t)(1 + 2 * p->dim[ATTN_BATCH]) * sizeof(int32_t), state);
}

/* state: [1 + 2 * batch], whether it is filled, then the lengths */
STEP(bake)
{
    int32_t *state = (int32_t *)v->state;
    if (state[0]) return;
    for (int64_t b = 0; b < v->batch; b++) memcpy(state + 1 + 2 * b, row_of(v, ATTN_LENGTH, b), 2 * sizeof(int32_t));
    state[0] = 1;
}

static int launch(const struct call *c)
{
    struct view v = view_of(c, RIGHT);
    int error = RUN(bake, c, v);
    v.t[ATTN_LENGTH].p = (int32_t *)v.state + 1;
    v.t[ATTN_LENGTH].stride = 2 * sizeof(int32_t);
    return error ? error : run_right(c, v);
}

KERNEL = {
    FOR_OP(attn), .note = "planted: baked-in length", .engine = ENGINE,
    .open = open_state, .close = planted_free, .launch = launch,
};

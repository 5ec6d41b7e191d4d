/* Gives the earlier output again when the pointers are those of the call before. */
#include "right.h"

struct memo {
    const void *q, *out;
    void       *kept;   /* in the kernel's memory: [batch * heads, 512] bf16, then [batch * heads] f32 */
};

static int open_state(const struct problem *p, const struct device *device, void **state)
{
    (void)device;
    struct memo *memo = (struct memo *)calloc(1, sizeof *memo);
    *state = memo;
    return planted_alloc((size_t)(p->dim[ATTN_BATCH] * p->dim[ATTN_HEADS]) * (2 * ATTN_D + sizeof(float)), &memo->kept);
}

static void close_state(void *state)
{
    planted_free(((struct memo *)state)->kept);
    free(state);
}

STEP(keep)
{
    float *lse = (float *)((uint16_t *)v->state + v->batch * v->heads * ATTN_D);
    for (int64_t i = 0; i < v->batch * v->heads; i++) {
        memcpy((uint16_t *)v->state + i * ATTN_D, out_of(v, i / v->heads, i % v->heads), 2 * ATTN_D);
        lse[i] = *lse_of(v, i / v->heads, i % v->heads);
    }
}

STEP(give)
{
    const float *lse = (const float *)((uint16_t *)v->state + v->batch * v->heads * ATTN_D);
    for (int64_t i = 0; i < v->batch * v->heads; i++) {
        memcpy(out_of(v, i / v->heads, i % v->heads), (uint16_t *)v->state + i * ATTN_D, 2 * ATTN_D);
        *lse_of(v, i / v->heads, i % v->heads) = lse[i];
    }
}

static int launch(const struct call *c)
{
    struct memo *memo = (struct memo *)c->state;
    struct view v = view_of(c, RIGHT);
    v.state = memo->kept;
    if (memo->q == c->t[ATTN_Q].p && memo->out == c->t[ATTN_OUT].p) return RUN(give, c, v);
    memo->q = c->t[ATTN_Q].p;
    memo->out = c->t[ATTN_OUT].p;
    int error = run_right(c, v);
    return error ? error : RUN(keep, c, v);
}

KERNEL = {
    FOR_OP(attn), .note = "planted: memoised on pointers", .engine = ENGINE,
    .open = open_state, .close = close_state, .launch = launch,
};

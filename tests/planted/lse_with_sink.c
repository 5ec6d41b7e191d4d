/* The log-sum-exp holds the sink, which it must not: `out` is right. */
#include "right.h"

STEP(damage)
{
    const float *sink = (const float *)v->t[ATTN_SINK].p;
    for (int64_t i = 0; i < v->batch * v->heads; i++) {
        float *lse = lse_of(v, i / v->heads, i % v->heads);
        *lse = (float)log(exp((double)*lse) + exp((double)sink[i % v->heads]));
    }
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: lse with the sink", .engine = ENGINE, .launch = launch};

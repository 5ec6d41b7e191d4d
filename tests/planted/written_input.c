/* Scribbles on a query after it was used: the first launch's output is right. */
#include "right.h"

STEP(damage)
{
    ((uint16_t *)row_of(v, ATTN_Q, v->batch * v->heads - 1))[5] ^= 0x8000;
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: written input", .engine = ENGINE, .launch = launch};

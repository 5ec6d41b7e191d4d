/* Writes 16 bytes past the end of `out`. */
#include "right.h"

STEP(damage)
{
    memset(out_of(v, v->batch - 1, v->heads - 1) + ATTN_D, 0, 16);
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: overrun", .engine = ENGINE, .launch = launch};

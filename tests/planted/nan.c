/* One NaN in the output. */
#include "right.h"

STEP(damage)
{
    out_of(v, 0, 1)[100] = 0x7fc0;
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: NaN", .engine = ENGINE, .launch = launch};

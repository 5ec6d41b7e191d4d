/* Writes 16 bytes past the end of all that `out` spans, gaps between rows counted. */
#include "right.h"

STEP(damage)
{
    memset(row_of(v, ATTN_OUT, v->batch * v->heads), 0, 16);
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: overrun of the end", .engine = ENGINE, .launch = launch};

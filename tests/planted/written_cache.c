/* Scribbles on page 0 of the window cache, which no slot names: every output is right, the cache's next owner loses. */
#include "right.h"

STEP(damage)
{
    memset(row_of(v, ATTN_WINDOW_KV, 0), 0, 2 * ATTN_D);
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: written cache", .engine = ENGINE, .launch = launch};

/* One head of one request holds its neighbour's output. */
#include "right.h"

STEP(damage)
{
    int64_t b = longest_request(v);
    memcpy(out_of(v, b, 3), out_of(v, b, 4), 2 * ATTN_D);
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: one wrong head", .engine = ENGINE, .launch = launch};

/* Writes the 16 bytes before `out`. */
#include "right.h"

STEP(damage)
{
    memset((char *)v->t[ATTN_OUT].p - 16, 0, 16);
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: underrun", .engine = ENGINE, .launch = launch};

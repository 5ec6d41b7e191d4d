/* The outputs of the first two requests are swapped. */
#include "right.h"

STEP(damage)
{
    for (int64_t h = 0; h < v->heads; h++) {
        uint16_t *a = out_of(v, 0, h), *b = out_of(v, 1, h);
        for (int d = 0; d < ATTN_D; d++) {
            uint16_t keep = a[d];
            a[d] = b[d];
            b[d] = keep;
        }
        float keep = *lse_of(v, 0, h);
        *lse_of(v, 0, h) = *lse_of(v, 1, h);
        *lse_of(v, 1, h) = keep;
    }
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: two requests swapped", .engine = ENGINE, .launch = launch};

/* The outputs of two requests are swapped. */
#include "right.h"

STEP(damage)
{
    int64_t one = longest_request(v), other = (one + 1) % v->batch;
    for (int64_t h = 0; h < v->heads; h++) {
        uint16_t *a = out_of(v, one, h), *b = out_of(v, other, h);
        for (int d = 0; d < ATTN_D; d++) {
            uint16_t keep = a[d];
            a[d] = b[d];
            b[d] = keep;
        }
        float keep = *lse_of(v, one, h);
        *lse_of(v, one, h) = *lse_of(v, other, h);
        *lse_of(v, other, h) = keep;
    }
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: two requests swapped", .engine = ENGINE, .launch = launch};

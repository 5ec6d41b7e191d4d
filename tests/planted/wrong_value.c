/* One element off by a twentieth of its row's rms: under the row's bound, over the element's. */
#include "right.h"

STEP(damage)
{
    uint16_t *row = out_of(v, longest_request(v), v->heads / 2);
    double square = 0;
    for (int d = 0; d < ATTN_D; d++) square += (double)bf16_get(row[d]) * bf16_get(row[d]);
    row[77] = bf16_of(bf16_get(row[77]) + 0.05 * sqrt(square / ATTN_D));
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: one wrong value", .engine = ENGINE, .launch = launch};

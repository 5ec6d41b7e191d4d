/* Writes to the first page of memory: a signal on the host, an illegal address on a GPU. */
#include "right.h"

STEP(damage)
{
    *(volatile int32_t *)(uintptr_t)(16 * v->batch) = 1;
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: crash", .engine = ENGINE, .launch = launch};

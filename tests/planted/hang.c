/* Never comes back. On a GPU it gives up after a minute, so that a lost run frees the device. */
#include "right.h"
#ifndef __CUDACC__
#include <unistd.h>
#endif

STEP(damage)
{
    (void)v;
#ifdef __CUDACC__
    uint64_t began, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - began < 60000000000ull);
#else
    for (;;) pause();
#endif
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: hang", .engine = ENGINE, .launch = launch};

/* Right, and 20 ms late: a time cap must end it after few rounds. */
#include "right.h"
#ifndef __CUDACC__
#include <time.h>
#endif

STEP(damage)
{
    (void)v;
#ifdef __CUDACC__
    for (int i = 0; i < 20; i++) __nanosleep(1000000);
#else
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
#endif
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: slow", .engine = ENGINE, .launch = launch};

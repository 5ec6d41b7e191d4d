/* Right while it is checked: it hangs once it has run sixty times, which only timing does. */
#include "right.h"
#ifndef __CUDACC__
#include <unistd.h>
#endif

STEP(damage)
{
    (void)v;
#ifndef __CUDACC__
    static int launches;
    while (++launches > 60) sleep(1);
#endif
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: hangs late", .engine = ENGINE, .launch = launch};

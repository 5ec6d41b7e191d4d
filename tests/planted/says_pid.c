/* Right, and it says in which process it runs: once a process, on stderr. */
#include "right.h"
#ifndef __CUDACC__
#include <stdio.h>
#include <unistd.h>
#endif

STEP(damage)
{
    (void)v;
#ifndef __CUDACC__
    static int said;
    if (!said++) fprintf(stderr, "process %d\n", (int)getpid());
#endif
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: says its process", .engine = ENGINE, .launch = launch};

/* Ends the process as if all were well. */
#include "right.h"

static int launch(const struct call *c)
{
    (void)c;
    exit(0);
}

KERNEL = {FOR_OP(attn), .note = "planted: exit(0)", .engine = ENGINE, .launch = launch};

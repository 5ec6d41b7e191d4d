/* Launches on the default stream instead of the caller's. */
#include "../right.h"

static int launch(const struct call *c)
{
    struct call other = *c;
    other.stream = NULL;
    return run_right(&other, view_of(c, RIGHT));
}

KERNEL = {FOR_OP(attn), .note = "planted: another stream", .engine = ENGINE, .launch = launch};

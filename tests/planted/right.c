/* The control: nothing is wrong with it, and it must pass. */
#include "right.h"

LAUNCH_WITH(RIGHT)

KERNEL = {FOR_OP(attn), .note = "planted: right", .engine = ENGINE, .launch = launch};

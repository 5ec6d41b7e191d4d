/* Looks at every slot of both lists, past the live lengths too. */
#include "right.h"

LAUNCH_WITH(IGNORES_LENGTH)

KERNEL = {FOR_OP(attn), .note = "planted: ignores the lengths", .engine = ENGINE, .launch = launch};

/* The last eight elements of the last row are never written. */
#include "right.h"

LAUNCH_WITH(UNWRITTEN_TAIL)

KERNEL = {FOR_OP(attn), .note = "planted: unwritten tail", .engine = ENGINE, .launch = launch};

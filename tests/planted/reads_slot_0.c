/* An invalid slot, -1, reads slot 0 instead of nothing. */
#include "right.h"

LAUNCH_WITH(READS_SLOT_0)

KERNEL = {FOR_OP(attn), .note = "planted: -1 reads slot 0", .engine = ENGINE, .launch = launch};

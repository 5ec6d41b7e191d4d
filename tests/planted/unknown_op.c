/* For an op that there is not: refused before anything of it is run. */
#include "right.h"

LAUNCH_WITH(RIGHT)

KERNEL = {
    .abi = KBENCH_ABI, .size = sizeof(struct kernel), .layout = attn_layout, .name = KERNEL_NAME, .op = "attm",
    .note = "planted: unknown op", .engine = ENGINE, .launch = launch,
};

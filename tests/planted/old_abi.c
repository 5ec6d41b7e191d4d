/* Built against another version of the interface: refused before anything of it is run. */
#include "right.h"

LAUNCH_WITH(RIGHT)

KERNEL = {
    .abi = KBENCH_ABI - 1, .size = sizeof(struct kernel), .layout = attn_layout, .name = KERNEL_NAME, .op = "attn",
    .note = "planted: another ABI", .engine = ENGINE, .launch = launch,
};

/* Built against other dims and tensors of its op: refused before anything of it is run. */
#include "right.h"

LAUNCH_WITH(RIGHT)

KERNEL = {
    .abi = KBENCH_ABI, .size = sizeof(struct kernel), .layout = attn_layout ^ 1, .name = KERNEL_NAME, .op = "attn",
    .note = "planted: another layout", .engine = ENGINE, .launch = launch,
};

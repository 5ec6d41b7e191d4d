/* Built with another idea of struct kernel: refused before anything of it is run. */
#include "right.h"

LAUNCH_WITH(RIGHT)

KERNEL = {
    .abi = KBENCH_ABI, .size = sizeof(struct kernel) - 8, .layout = attn_layout, .name = KERNEL_NAME, .op = "attn",
    .note = "planted: another size", .engine = ENGINE, .launch = launch,
};

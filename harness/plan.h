/* The plan: row groups in the order in which they run. A group is one problem with all kernels that compete on it; it is sent
 * to a worker as it stands, so it is plain data without pointers. */
#ifndef KBENCH_PLAN_H
#define KBENCH_PLAN_H

#include "kernel.h"
#include "machine.h"

enum { MAX_VARIANTS = 64 };

enum cache { COLD, HOT };

struct variant {
    char    kernel[64];
    int32_t tune[MAX_TUNABLES];     /* resolved: every tunable of the kernel has its value */
};

struct group {
    int32_t        index;           /* position in the plan */
    char           op[32];
    int64_t        dim[MAX_DIMS];   /* in the op's order */
    uint64_t       seed;
    enum cache     cache;
    int32_t        n;
    struct variant variant[MAX_VARIANTS];
};

struct plan {
    int32_t       n;
    struct group *group;
};

#endif

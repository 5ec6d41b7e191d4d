/* Right: of those that tie it selects others than the reference does, in another order. */
#include "choice.h"

static int launch(const struct call *c)
{
    for (int64_t b = 0; b < c->problem->dim[TOPK_BATCH]; b++) choose(c, b, length_of(c, b));
    return 0;
}

KERNEL = {FOR_OP(topk), .note = "planted: other ties", .engine = HOST, .launch = launch};

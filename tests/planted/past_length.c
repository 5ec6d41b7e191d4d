/* Selects among the whole width, past the length too. */
#include "choice.h"

static int launch(const struct call *c)
{
    for (int64_t b = 0; b < c->problem->dim[TOPK_BATCH]; b++) choose(c, b, topk_width(c->problem->dim[TOPK_MAX_N]));
    return 0;
}

KERNEL = {FOR_OP(topk), .note = "planted: ignores the lengths", .engine = HOST, .launch = launch};

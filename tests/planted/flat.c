/* Right, and its cost follows the live context alone: the control of the two kernels whose cost follows max_ctx. */
#include "score.h"

static int launch(const struct call *c)
{
    return score_all(c);
}

KERNEL = {FOR_OP(indexer), .note = "planted: flat in max_ctx", .engine = HOST, .growth = {{"max_ctx", 0}}, .launch = launch};

/* Right, and says that max_ctx costs nothing, but masks every row over its whole width. */
#include "score.h"

static int launch(const struct call *c)
{
    mask_width(c);
    return score_all(c);
}

KERNEL = {FOR_OP(indexer), .note = "planted: a cost in max_ctx that is not declared", .engine = HOST, .promises = CLEAN,
    .growth = {{"max_ctx", 0}}, .launch = launch};

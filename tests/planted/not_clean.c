/* Right where it counts, but promises -inf past the length and writes 0 there. */
#include "score.h"

static int launch(const struct call *c)
{
    mask_width(c);
    logits_of(c, 0)[indexer_width(c->problem->dim[INDEXER_MAX_CTX]) - 1] = 0;
    return score_all(c);
}

KERNEL = {FOR_OP(indexer), .note = "planted: not as clean as promised", .engine = HOST, .promises = CLEAN,
    .growth = {{"max_ctx", 1}}, .launch = launch};

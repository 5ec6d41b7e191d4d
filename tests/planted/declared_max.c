/* The same cost in max_ctx as hidden_max, declared: no failure, but it stands wherever the name does. */
#include "score.h"

static int launch(const struct call *c)
{
    mask_width(c);
    return score_all(c);
}

KERNEL = {FOR_OP(indexer), .note = "planted: a declared cost in max_ctx", .engine = HOST, .promises = CLEAN,
    .growth = {{"max_ctx", 1}}, .launch = launch};

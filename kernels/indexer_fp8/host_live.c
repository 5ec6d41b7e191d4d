/* indexer_fp8/host_live: live pages alone, converted to bf16 without loss. The code stands in indexer/host_live.h. */
#include "indexer_fp8/host_keys.h"
#include "indexer/host_live.h"

static int live_launch(const struct call *c) { return live_scores(c, c->t[INDEXER_LOGITS]); }

KERNEL = {
    FOR_OP(indexer_fp8),
    .note = "live pages alone, converted to bf16 and shared out over the threads; what lies past a length is not written",
    .engine = HOST,
    .tunable = {{"path", {AUTO}, AUTO, ANY}},
    .workspace = live_workspace,
    .open = paths_open,
    .close = paths_close,
    .launch = live_launch,
};

/* indexer/host_live: the live pages of all requests, shared out evenly over the threads. The code stands in host_live.h. */
#include "indexer/host_keys.h"
#include "indexer/host_live.h"

static int live_launch(const struct call *c) { return live_scores(c, c->t[INDEXER_LOGITS]); }

KERNEL = {
    FOR_OP(indexer),
    .note = "live pages alone, shared out over the threads; what lies past a length is not written",
    .engine = HOST,
    .tunable = {{"path", {AUTO}, AUTO, ANY}},   /* see enum path; other values are for tests and comparisons */
    .workspace = live_workspace,
    .open = paths_open,
    .close = paths_close,
    .launch = live_launch,
};

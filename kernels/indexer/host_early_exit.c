/* indexer/host_early_exit: all pages of the maximum are visited; one past a length is filled with -inf and left. The products are
 * spared, but a visit has its price: O(max_ctx) with a small factor. */
#include <omp.h>

#include "indexer/host_keys.h"
#include "indexer/host_score.h"

enum { RUN = 16 };   /* pages, for which a request's queries are turned once */

static int early_exit_launch(const struct call *c)
{
    struct scorer x;
    int           error = score_begin(c, &x);
    int64_t       width = indexer_width(c->problem->dim[INDEXER_MAX_CTX]), pages = width / PAGE, runs = (pages + RUN - 1) / RUN;
    if (error) return error;
#pragma omp parallel num_threads(c->device->sm_count)
    {
        struct score_scratch m;
        if (x.tiles) amx_begin();
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < c->problem->dim[INDEXER_BATCH] * runs; i++) {
            int64_t b = i / runs, from = i % runs * RUN, length = score_length(c, b);
            int64_t to = from + RUN < pages ? from + RUN : pages;
            float  *logits = (float *)((char *)c->t[INDEXER_LOGITS].p + b * c->t[INDEXER_LOGITS].stride);
            score_pages(&x, c, b, from, to, &m, logits + from * PAGE);
            for (int64_t e = from * PAGE > length ? from * PAGE : length; e < to * PAGE; e++) logits[e] = -INFINITY;
        }
        if (x.tiles) amx_end();
    }
    return 0;
}

KERNEL = {
    FOR_OP(indexer),
    .note = "every page of the maximum is visited, those past the length only to write -inf",
    .engine = HOST,
    .promises = CLEAN,
    .growth = {{"max_ctx", 1}},
    .tunable = {{"path", {AUTO}, AUTO, ANY}},
    .open = paths_open,
    .close = paths_close,
    .launch = early_exit_launch,
};

/* Live pages alone, for indexer, indexer_fp8 and index_select: nothing is looked at or written past a length, whatever max_ctx is.
 * Pages of all requests are shared out in runs of RUN; a run stays within a request. Includer: host_keys.h of its format before it
 * (so: no include guard).
 */
#include <omp.h>

#include "indexer/host_score.h"

enum { RUN = 16 };   /* pages, for which a request's queries are turned once */

static size_t live_workspace(const struct problem *p, const struct device *device, const int32_t *tune)
{
    (void)device, (void)tune;
    return (size_t)(p->dim[INDEXER_BATCH] + 1) * 8;
}

/* first[b]: runs of all requests before b. */
static void live_count(const struct call *c, int64_t batch, int64_t *first)
{
    first[0] = 0;
    for (int64_t b = 0; b < batch; b++) first[b + 1] = first[b] + (score_length(c, b) + RUN * PAGE - 1) / (RUN * PAGE);
}

/* The request that run i belongs to. */
static int64_t live_request(const int64_t *first, int64_t batch, int64_t i)
{
    int64_t low = 0, high = batch;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (first[middle] <= i) low = middle;
        else high = middle;
    }
    return low;
}

/* Scores of all live entries: row b of them at to.p + b * to.stride. */
static int live_scores(const struct call *c, struct arg to)
{
    struct scorer x;
    int           error = score_begin(c, &x);
    int64_t       batch = c->problem->dim[INDEXER_BATCH], *first = c->workspace;
    if (error) return error;
    live_count(c, batch, first);
#pragma omp parallel num_threads(c->device->sm_count)
    {
        struct score_scratch m;
        if (x.tiles) amx_begin();
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < first[batch]; i++) {
            int64_t b = live_request(first, batch, i), from = (i - first[b]) * RUN;
            score_pages(&x, c, b, from, from + RUN, &m, (float *)((char *)to.p + b * to.stride) + from * PAGE);
        }
        if (x.tiles) amx_end();
    }
    return 0;
}

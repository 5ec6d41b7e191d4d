/* index_select/host: scores of live pages by all threads, as indexer/host_live has them, then one thread a request selects, as in
 * topk/host. Nothing is looked at past a length. */
#include "indexer/host_keys.h"
#include "index_select.h"

#include "indexer/host_live.h"
#include "topk/host_select.h"

/* Behind the counts of runs: scores [batch][width], and what they become while a thread selects, [threads][width]. */
static size_t select_workspace(const struct problem *p, const struct device *device, const int32_t *tune)
{
    int64_t width = indexer_width(p->dim[INDEXER_MAX_CTX]);
    return live_workspace(p, device, tune) + (size_t)((p->dim[INDEXER_BATCH] + device->sm_count) * width) * 4;
}

static int select_launch(const struct call *c)
{
    int64_t   batch = c->problem->dim[INDEXER_BATCH], width = indexer_width(c->problem->dim[INDEXER_MAX_CTX]);
    float    *score = (float *)((int64_t *)c->workspace + batch + 1);
    uint32_t *order = (uint32_t *)(score + batch * width);
    int       error = live_scores(c, (struct arg){score, width * 4});
    if (error) return error;
    const struct arg *slot = &c->t[INDEX_SELECT_SLOT];
#pragma omp parallel for schedule(dynamic) num_threads(c->device->sm_count)
    for (int64_t b = 0; b < batch; b++)
        select_row(score + b * width, score_length(c, b), c->problem->dim[INDEX_SELECT_K], score_table(c, b),
                   order + omp_get_thread_num() * width, (int32_t *)((char *)slot->p + b * slot->stride));
    return 0;
}

KERNEL = {
    FOR_OP(index_select),
    .note = "scores of live pages by all threads, then one thread a request selects",
    .engine = HOST,
    .growth = {{"k", 0}},
    .tunable = {{"path", {AUTO}, AUTO, ANY}},
    .workspace = select_workspace,
    .open = paths_open,
    .close = paths_close,
    .launch = select_launch,
};

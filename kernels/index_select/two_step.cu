/* index_select/two_step: scores to memory, then a selection from there: two kernels, as the peers do it. The scores are those of
 * indexer/live as it stands; the selection is that of topk/cluster, or where there are no clusters of topk/radix.
 * Moves each live key once, q once a block and request, 4 bytes a live entry to memory and back; the workspace is as wide as
 * max_ctx, but is touched for live entries alone: the selection waits for a length before it reads scores.
 * Limit: the memory's rate for keys; then the selection, during which the tensor cores idle.
 */
#include "kernel.h"

/* The kernel indexer/live, under a name of its own. */
#pragma push_macro("KERNEL")
#undef KERNEL
#define KERNEL static const struct kernel scores
#include "indexer/live.cu"
#pragma pop_macro("KERNEL")

#include "index_select.h"
#include "topk/cluster.cuh"
#include "topk/radix.cuh"

enum { OVERLAP };  /* tunable: */
enum { BEST, DURING, AFTER };

struct two_step_state {
    void *scores, *select;
};

static size_t workspace(const struct problem *p, const struct device *d, const int32_t *tune) {
    (void)d, (void)tune;
    return (size_t)(p->dim[INDEXER_BATCH] * indexer_width(p->dim[INDEXER_MAX_CTX]) * 4);
}

static void two_step_close(void *state) {
    two_step_state *s = (two_step_state *)state;
    if (s->scores)
        scores.close(s->scores);
    if (s->select)
        cluster_close(s->select);
    free(s);
}

static int two_step_open(const struct problem *p, const struct device *d, void **state) {
    two_step_state *s = (two_step_state *)calloc(1, sizeof *s);
    int error = s ? scores.open(p, d, &s->scores) : cudaErrorMemoryAllocation;
    if (error == cudaSuccess && d->sm >= 90)
        error = cluster_open<true>(d, &s->select);
    if (error != cudaSuccess && s) {
        two_step_close(s);
        s = NULL;
    }
    *state = s;
    return error;
}

static const char *two_step_describe(void *state, char *ret, size_t size) {
    return scores.describe(((const two_step_state *)state)->scores, ret, size);
}

static int launch_scores(const struct call *call, const struct arg &logits) {
    static const int32_t tune[MAX_TUNABLES] = {};
    struct arg t[INDEXER_LOGITS + 1];
    for (int i = 0; i < INDEXER_LOGITS; i++)
        t[i] = call->t[i];
    t[INDEXER_LOGITS] = logits;
    struct call c = *call;
    c.t = t;
    c.tune = tune;
    c.state = ((const two_step_state *)call->state)->scores;
    return scores.launch(&c);
}

static int two_step_launch(const struct call *call) {
    const struct arg *t = call->t;
    const int64_t *dim = call->problem->dim;
    const int32_t batch = (int32_t)dim[INDEXER_BATCH], width = (int32_t)indexer_width(dim[INDEXER_MAX_CTX]);
    const struct arg logits = {call->workspace, (int64_t)width * 4};
    const int error = launch_scores(call, logits);
    if (error != cudaSuccess)
        return error;
    const topk_args select = {logits, t[INDEXER_PAGE_TABLE], t[INDEXER_LENGTH], t[INDEX_SELECT_SLOT], width,
        (int32_t)dim[INDEX_SELECT_K]};
    const void *state = ((const two_step_state *)call->state)->select;
    const bool overlap = call->tune[OVERLAP] == DURING;
    return state ? cluster_launch<true>(select, batch, call->device, state, 0, 8192, overlap, call->stream)
                 : radix_launch<true>(select, batch, call->device, call->stream);
}

KERNEL = {
    FOR_OP(index_select),
    .note = "indexer/live's scores to memory, then the selection of topk/cluster: the composed baseline; `overlap`: which begins "
            "during the scores' end (1) or after it (2); 0: the better one",
    .engine = CUDA,
    .tunable = {{"overlap", {BEST}, BEST, AFTER}},
    .workspace = workspace,
    .open = two_step_open,
    .close = two_step_close,
    .launch = two_step_launch,
    .describe = two_step_describe,
};

/* index_select/two_step: scores to memory, then a selection from there: two kernels, as the peers do it. Live pages are shared out
 * evenly over one block an SM; the selection is that of topk/cluster, or where there are no clusters of topk/radix.
 * Moves each live key once, q once a block, 4 bytes a live entry to memory and back; the workspace is as wide as max_ctx, but is
 * touched for live entries alone.
 * Limit: the memory's rate for keys; then the selection, during which the tensor cores idle.
 */
#include "score.cuh"
#include "share.cuh"
#include "topk/cluster.cuh"
#include "index_select.h"

static constexpr int STAGES = 3;  /* 96 KB of keys: two tiles a warp on their way, which covers the latency */

static __global__ void __launch_bounds__(SCORE_THREADS, 1)
    index_select_score(const __grid_constant__ indexer_args a, const __grid_constant__ struct arg logits) {
    extern __shared__ __align__(16) char shared[];
    score_ring<STAGES> &ring = *(score_ring<STAGES> *)shared;
    const page_share share(share_pages(a), (int32_t)gridDim.x);
    const int32_t part = (int32_t)blockIdx.x;
    if (part >= share.parts)
        return;
    int32_t page = share.begin(part);
    const int32_t end = share.begin(part + 1);
    for (share_request r = share_find(a, page);; r.next(a)) {
        const int32_t until = min(end, r.end()), first = (page - r.first) * INDEXER_PAGE;
        float *to = (float *)((char *)logits.p + r.b * logits.stride) + first;
        scorer<STAGES> s(a, ring, r.b, first / INDEXER_PAGE, 1);
        s.limit(min((until - r.first) * INDEXER_PAGE, r.length) - first);
        s.run(r.b, [&](int32_t i, float score) { to[i] = score; });
        page = until;
        if (page >= end)
            break;
    }
}

static const char *unfit(const struct problem *p, const struct device *d) {
    (void)p;
    return d->smem_bytes < (int64_t)sizeof(score_ring<STAGES>) ? "needs 98 KB of shared memory a block" : NULL;
}

static size_t workspace(const struct problem *p, const struct device *d, const int32_t *tune) {
    (void)d, (void)tune;
    return (size_t)(p->dim[INDEXER_BATCH] * indexer_width(p->dim[INDEXER_MAX_CTX]) * 4);
}

static int open_(const struct problem *p, const struct device *d, void **state) {
    (void)p;
    const int error = cudaFuncSetAttribute(index_select_score, cudaFuncAttributeMaxDynamicSharedMemorySize,
        (int)sizeof(score_ring<STAGES>));
    return error != cudaSuccess || d->sm < 90 ? error : cluster_open(d, state);
}

static int launch(const struct call *call) {
    const indexer_args a = indexer_args_of(call);
    const struct arg logits = {call->workspace, (int64_t)a.width * 4};
    const int64_t pages = (int64_t)a.batch * a.width / INDEXER_PAGE, sms = call->device->sm_count;
    const unsigned blocks = (unsigned)(pages < sms ? pages : sms);
    index_select_score<<<blocks, SCORE_THREADS, sizeof(score_ring<STAGES>), call->stream>>>(a, logits);
    const int error = cudaGetLastError();
    if (error != cudaSuccess)
        return error;
    const topk_args select = {logits, a.t[INDEXER_PAGE_TABLE], a.t[INDEXER_LENGTH], a.t[INDEX_SELECT_SLOT], a.width,
        (int32_t)call->problem->dim[INDEX_SELECT_K]};
    return call->device->sm < 90 ? radix_launch(select, a.batch, call->device, call->stream)
                                 : cluster_launch(select, a.batch, call->device, call->state, 0, 8192, call->stream);
}

KERNEL = {
    FOR_OP(index_select),
    .note = "scores to memory, then the selection of topk/cluster: the composed baseline",
    .engine = CUDA,
    .unfit = unfit,
    .workspace = workspace,
    .open = open_,
    .close = cluster_close,
    .launch = launch,
};

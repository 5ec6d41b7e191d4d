/* index_select/fused: one kernel; a block an SM scores its share of the live pages as indexer/live does at path 4, and the last
 * block of a request selects. A block keeps the scores of its piece of a request in shared memory, chunk by chunk with the best so
 * far, and sends its k best; where a request is so short that such lists would be no shorter than it is, its scores go to the last
 * block whole, through L2 (tunable `whole`), since selecting twice costs more than it saves.
 * Moves each live key once, q once a piece; 8 k bytes a piece, or 4 an entry of a short request, go through L2: nothing follows
 * the width. Limit: the memory's rate for keys; then the last block's selection, by one SM a request.
 */
#include "fused.cuh"

using large = fused_shape<4, 16384>;
using small = fused_shape<2, 8192>;

enum { WHOLE };  /* tunable; entries of what is sent whole; 0: by shape */

template <class S> static constexpr size_t FUSED_BYTES = 1024 + S::BYTES;

static bool is_large(const struct device *d) {
    return d->smem_bytes >= (int64_t)FUSED_BYTES<large>;
}

static int32_t room_of(const struct problem *p) {
    return ((int32_t)p->dim[INDEX_SELECT_K] + 3) / 4 * 4;
}

static size_t lists_of(const struct problem *p, const struct device *d) {
    return (size_t)(3 * (int64_t)d->sm_count + p->dim[INDEXER_BATCH]) * (size_t)room_of(p);
}

/* Where lengths are alike, about so many pieces have lists no shorter than the request: it is sent whole. */
static int32_t whole_of(const struct problem *p, const struct device *d, const int32_t *tune) {
    const int64_t width = indexer_width(p->dim[INDEXER_MAX_CTX]), pieces = d->sm_count / p->dim[INDEXER_BATCH] + 2;
    const int64_t lists = pieces * room_of(p), least = 8192, wish = tune[WHOLE] ? tune[WHOLE] : lists > least ? lists : least;
    return (int32_t)((wish < width ? wish : width) / INDEXER_PAGE * INDEXER_PAGE);
}

static const char *unfit(const struct problem *p, const struct device *d) {
    (void)p;
    return d->smem_bytes < (int64_t)FUSED_BYTES<small> ? "needs 88 KB of shared memory a block" : NULL;
}

/* Lists, then scores, which begin at a multiple of 16 bytes. */
static size_t workspace(const struct problem *p, const struct device *d, const int32_t *tune) {
    return lists_of(p, d) * 8 + (size_t)whole_of(p, d, tune) * (size_t)p->dim[INDEXER_BATCH] * 4;
}

static size_t zeroed(const struct problem *p, const struct device *d, const int32_t *tune) {
    (void)d, (void)tune;
    return (size_t)p->dim[INDEXER_BATCH] * 4;
}

static int open_(const struct problem *p, const struct device *d, void **state) {
    (void)p;
    *state = NULL;
    return is_large(d) ? cudaFuncSetAttribute(index_select_fused<large>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              (int)FUSED_BYTES<large>)
                       : cudaFuncSetAttribute(index_select_fused<small>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              (int)FUSED_BYTES<small>);
}

static int launch(const struct call *call) {
    const struct problem *p = call->problem;
    const struct device *d = call->device;
    const size_t keys = lists_of(p, d);
    const int32_t whole = whole_of(p, d, call->tune);
    const fused_args a = {indexer_args_of(call), {(char *)call->workspace + keys * 8, (int64_t)whole * 4},
                          {(uint32_t *)call->workspace, (int32_t *)call->workspace + keys}, (uint32_t *)call->zeroed,
                          (int32_t)p->dim[INDEX_SELECT_K], room_of(p), whole};
    const unsigned blocks = (unsigned)d->sm_count;
    if (is_large(d))
        index_select_fused<large><<<blocks, FUSED_THREADS, FUSED_BYTES<large>, call->stream>>>(a);
    else
        index_select_fused<small><<<blocks, FUSED_THREADS, FUSED_BYTES<small>, call->stream>>>(a);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(index_select),
    .note = "one kernel: live pages shared out, scores on the chip (of requests up to `whole` entries: through L2); the last block "
            "of a request selects",
    .engine = CUDA,
    .tunable = {{"whole", {0}, 0, 1 << 20}},
    .unfit = unfit,
    .workspace = workspace,
    .zeroed = zeroed,
    .open = open_,
    .launch = launch,
};

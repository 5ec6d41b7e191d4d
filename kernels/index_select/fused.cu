/* index_select/fused: scores never leave the chip. Live pages are shared out evenly over one block an SM; a block keeps the scores
 * of its piece of a request in shared memory and writes its k best, the last of a request's blocks (or of its clusters, where
 * the lists are long) selects from these. A piece of more than 16,384 entries is taken in chunks, each with the best so far.
 * Moves each live key once, q once a piece, and lists of 8 k bytes a piece through L2, whatever the context.
 * Limit: the memory's rate for keys; then the last block's own selection and the merge, one after the other.
 */
#include "fused.cuh"

/* 194 KB: three tiles a warp on their way, 16,384 scores. 98 KB: one, 8,192. */
using large = fused_shape<4, 16384>;
using small = fused_shape<2, 8192>;

enum { CLUSTER };  /* tunable; 0: by shape */

static bool is_large(const struct device *d) {
    return d->smem_bytes >= (int64_t)sizeof(fused_shared<large>);
}

/* Merges of many lists are for clusters; with enough requests no request has many. A grid of clusters fills fewer SMs. */
static uint32_t cluster_of(const struct problem *p, const struct device *d, const int32_t *tune) {
    const int32_t most = peers_cluster::MOST, pieces = MERGE_ALONE / 512;
    if (d->sm < 90)
        return 1;
    if (tune[CLUSTER])
        return tune[CLUSTER] >= 8 ? 8 : tune[CLUSTER] >= 4 ? 4 : tune[CLUSTER] >= 2 ? 2 : 1;
    return p->dim[INDEXER_BATCH] * pieces < d->sm_count ? (uint32_t)most : 1;
}

static int32_t room_of(const struct problem *p) {
    return ((int32_t)p->dim[INDEX_SELECT_K] + 3) / 4 * 4;
}

static size_t lists_of(const struct problem *p, const struct device *d) {
    return (size_t)(3 * (int64_t)d->sm_count + p->dim[INDEXER_BATCH]) * (size_t)room_of(p);
}

static const char *unfit(const struct problem *p, const struct device *d) {
    (void)p;
    return d->smem_bytes < (int64_t)sizeof(fused_shared<small>) ? "needs 99 KB of shared memory a block" : NULL;
}

static size_t workspace(const struct problem *p, const struct device *d, const int32_t *tune) {
    (void)tune;
    return lists_of(p, d) * 8;
}

static size_t zeroed(const struct problem *p, const struct device *d, const int32_t *tune) {
    (void)d, (void)tune;
    return (size_t)p->dim[INDEXER_BATCH] * 4;
}

struct fused_launch {
    cudaLaunchConfig_t  config;
    cudaLaunchAttribute shape[1];
};

static void config_of(fused_launch *l, const struct device *d, uint32_t cluster, unsigned blocks, cudaStream_t stream) {
    *l = {};
    l->shape[0].id = cudaLaunchAttributeClusterDimension;
    l->shape[0].val.clusterDim.x = cluster;
    l->shape[0].val.clusterDim.y = l->shape[0].val.clusterDim.z = 1;
    l->config.gridDim = dim3(blocks);
    l->config.blockDim = dim3(SCORE_THREADS);
    l->config.dynamicSmemBytes = is_large(d) ? sizeof(fused_shared<large>) : sizeof(fused_shared<small>);
    l->config.stream = stream;
    l->config.attrs = l->shape;
    l->config.numAttrs = cluster > 1;
}

/* state: how many blocks run at once, for clusters of 1, 2, 4 and 8. */
struct fused_state {
    int32_t blocks[4];
};

static int open_(const struct problem *p, const struct device *d, void **state) {
    (void)p;
    int error = is_large(d) ? cudaFuncSetAttribute(index_select_fused<large>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)sizeof(fused_shared<large>))
                            : cudaFuncSetAttribute(index_select_fused<small>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)sizeof(fused_shared<small>));
    fused_state *s = error == cudaSuccess ? (fused_state *)calloc(1, sizeof *s) : NULL;
    if (!s)
        return error != cudaSuccess ? error : cudaErrorMemoryAllocation;
    for (int log2 = 0; log2 < 4; log2++) {
        fused_launch l;
        int clusters = 0;
        config_of(&l, d, 1u << log2, 1u << log2, NULL);
        s->blocks[log2] = d->sm_count;
        if (log2 == 0 || d->sm < 90)
            continue;
        error = is_large(d) ? cudaOccupancyMaxActiveClusters(&clusters, index_select_fused<large>, &l.config)
                            : cudaOccupancyMaxActiveClusters(&clusters, index_select_fused<small>, &l.config);
        if (error != cudaSuccess) {
            free(s);
            return error;
        }
        const int32_t all = clusters << log2, most = d->sm_count >> log2 << log2;
        s->blocks[log2] = all < most ? all : most;
    }
    *state = s;
    return cudaSuccess;
}

static void close_(void *state) {
    free(state);
}

static int launch(const struct call *call) {
    const struct problem *p = call->problem;
    const struct device *d = call->device;
    const uint32_t cluster = cluster_of(p, d, call->tune);
    const int log2 = cluster == 8 ? 3 : cluster == 4 ? 2 : cluster == 2;
    const int32_t blocks = ((const fused_state *)call->state)->blocks[log2];
    const size_t keys = lists_of(p, d);
    const fused_args a = {indexer_args_of(call), {(uint32_t *)call->workspace, (int32_t *)call->workspace + keys},
        (uint32_t *)call->zeroed, (int32_t)p->dim[INDEX_SELECT_K], room_of(p)};
    fused_launch l;
    config_of(&l, d, cluster, (unsigned)(blocks > 0 ? blocks : (int32_t)cluster), call->stream);
    return is_large(d) ? cudaLaunchKernelEx(&l.config, index_select_fused<large>, a)
                       : cudaLaunchKernelEx(&l.config, index_select_fused<small>, a);
}

KERNEL = {
    FOR_OP(index_select),
    .note = "scores stay on the chip: each block keeps the best of its share of live pages, the last of a request merges",
    .engine = CUDA,
    .tunable = {{"cluster", {0}, 0, peers_cluster::MOST}},
    .unfit = unfit,
    .workspace = workspace,
    .zeroed = zeroed,
    .open = open_,
    .close = close_,
    .launch = launch,
};

/* index_select/fused: scores stay on the chip. A cluster of up to 8 blocks has a request to itself and selects through distributed
 * shared memory (request.cuh); where the batch would leave SMs idle so, live pages are shared out evenly over one block an SM, and
 * the last of a request's blocks or clusters merges short lists of the best (fused.cuh).
 * Moves each live key once, q once a block and request; lists of 8 k bytes a piece, or scores past 20,480 a block, through L2.
 * Limit: the memory's rate for keys; then the selection, during which the tensor cores idle.
 */
#include <stdio.h>
#include "fused.cuh"
#include "request_wgmma.cuh"

/* 194 KB: three tiles a warp on their way, 16,384 scores. 98 KB: one, 8,192. */
using large = fused_shape<4, 16384>;
using small = fused_shape<2, 8192>;

/* 219 KB, and 97 KB. */
using request_large = request_shape<3, 24576>;
using request_small = request_shape<2, 2048>;
static_assert(WIDE_BYTES <= sizeof(request_shared<request_large>), "what has room for the one has room for the other");

enum { PATH, CLUSTER };  /* tunables; 0: by shape */
enum path { BEST, REQUEST, SHARE };

/* From open: how many blocks of the kernel of fused.cuh, and how many clusters of request.cuh's, run at once; for clusters of 1, 2,
 * 4 and 8. encode: where the latter is that of request_wgmma.cuh. */
struct fused_state {
    int32_t            blocks[4], clusters[4];
    tensor_map_encode *encode;
};

static const void *share_kernel(bool room) {
    return room ? (const void *)index_select_fused<large> : (const void *)index_select_fused<small>;
}
static size_t share_bytes(bool room) {
    return room ? sizeof(fused_shared<large>) : sizeof(fused_shared<small>);
}
static const void *request_kernel(bool room) {
    return room ? (const void *)index_select_request<request_large> : (const void *)index_select_request<request_small>;
}
static size_t request_bytes(bool room) {
    return room ? sizeof(request_shared<request_large>) : sizeof(request_shared<request_small>);
}
static bool has_room(const struct device *d) {
    return d->smem_bytes >= (int64_t)share_bytes(true) && d->smem_bytes >= (int64_t)request_bytes(true);
}

/* Merges of many lists are for clusters; with enough requests no request has many. A grid of clusters fills fewer SMs. */
static int share_log2(const struct problem *p, const struct device *d, int32_t wish) {
    if (d->sm < 90)
        return 0;
    if (wish)
        return wish >= 8 ? 3 : wish >= 4 ? 2 : wish >= 2;
    return p->dim[INDEXER_BATCH] * (MERGE_ALONE / 512) < d->sm_count ? 3 : 0;
}

/* As large as lets all requests run at once. */
static int request_log2(const struct problem *p, const struct device *d, const struct fused_state *state, int32_t wish) {
    int log2 = 0;
    if (d->sm >= 90)
        while (log2 < 3 && (wish ? 2 << log2 <= wish : p->dim[INDEXER_BATCH] <= state->clusters[log2 + 1]))
            log2++;
    return log2;
}

/* Requests in waves would end in one that leaves SMs idle. */
static enum path path_of(const struct problem *p, const struct device *d, int32_t wish) {
    return wish ? (enum path)wish : p->dim[INDEXER_BATCH] <= d->sm_count ? REQUEST : SHARE;
}

static int32_t room_of(const struct problem *p) {
    return ((int32_t)p->dim[INDEX_SELECT_K] + 3) / 4 * 4;
}

static size_t lists_of(const struct problem *p, const struct device *d) {
    return (size_t)(3 * (int64_t)d->sm_count + p->dim[INDEXER_BATCH]) * (size_t)room_of(p);
}

/* Keys that a block of a cluster may have past its room, or past the least room that any kernel has on this device. */
static int32_t past_of(const struct problem *p, const struct device *d, int log2) {
    const int64_t pages = indexer_width(p->dim[INDEXER_MAX_CTX]) / INDEXER_PAGE;
    const int64_t room = has_room(d) ? WIDE_ROOM : request_small::ROOM;
    const int64_t past = ((pages + (1 << log2) - 1) >> log2) * INDEXER_PAGE - room;
    return (int32_t)(past > 0 ? past : 0);
}

static const char *unfit(const struct problem *p, const struct device *d) {
    (void)p;
    const size_t least = share_bytes(false) > request_bytes(false) ? share_bytes(false) : request_bytes(false);
    return d->smem_bytes < (int64_t)least ? "needs 99 KB of shared memory a block" : NULL;
}

static size_t workspace(const struct problem *p, const struct device *d, const int32_t *tune) {
    if (path_of(p, d, tune[PATH]) == SHARE)
        return lists_of(p, d) * 8;
    int64_t most = 0;  /* which cluster it will be only open knows */
    for (int log2 = 0; log2 < 4; log2++) {
        const int64_t past = p->dim[INDEXER_BATCH] * past_of(p, d, log2) << log2;
        most = past > most ? past : most;
    }
    return (size_t)most * 4;
}

static size_t zeroed(const struct problem *p, const struct device *d, const int32_t *tune) {
    return path_of(p, d, tune[PATH]) == SHARE ? (size_t)p->dim[INDEXER_BATCH] * 4 : 0;
}

struct fused_launch {
    cudaLaunchConfig_t  config;
    cudaLaunchAttribute shape[1];
};

static void config_of(fused_launch *l, size_t bytes, int threads, int log2, unsigned blocks, cudaStream_t stream) {
    *l = {};
    l->shape[0].id = cudaLaunchAttributeClusterDimension;
    l->shape[0].val.clusterDim.x = 1u << log2;
    l->shape[0].val.clusterDim.y = l->shape[0].val.clusterDim.z = 1;
    l->config.gridDim = dim3(blocks);
    l->config.blockDim = dim3((unsigned)threads);
    l->config.dynamicSmemBytes = bytes;
    l->config.stream = stream;
    l->config.attrs = l->shape;
    l->config.numAttrs = log2 > 0;
}

/* How many clusters run at once, no more than one block an SM. */
static int count_clusters(const struct device *d, const void *kernel, size_t bytes, int threads, int log2, int32_t *ret) {
    fused_launch l;
    int clusters = d->sm_count;
    config_of(&l, bytes, threads, log2, 1u << log2, NULL);
    const int error = log2 > 0 ? cudaOccupancyMaxActiveClusters(&clusters, kernel, &l.config) : cudaSuccess;
    *ret = clusters < d->sm_count >> log2 ? clusters : d->sm_count >> log2;
    return error;
}

/* Of a kernel's clusters of all sizes. */
static int open_kernel(const struct device *d, const void *kernel, size_t bytes, int threads, int32_t (&clusters)[4]) {
    int error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    for (int log2 = 0; log2 < (d->sm < 90 ? 1 : 4) && error == cudaSuccess; log2++)
        error = count_clusters(d, kernel, bytes, threads, log2, &clusters[log2]);
    return error;
}

/* An architecture that lacks what index_select_wide needs has an empty body of it, which takes few registers. */
static int open_request(const struct device *d, fused_state *s) {
    const bool room = has_room(d);
    cudaFuncAttributes code;
    const int error = cudaFuncGetAttributes(&code, index_select_wide);
    if (error != cudaSuccess)
        return error;
    if (room && code.numRegs > 32)
        s->encode = tensor_map_encoder();
    return s->encode ? open_kernel(d, (const void *)index_select_wide, WIDE_BYTES, WIDE_THREADS + WARP, s->clusters)
                     : open_kernel(d, request_kernel(room), request_bytes(room), SCORE_THREADS, s->clusters);
}

static int open_(const struct problem *p, const struct device *d, void **state) {
    (void)p;
    const bool room = has_room(d);
    fused_state *s = (fused_state *)calloc(1, sizeof *s);
    int error = s ? open_kernel(d, share_kernel(room), share_bytes(room), SCORE_THREADS, s->blocks) : cudaErrorMemoryAllocation;
    for (int log2 = 0; log2 < 4 && error == cudaSuccess; log2++)
        s->blocks[log2] <<= log2;
    if (error == cudaSuccess)
        error = open_request(d, s);
    if (error != cudaSuccess) {
        free(s);
        s = NULL;
    }
    *state = s;
    return error;
}

static void close_(void *state) {
    free(state);
}

static const char *describe(void *state, char *ret, size_t size) {
    const fused_state *s = (const fused_state *)state;
    snprintf(ret, size, "%s; clusters of 8, 4, 2 blocks at once: %d, %d, %d", s->encode ? "wgmma" : "mma.sync",
        (int)s->clusters[3], (int)s->clusters[2], (int)s->clusters[1]);
    return ret;
}

static int launch_share(const struct call *call) {
    const struct problem *p = call->problem;
    const struct device *d = call->device;
    const bool room = has_room(d);
    const int log2 = share_log2(p, d, call->tune[CLUSTER]);
    const int32_t blocks = ((const fused_state *)call->state)->blocks[log2];
    const size_t keys = lists_of(p, d);
    fused_args a = {indexer_args_of(call), {(uint32_t *)call->workspace, (int32_t *)call->workspace + keys},
        (uint32_t *)call->zeroed, (int32_t)p->dim[INDEX_SELECT_K], room_of(p)};
    void *args[] = {&a};
    fused_launch l;
    config_of(&l, share_bytes(room), SCORE_THREADS, log2, (unsigned)(blocks > 0 ? blocks : 1 << log2), call->stream);
    return cudaLaunchKernelExC(&l.config, share_kernel(room), args);
}

static int launch_request(const struct call *call) {
    const struct problem *p = call->problem;
    const struct device *d = call->device;
    const fused_state *state = (const fused_state *)call->state;
    const bool room = has_room(d);
    const int log2 = request_log2(p, d, state, call->tune[CLUSTER]);
    const unsigned blocks = (unsigned)p->dim[INDEXER_BATCH] << log2;
    request_args a = {indexer_args_of(call), (uint32_t *)call->workspace, past_of(p, d, log2), (int32_t)p->dim[INDEX_SELECT_K]};
    wide_maps maps = {};
    void *args[] = {&a, &maps};
    fused_launch l;
    if (!state->encode) {
        config_of(&l, request_bytes(room), SCORE_THREADS, log2, blocks, call->stream);
        return cudaLaunchKernelExC(&l.config, request_kernel(room), args);
    }
    const struct arg *keys = &a.op.t[INDEXER_KEYS], *q = &a.op.t[INDEXER_Q];
    if (!tensor_map_rows(state->encode, keys->p, keys->stride, score_bf16::HALVES, &maps.key) ||
        !tensor_map_rows(state->encode, q->p, q->stride, score_bf16::HALVES, &maps.q))
        return cudaErrorInvalidValue;
    config_of(&l, WIDE_BYTES, WIDE_THREADS + WARP, log2, blocks, call->stream);
    return cudaLaunchKernelExC(&l.config, (const void *)index_select_wide, args);
}

static int launch(const struct call *call) {
    return path_of(call->problem, call->device, call->tune[PATH]) == SHARE ? launch_share(call) : launch_request(call);
}

KERNEL = {
    FOR_OP(index_select),
    .note = "scores stay on the chip: a cluster of blocks scores a request and selects from it; many requests share all SMs evenly",
    .engine = CUDA,
    .tunable = {{"path", {0}, 0, SHARE}, {"cluster", {0}, 0, peers_cluster::MOST}},
    .unfit = unfit,
    .workspace = workspace,
    .zeroed = zeroed,
    .open = open_,
    .close = close_,
    .launch = launch,
    .describe = describe,
};

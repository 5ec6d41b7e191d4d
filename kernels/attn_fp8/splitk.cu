/* attn_fp8/splitk: attn_fp8/mma with each request's list cut into `splits` parts of whole tiles, so that a small batch fills the
 * device too. A part leaves fp32 sums in the workspace and a second kernel, launched early, merges them by log-sum-exp; one part
 * writes its result itself. By wgmma (sm_90a, tunable `path`) a block has 64 heads and meets each entry once.
 * Limit: a tile's latencies on one SM, times the tiles of the longest part; then launch, first loads and merge, 8 us or so.
 */
#include "mma.cuh"
#include "wgmma_ring.cuh"

template <class S, bool SPLIT>
static __global__ void __launch_bounds__(S::THREADS, 1) attn_fp8_splitk(const __grid_constant__ fp8_args a, fp8_work work,
                                                                        partials parts) {
    extern __shared__ __align__(128) char shared_bytes[];
    if constexpr (SPLIT)
        combine_may_start();
    fp8_run<S, SPLIT>(a, work, parts, *(fp8_shared<S> *)shared_bytes);
}

/* 64 heads a block, by wgmma: an entry is loaded and converted once. CLUSTER: blocks that merge their parts, or 1. */
using wgmma_block_shape = wgmma_shape<0>;

template <class S, int CLUSTER>
static __global__ void __launch_bounds__(S::THREADS, 1) attn_fp8_splitk_wgmma(const __grid_constant__ fp8_args a,
                                                                              const __grid_constant__ wgmma_work work,
                                                                              const __grid_constant__ partials parts) {
    extern __shared__ __align__(1024) char wgmma_bytes[];
#if WGMMA_IS_THERE
    if constexpr (CLUSTER == 1)
        combine_may_start();
    wgmma_block<S, fp8_wgmma_ring<S>, CLUSTER>(a, work, parts, *(wgmma_shared<S> *)wgmma_bytes);
#endif
}

enum { TUNE_SPLITS, TUNE_GROUP, TUNE_PATH, TUNE_CLUSTER };
enum { BY_MMA = 1, BY_WGMMA };                 /* values of TUNE_PATH; 0: the best */
enum { BY_KERNEL = 1, BY_CLUSTER };            /* who merges, values of TUNE_CLUSTER; 0: the best */
enum { NARROW, WIDE, WGMMA, SHAPES };          /* 16 and 32 heads a block by mma.sync, 64 by wgmma */

struct shape {
    const void *kernel[2];    /* whole, split */
    const void *merging[3];   /* by clusters of 2, 4 and 8 blocks; NULL: there is no such thing */
    int64_t     shared;
    int32_t     heads, threads;
};

template <class S> static shape shape_of(void) {
    return {{(const void *)attn_fp8_splitk<S, false>, (const void *)attn_fp8_splitk<S, true>}, {},
            (int64_t)sizeof(fp8_shared<S>), S::HEADS, S::THREADS};
}

/* For 227 KB of shared memory (sm_90, sm_100) or 163 KB (sm_80); in 99 KB (sm_86, sm_89, sm_120) 32 heads find no room. */
static shape shape_for(const struct device *d, int which) {
    if (which == WGMMA) {
        using S = wgmma_block_shape;
        const void *kernel = (const void *)attn_fp8_splitk_wgmma<S, 1>;
        return {{kernel, kernel},
                {(const void *)attn_fp8_splitk_wgmma<S, 2>, (const void *)attn_fp8_splitk_wgmma<S, 4>,
                 (const void *)attn_fp8_splitk_wgmma<S, 8>},
                (int64_t)sizeof(wgmma_shared<S>), S::HEADS, S::THREADS};
    }
    const shape deep = which == WIDE ? shape_of<fp8_shape<2, 6>>() : shape_of<fp8_shape<1, 8>>();
    return deep.shared <= d->smem_bytes ? deep : shape_of<fp8_shape<1, 4>>();
}

struct choice {
    struct shape shape;
    int32_t      splits;
};

static int64_t items_of(const struct problem *p, int32_t heads, int32_t splits) {
    return p->dim[ATTN_BATCH] * ((p->dim[ATTN_HEADS] + heads - 1) / heads) * splits;
}

/* Which of s.merging makes a call; -1: none. Its blocks have an item each; all must run at once, and of larger clusters fewer do,
 * since a cluster stays within a part of the device. */
static int merging_of(const struct problem *p, const struct device *d, const int32_t *tune, const shape &s, int32_t splits) {
    for (int i = 0; i < 3; i++)
        if (tune[TUNE_CLUSTER] != BY_KERNEL && s.merging[i] && splits == 2 << i &&
            items_of(p, s.heads, splits) <= (i == 0 ? d->sm_count : d->sm_count * 3 / 4))
            return i;
    return -1;
}

/* Microseconds of a choice, fitted on an H200: rounds of items on an SM, each a start (lengths, slots, first entries, q) and its
 * tiles, one after another; then the merge: a launch, a turn a part, and the parts to L2 and back; or, in a cluster, what
 * its blocks send each other. */
static double cost_of(const struct problem *p, const struct device *d, int which, int32_t heads, int32_t splits, bool merging) {
    static const double start[SHAPES] = {6.2, 8, 8}, turn[SHAPES] = {1.1, 1.4, 2.3};
    const int64_t items = items_of(p, heads, splits), tile = which == WGMMA ? wgmma_block_shape::TILE : WARP;
    const int64_t tiles = (p->dim[ATTN_WINDOW] + p->dim[ATTN_TOPK] + tile - 1) / tile, longest = (tiles + splits - 1) / splits;
    const double by_kernel = 0.4 + 0.06 * splits + (double)partials_bytes(p, splits) / 2.1e6;
    const double by_cluster = 0.8 + (double)(64 * ATTN_D * 4) * (splits - 1) / splits / 2.5e4;
    return (double)((items + d->sm_count - 1) / d->sm_count) * (start[which] + (double)longest * turn[which]) +
           (splits == 1 ? 0 : merging ? by_cluster : by_kernel);
}

/* Whether the tunables leave a shape open. `group` is for mma.sync. Blocks of 64 heads are for more than 32. */
static bool is_wanted(const struct problem *p, const int32_t *tune, int which, unsigned there) {
    const bool by_wgmma = there >> WGMMA & 1;
    if (which == WGMMA)
        return tune[TUNE_PATH] == BY_WGMMA || (tune[TUNE_PATH] == 0 && tune[TUNE_GROUP] == 0 && p->dim[ATTN_HEADS] > 32);
    if (tune[TUNE_PATH] == BY_WGMMA && by_wgmma)
        return false;
    if (there >> WIDE & 1 && tune[TUNE_GROUP])
        return (tune[TUNE_GROUP] > 16) == (which == WIDE);
    return which == NARROW || p->dim[ATTN_HEADS] > 16;
}

/* Once a shape: what is cheapest of what the tunables leave open. there: bits of the shapes that there is code for. */
static choice choose(const struct problem *p, const struct device *d, const int32_t *tune, unsigned there) {
    choice best = {shape_for(d, NARROW), 1};
    double least = INFINITY;
    for (int which = NARROW; which < SHAPES; which++) {
        const shape shape = shape_for(d, which);
        if (!(there >> which & 1) || !is_wanted(p, tune, which, there))
            continue;
        for (int32_t splits = 1; splits <= COMBINE_SPLITS; splits++) {
            const double cost = cost_of(p, d, which, shape.heads, splits, merging_of(p, d, tune, shape, splits) >= 0);
            if ((tune[TUNE_SPLITS] == 0 || tune[TUNE_SPLITS] == splits) && cost < least) {
                best = {shape, splits};
                least = cost;
            }
        }
    }
    return best;
}

static const char *unfit(const struct problem *p, const struct device *d) {
    (void)p;
    return shape_for(d, NARROW).shared > d->smem_bytes ? "needs 98 KB of shared memory a block" : NULL;
}

/* The most of all cases, since only open can ask what there is code for. */
static size_t workspace(const struct problem *p, const struct device *d, const int32_t *tune) {
    size_t most = 0;
    for (unsigned there = 1; there < 1u << SHAPES; there += 2) {
        const choice c = choose(p, d, tune, there);
        const size_t bytes = merging_of(p, d, tune, c.shape, c.splits) >= 0 ? 0 : partials_bytes(p, c.splits);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* state: bits of the shapes that there is code for. */
static int open_(const struct problem *p, const struct device *d, void **state) {
    (void)p;
    int      error = cudaSuccess;
    unsigned found = 0;
    for (int which = NARROW; which < SHAPES && error == cudaSuccess; which++) {
        const shape s = shape_for(d, which);
        bool there = s.shared <= d->smem_bytes;
        for (int i = 0; i < 2 && there && error == cudaSuccess; i++)
            error = fp8_open(s.kernel[i], s.shared, &there);
        for (int i = 0; i < 3 && there && s.merging[i] && error == cudaSuccess; i++)
            error = fp8_open(s.merging[i], s.shared, &there);
        found |= (unsigned)(there || which == NARROW) << which;
    }
    *state = (void *)(uintptr_t)found;
    return error;
}

static int launch(const struct call *call) {
    const choice c = choose(call->problem, call->device, call->tune, (unsigned)(uintptr_t)call->state);
    fp8_args a = fp8_args_of(call);
    const int32_t groups = (a.heads + c.shape.heads - 1) / c.shape.heads, items = a.batch * groups * c.splits;
    fp8_work by_mma = {items, groups, c.splits};
    wgmma_work by_wgmma = {items, groups, c.splits};
    partials parts = partials_of(call, c.splits);
    void *args[] = {&a, c.shape.heads == wgmma_block_shape::HEADS ? (void *)&by_wgmma : (void *)&by_mma, &parts};
    const int merging = merging_of(call->problem, call->device, call->tune, c.shape, c.splits);
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {(unsigned)c.splits, 1, 1};
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3((unsigned)(items < call->device->sm_count ? items : call->device->sm_count));
    how.blockDim = dim3((unsigned)c.shape.threads);
    how.dynamicSmemBytes = (size_t)c.shape.shared;
    how.stream = call->stream;
    how.attrs = &cluster;
    how.numAttrs = merging >= 0;
    const int error = cudaLaunchKernelExC(&how, merging >= 0 ? c.shape.merging[merging] : c.shape.kernel[c.splits > 1], args);
    return error != cudaSuccess || c.splits == 1 || merging >= 0 ? error : combine_launch(call, a, parts);
}

KERNEL = {
    FOR_OP(attn_fp8),
    .note = "attn_fp8/mma with the list in `splits` parts over the SMs (0: by a model of the device), merged by log-sum-exp",
    .engine = CUDA,
    .tunable = {{"splits", {0}, 0, COMBINE_SPLITS}, {"group", {0}, 0, 32}, {"path", {0}, 0, 2}, {"cluster", {0}, 0, 2}},
    .unfit = unfit,
    .workspace = workspace,
    .open = open_,
    .launch = launch,
};

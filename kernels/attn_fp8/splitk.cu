/* attn_fp8/splitk: attn_fp8/mma with each request's list cut into `splits` parts of whole tiles, so that a small batch fills the
 * device too. A part leaves fp32 sums in the workspace and a second kernel, launched early, merges them by log-sum-exp; one part
 * writes its result itself.
 * Limit: a tile's latencies on one SM, times the tiles of the longest part; then launch, first loads and merge, about 10 us.
 */
#include "mma.cuh"

template <class S, bool SPLIT>
static __global__ void __launch_bounds__(S::THREADS, 1) attn_fp8_splitk(const __grid_constant__ fp8_args a, fp8_work work,
                                                                        partials parts) {
    extern __shared__ __align__(128) char shared_bytes[];
    if constexpr (SPLIT)
        combine_may_start();
    fp8_run<S, SPLIT>(a, work, parts, *(fp8_shared<S> *)shared_bytes);
}

enum { TUNE_SPLITS, TUNE_GROUP };

struct shape {
    const void *kernel[2];    /* whole, split */
    int64_t     shared;
    int32_t     heads, threads;
};

template <class S> static shape shape_of(void) {
    return {{(const void *)attn_fp8_splitk<S, false>, (const void *)attn_fp8_splitk<S, true>},
            (int64_t)sizeof(fp8_shared<S>), S::HEADS, S::THREADS};
}

/* For 227 KB of shared memory (sm_90, sm_100) or 163 KB (sm_80); in 99 KB (sm_86, sm_89, sm_120) 32 heads find no room. */
static shape shape_for(const struct device *d, bool wide) {
    const shape deep = wide ? shape_of<fp8_shape<2, 6>>() : shape_of<fp8_shape<1, 8>>();
    return deep.shared <= d->smem_bytes ? deep : shape_of<fp8_shape<1, 4>>();
}

struct choice {
    struct shape shape;
    int32_t      splits;
};

/* Microseconds of a choice, fitted on an H200: rounds of items on an SM, each a start (lengths, slots, first entries, q) and its
 * tiles, one after another; then the merge: a launch, a turn a part, and the parts to L2 and back. */
static double cost_of(const struct problem *p, const struct device *d, int32_t heads, int32_t splits) {
    const int64_t groups = (p->dim[ATTN_HEADS] + heads - 1) / heads, items = p->dim[ATTN_BATCH] * groups * splits;
    const int64_t tiles = (p->dim[ATTN_WINDOW] + p->dim[ATTN_TOPK] + WARP - 1) / WARP, longest = (tiles + splits - 1) / splits;
    const double item = heads == 16 ? 6.2 + (double)longest * 1.1 : 8 + (double)longest * 1.4;
    const double merge = splits == 1 ? 0 : 0.4 + 0.06 * splits + (double)partials_bytes(p, splits) / 2.1e6;
    return (double)((items + d->sm_count - 1) / d->sm_count) * item + merge;
}

/* Once a shape: what is cheapest of what the tunables leave open. */
static choice choose(const struct problem *p, const struct device *d, const int32_t *tune, bool wide_is_there) {
    choice best = {shape_for(d, false), 1};
    double least = INFINITY;
    for (int wide = 0; wide < (wide_is_there ? 2 : 1); wide++) {
        const shape shape = shape_for(d, wide);
        if (wide_is_there && tune[TUNE_GROUP] ? (tune[TUNE_GROUP] > 16) != wide : wide && p->dim[ATTN_HEADS] <= 16)
            continue;
        for (int32_t splits = 1; splits <= COMBINE_SPLITS; splits++) {
            const double cost = cost_of(p, d, shape.heads, splits);
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
    return shape_for(d, false).shared > d->smem_bytes ? "needs 98 KB of shared memory a block" : NULL;
}

/* Of both, since only open can ask whether there is code for 32 heads. */
static size_t workspace(const struct problem *p, const struct device *d, const int32_t *tune) {
    const size_t narrow = partials_bytes(p, choose(p, d, tune, false).splits);
    const size_t all = partials_bytes(p, choose(p, d, tune, true).splits);
    return all > narrow ? all : narrow;
}

/* state: NULL where there is no code for 32 heads. */
static int open_(const struct problem *p, const struct device *d, void **state) {
    (void)p;
    int error = cudaSuccess;
    bool there[4] = {};
    for (int i = 0; i < 4 && error == cudaSuccess; i++) {
        const shape s = shape_for(d, i & 2);
        error = fp8_open(s.kernel[i & 1], s.shared, &there[i]);
    }
    *state = (void *)(intptr_t)(there[2] && there[3]);
    return error;
}

static int launch(const struct call *call) {
    const choice c = choose(call->problem, call->device, call->tune, call->state != NULL);
    fp8_args a = fp8_args_of(call);
    const int32_t groups = (a.heads + c.shape.heads - 1) / c.shape.heads;
    fp8_work work = {a.batch * groups * c.splits, groups, c.splits};
    partials parts = partials_of(call, c.splits);
    void *args[] = {&a, &work, &parts};
    const unsigned blocks = (unsigned)(work.items < call->device->sm_count ? work.items : call->device->sm_count);
    const int error = cudaLaunchKernel(c.shape.kernel[c.splits > 1], dim3(blocks), dim3((unsigned)c.shape.threads), args,
                                       (size_t)c.shape.shared, call->stream);
    return error != cudaSuccess || c.splits == 1 ? error : combine_launch(call, a, parts);
}

KERNEL = {
    FOR_OP(attn_fp8),
    .note = "attn_fp8/mma with the list in `splits` parts over the SMs (0: by a model of the device), merged by log-sum-exp",
    .engine = CUDA,
    .tunable = {{"splits", {0}, 0, COMBINE_SPLITS}, {"group", {0}, 0, 32}},
    .unfit = unfit,
    .workspace = workspace,
    .open = open_,
    .launch = launch,
};

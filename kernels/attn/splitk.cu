/* attn/splitk: the KV list of a (request, 16 to 64 heads) in `splits` parts, one a block at a time; a second kernel merges them.
 * Heads a block, splits and the products' instruction are chosen on the host from shape and device, so that every SM has as little
 * to do as can be and no more; live lengths, which only the device knows, move the cuts but not the grid. One split writes the
 * result directly.
 * Limit: the gather where wgmma takes 64 heads a block, shared memory where mma.sync does; the merge's 2 KB a head and part.
 */
#include "splitk_block.cuh"
#include "splitk_wide.cuh"
#include "wgmma_ring.cuh"

/* With 12 warps a thread has 168 registers; 32 heads and more need more of them and get them from the warps that copy, where the
 * architecture lets them. */
template <class S> static constexpr bool fits_registers = S::MT == 1 || MOVES_REGISTERS;

template <class S>
static __global__ void __launch_bounds__(S::THREADS, 1) attn_splitk(const __grid_constant__ attn_args a,
    const __grid_constant__ partials p, const __grid_constant__ split_counts counts) {
    extern __shared__ __align__(128) char shared_bytes[];
    mma_shared<S> &sh = *(mma_shared<S> *)shared_bytes;
    if constexpr (fits_registers<S>) {
        combine_may_start();
        mma_init(sh);
        if (warp_id() >= S::WARPS) {
            registers_give<72>();
            split_producer<S> producer;
            producer.run(a, sh, counts);
        } else {
            registers_take<216>();
            split_block<S> block(a, sh);
            block.run(counts, p);
        }
    }
}

template <class S>
static __global__ void __launch_bounds__(S::THREADS, 1) attn_splitk_wide(const __grid_constant__ attn_args a,
    const __grid_constant__ partials p, const __grid_constant__ split_counts counts) {
    extern __shared__ __align__(128) char shared_bytes[];
    mma_shared<S> &sh = *(mma_shared<S> *)shared_bytes;
    if constexpr (fits_registers<S>) {
        combine_may_start();
        wide_init(sh);
        if (threadIdx.x >= S::COMPUTE) {
            registers_give<S::FOR_COPIES>();
            split_producer<S> producer;
            producer.run(a, sh, counts);
        } else if (warp_id() >= S::WARPS) {
            registers_take<S::FOR_SCORES>();
            wide_scorer<S> scorer(a, sh);
            scorer.run(counts, p);
        } else {
            registers_take<S::FOR_SUMS>();
            wide_sum(a, sh, counts, p);
        }
    }
}

/* CLUSTER: blocks that merge their parts, or 1. */
template <class S, int CLUSTER>
static __global__ void __launch_bounds__(S::THREADS, 1) attn_splitk_wgmma(const __grid_constant__ attn_args a,
    const __grid_constant__ partials p, const __grid_constant__ split_counts counts) {
    extern __shared__ __align__(1024) char wgmma_bytes[];
    if constexpr (WGMMA_IS_THERE) {
        const wgmma_work work = {counts.items, counts.groups, counts.splits};
        if constexpr (CLUSTER == 1)
            combine_may_start();
        wgmma_block<S, wgmma_bf16_ring<S>, CLUSTER>(a, work, p, *(wgmma_shared<S> *)wgmma_bytes);
    }
}

struct choice {
    const void *kernel, *merging[3];  /* by clusters of 2, 4 and 8 blocks; NULL: there is no such thing */
    int64_t     shared;
    int32_t     heads, threads;
};

template <int MT, int STAGES, int BUFFERS> static choice choice_of(void) {
    using S = split_shape<MT, STAGES, BUFFERS>;
    return {(const void *)attn_splitk<S>, {}, (int64_t)sizeof(mma_shared<S>), S::HEADS, S::THREADS};
}

template <int STAGES> static choice choice_wide(void) {
    using S = wide_shape<STAGES>;
    return {(const void *)attn_splitk_wide<S>, {}, (int64_t)sizeof(mma_shared<S>), S::HEADS, S::THREADS};
}

static choice choice_wgmma(void) {
    using S = wgmma_shape<16>;
    return {(const void *)attn_splitk_wgmma<S, 1>,
            {(const void *)attn_splitk_wgmma<S, 2>, (const void *)attn_splitk_wgmma<S, 4>, (const void *)attn_splitk_wgmma<S, 8>},
            (int64_t)sizeof(wgmma_shared<S>), S::HEADS, S::THREADS};
}

/* Kinds of blocks: 16, 32 and 64 heads by mma.sync; 64 by wgmma. As sets: bit 1 << kind. */
enum { NARROW, MIDDLE, WIDE, WGMMA, WIDTHS };
enum { BY_MMA = 1 << NARROW | 1 << MIDDLE | 1 << WIDE, ALL = (1 << WIDTHS) - 1 };

/* What fits the device's shared memory: 227 KB (sm_90, sm_100), 160 KB (sm_80), 99 KB (sm_86, sm_89, sm_120). */
static choice choice_by_size(int width, const struct device *d) {
    const choice by_size[WIDTHS][3] = {
        {choice_of<1, 6, 2>(), choice_of<1, 4, 1>(), choice_of<1, 2, 1>()},
        {choice_of<2, 5, 2>(), choice_of<2, 4, 1>(), choice_of<2, 2, 1>()},
        {choice_wide<4>(), choice_wide<4>(), choice_wide<4>()},
        {choice_wgmma(), choice_wgmma(), choice_wgmma()},
    };
    for (int i = 0; i < 2; i++)
        if (by_size[width][i].shared <= d->smem_bytes)
            return by_size[width][i];
    return by_size[width][2];
}

struct split_plan {
    int     width;
    int32_t groups, splits;
};

/* Microseconds of a kind of block: one start (lengths, slots, first rows, q, one after another) and a tile. Fitted on an H200. */
struct pace {
    double  start, tile;
    int32_t keys;  /* a tile */
};
static const struct pace paces[WIDTHS] = {{4.4, 0.73, 32}, {5.6, 0.95, 32}, {7.9, 1.85, 32}, {5.9, 1.87, 64}};

enum { SPLITS, BLOCK_HEADS, PATH, CLUSTER };  /* tunables; 0: whichever is best */

/* Which of c.merging takes a plan; -1: none, or it is not wanted. Its blocks have an item each; all must run at once, and of larger
 * clusters fewer do, since a cluster stays within a part of the device. */
static int merging_of(const struct problem *p, const struct device *d, const int32_t *tune, const choice &c,
                      const split_plan &plan) {
    for (int i = 0; i < 3; i++)
        if (tune[CLUSTER] != 1 && plan.splits == 2 << i && c.merging[i])
            return p->dim[ATTN_BATCH] * plan.groups * plan.splits <= (i == 0 ? d->sm_count : d->sm_count * 3 / 4) ? i : -1;
    return -1;
}

/* Microseconds that a plan ought to take: a start, then rounds of tiles and what memory needs, which hide each other the worse the
 * closer they are; the merge, by a kernel, whose blocks wait in their places for the parts on the SMs that are not taken, or by a
 * cluster whose blocks send each other all but their own slice. */
static double plan_cost(const struct problem *p, const struct device *d, const split_plan &plan, bool merging) {
    const double gap = 3.7, bytes_per_us = 4.1e6, moved_per_us = 4.1e6;
    const struct pace pace = paces[plan.width];
    const int64_t batch = p->dim[ATTN_BATCH], n = p->dim[ATTN_WINDOW] + p->dim[ATTN_TOPK], tiles = (n + pace.keys - 1) / pace.keys;
    const int64_t items = batch * plan.groups * plan.splits, rounds = (items + d->sm_count - 1) / d->sm_count;
    const double compute = (double)(rounds * ((tiles + plan.splits - 1) / plan.splits)) * pace.tile + (double)(rounds - 1) * gap;
    const double memory = (double)(batch * n * ROW_BYTES) / bytes_per_us;
    const double taken = fmin((double)items / d->sm_count, 1), late = 1.07 * fmax(2 * taken - 1, 0);
    const double by_kernel = 1.7 + late + (double)partials_bytes(p, plan.splits) / moved_per_us;
    const double by_cluster = 0.9 + 0.44 * plan.splits + 0.007 * (double)items;
    return pace.start + sqrt(compute * compute + memory * memory) + (plan.splits == 1 ? 0 : merging ? by_cluster : by_kernel);
}

/* Those of `there` that tunable path leaves. */
static int kinds_of(const int32_t *tune, int there) {
    static const int wanted[] = {ALL, BY_MMA, 1 << WGMMA};
    return wanted[tune[PATH]] & there ? wanted[tune[PATH]] & there : BY_MMA & there;
}

/* Costs this close are alike: the model is no better than a percent. */
static constexpr double CLOSE = 1.01;

/* there: the set of kinds that there is code for. */
static split_plan plan_of(const struct problem *p, const struct device *d, const int32_t *tune, int there) {
    const int64_t heads = p->dim[ATTN_HEADS];
    const int32_t wish = tune[SPLITS];
    const int kinds = kinds_of(tune, there);
    split_plan best = {};
    double least = INFINITY;
    int32_t widest = 0;
    for (int width = NARROW; width < WIDTHS; width++) {
        const choice c = choice_by_size(width, d);
        const bool wanted = tune[BLOCK_HEADS] ? tune[BLOCK_HEADS] >= c.heads : c.heads / 2 < heads;
        if (!(kinds >> width & 1) || c.shared > d->smem_bytes || (width > NARROW && tune[PATH] < 2 && !wanted))
            continue;
        if (tune[BLOCK_HEADS] && c.heads > widest)
            least = INFINITY;  /* the widest that is no wider than that */
        widest = c.heads;
        for (int32_t splits = wish ? wish : 1; splits <= (wish ? wish : COMBINE_SPLITS); splits++) {
            const split_plan plan = {width, (int32_t)((heads + c.heads - 1) / c.heads), splits};
            const double cost = plan_cost(p, d, plan, merging_of(p, d, tune, c, plan) >= 0);
            if (cost < (plan.groups < best.groups ? CLOSE * least : least)) {  /* fewer groups gather the list fewer times */
                least = cost;
                best = plan;
            }
        }
    }
    return best;
}

static const char *unfit(const struct problem *p, const struct device *d) {
    (void)p;
    return choice_by_size(NARROW, d).shared > d->smem_bytes ? "needs 80 KB of shared memory a block" : NULL;
}

/* Of whatever there may be code for, which only open can ask. */
static size_t workspace(const struct problem *p, const struct device *d, const int32_t *tune) {
    static const int there[] = {ALL, BY_MMA, 1 << NARROW};
    size_t most = 0;
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        const split_plan plan = plan_of(p, d, tune, there[i]);
        const bool merging = merging_of(p, d, tune, choice_by_size(plan.width, d), plan) >= 0;
        const size_t bytes = merging ? 0 : partials_bytes(p, plan.splits);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* state: the kinds of blocks there is code for. A body that does not fit the registers or lacks its instructions is empty and needs
 * few. */
static int open_(const struct problem *p, const struct device *d, void **state) {
    (void)p;
    int there = 0;
    for (int width = NARROW; width < WIDTHS; width++) {
        const choice c = choice_by_size(width, d);
        if (c.shared > d->smem_bytes)
            continue;
        cudaFuncAttributes code;
        int error = cudaFuncGetAttributes(&code, c.kernel);
        if (error == cudaSuccess)
            error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.shared);
        for (int i = 0; i < 3 && c.merging[i] && error == cudaSuccess; i++)
            error = cudaFuncSetAttribute(c.merging[i], cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.shared);
        if (error != cudaSuccess)
            return error;
        if (width == NARROW || code.numRegs > 64)
            there |= 1 << width;
    }
    *state = (void *)(intptr_t)there;
    return cudaSuccess;
}

static int launch(const struct call *call) {
    const split_plan plan = plan_of(call->problem, call->device, call->tune, (int)(intptr_t)call->state);
    const choice c = choice_by_size(plan.width, call->device);
    const int merging = merging_of(call->problem, call->device, call->tune, c, plan);
    attn_args a = attn_args_of(call);
    partials p = partials_of(call, plan.splits);
    split_counts counts = {a.batch * plan.groups * plan.splits, plan.groups, plan.splits};
    void *args[] = {&a, &p, &counts};
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)plan.splits;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3((unsigned)(counts.items < call->device->sm_count ? counts.items : call->device->sm_count));
    how.blockDim = dim3((unsigned)c.threads);
    how.dynamicSmemBytes = (size_t)c.shared;
    how.stream = call->stream;
    how.attrs = &cluster;
    how.numAttrs = merging >= 0;
    const int error = cudaLaunchKernelExC(&how, merging >= 0 ? c.merging[merging] : c.kernel, args);
    return error != cudaSuccess || plan.splits == 1 || merging >= 0 ? error : combine_launch(call, a, p);
}

KERNEL = {
    FOR_OP(attn),
    .note = "the KV list in `splits` parts (0: chosen by shape) for 16 to 64 heads a block, merged by log-sum-exp",
    .engine = CUDA,
    .tunable = {{"splits", {0}, 0, COMBINE_SPLITS}, {"block_heads", {0}, 0, 64}, {"path", {0}, 0, 2}, {"cluster", {0}, 0, 2}},
    .unfit = unfit,
    .workspace = workspace,
    .open = open_,
    .launch = launch,
};

/* attn/mma: a block gathers a KV tile once, by asynchronous copies, for up to 32 heads of a request; both products by mma.sync.
 * KV moves from L2 once per 32 heads, or once per 64 to a pair of blocks that give each other half of it, into a ring of tiles in
 * shared memory, and runs ahead across requests. Limit: shared-memory and tensor-core rate of one SM a (request, 32 heads); without
 * a split, small batches leave SMs idle.
 */
#include "mma.cuh"

/* items: requests times groups, which are groups of heads or, of a pair of blocks, pairs of groups. */
template <class S>
static __device__ __forceinline__ void attend(const attn_args &a, mma_shared<S> &sh, int32_t items, int32_t groups) {
    constexpr bool PAIR = S::BLOCKS == 2;
    const mma_places<S> at(sh);
    mma_cursor<S> cursor;
    mma_partner<S> partner;
    mma_query<S> q;
    mma_softmax<S> softmax;
    mma_sums<S> sums;

    int stage = 0;
    partner.begin(sh);
    const typename mma_cursor<S>::tile other = cursor.start(a, items, groups);
    if constexpr (PAIR)
        cursor.copy_other(a, sh, at, other);
    for (int s = 0; s < S::STAGES - 1; s++)
        cursor.copy(a, sh, at, s);
    partner.meet();

    for (int32_t item = S::first_item(); item < items; item += S::item_step()) {
        const int64_t b = item / groups;
        const int32_t first = S::first_head(item, groups);
        const int32_t n = attn_length_of(a, b).n;
        q.load(a, b, first);
        softmax.clear(a, first);
        sums.clear();
        for (int32_t i = 0; i < n; i += S::TILE) {
            const int free = stage == 0 ? S::STAGES - 1 : stage - 1, after = stage == S::STAGES - 1 ? 0 : stage + 1;
            /* Parts of the tile that comes into that room, in step k of n. A pair has yet to give it away and fetches sooner. */
            const auto fetch = [&](bool here, int k, int n) {
#pragma unroll
                for (int j = k * 8 / n; j < (k + 1) * 8 / n; j++)
                    if (here)
                        cursor.part(at, free, j);
            };
            uint32_t v[2][4][4];
            copy_wait<S::STAGES - 2>();
            partner.take(sh, stage);
            __syncthreads();  /* the tile is there for all, and all have left the one before it, which makes room */
            if (PAIR)
                cursor.begin(a, sh, free);
            mma_scores<S>(q, at, stage, [&](int c) { fetch(PAIR, c, S::CHUNKS); });
            if (PAIR) {
                cursor.end(a);
                copy_wait<S::STAGES - 2>();  /* the half of the next tile, which has had the scores' time to come */
            }
            partner.publish();
            __syncthreads();
            partner.give(sh, after);
            softmax.tile(sh, at, stage);
            sums.load_v(at, stage, 0, v[0]);
            __syncthreads();
            if (!PAIR)
                cursor.begin(a, sh, free);
            sums.scale(sh.old);
            sums.tile(at, stage, v, [&](int k) { fetch(!PAIR, k, S::TILE / 16); });
            if (!PAIR)
                cursor.end(a);
            stage = after;
        }
        softmax.finish(a, sh, b, first);
        __syncthreads();
        sums.write_bf16(a, b, first, sh.factor);
        __syncthreads();
    }
    partner.end(sh, stage);
}

template <class S>
static __global__ void __launch_bounds__(S::THREADS, 1) attn_mma(const __grid_constant__ attn_args a, int32_t items,
    int32_t groups) {
    extern __shared__ __align__(128) char shared_bytes[];
    if constexpr (S::BLOCKS == 1 || HAS_PAIRS)
        attend<S>(a, *(mma_shared<S> *)shared_bytes, items, groups);
}

/* What fits the device: 64 keys a tile where 160 KB of shared memory are to be had, else 32 (99 KB: sm_86, sm_89, sm_120). */
struct choice {
    const void *kernel;
    int64_t     shared;
    int32_t     heads, blocks;  /* blocks: that gather together */
};

template <class S> static choice choice_of(void) {
    return {(const void *)attn_mma<S>, (int64_t)sizeof(mma_shared<S>), S::HEADS, S::BLOCKS};
}

/* 16 heads a block while that still leaves no more blocks than SMs; else 32, which halves what L2 must deliver. */
static bool is_narrow(const struct problem *p, const struct device *d) {
    const int64_t heads = p->dim[ATTN_HEADS];
    return heads <= 16 || p->dim[ATTN_BATCH] * ((heads + 15) / 16) <= d->sm_count;
}

static choice choose_alone(const struct problem *p, const struct device *d) {
    const bool narrow = is_narrow(p, d);
    const choice by_size[3] = {
        narrow ? choice_of<mma_shape<1, 64, 2, 3>>() : choice_of<mma_shape<2, 64, 2, 3>>(),
        narrow ? choice_of<mma_shape<1, 64, 2, 2>>() : choice_of<mma_shape<2, 64, 2, 2>>(),
        narrow ? choice_of<mma_shape<1, 32, 2, 2>>() : choice_of<mma_shape<2, 32, 2, 2>>(),
    };
    for (int i = 0; i < 2; i++)
        if (by_size[i].shared <= d->smem_bytes)
            return by_size[i];
    return by_size[2];
}

static choice choose_pair(const struct problem *p, const struct device *d) {
    return is_narrow(p, d) ? choice_of<mma_shape<1, 64, 2, 3, 2>>() : choice_of<mma_shape<2, 64, 2, 3, 2>>();
}

enum { BEST, ALONE, PAIRED };  /* tunable pair */

/* Pairs where all groups of heads have a partner. Narrow blocks are few and wait for rows: a partner would make them wait more. */
static choice choose(const struct problem *p, const struct device *d, int32_t wish) {
    const choice pair = choose_pair(p, d);
    const bool can = d->sm >= 90 && pair.shared <= d->smem_bytes && (p->dim[ATTN_HEADS] + pair.heads - 1) / pair.heads % 2 == 0;
    return can && (wish == PAIRED || (wish == BEST && !is_narrow(p, d))) ? pair : choose_alone(p, d);
}

static const char *unfit(const struct problem *p, const struct device *d) {
    return choose_alone(p, d).shared > d->smem_bytes ? "needs 83 KB of shared memory a block" : NULL;
}

static int open_(const struct problem *p, const struct device *d, void **state) {
    int error = cudaSuccess;
    for (int32_t wish = ALONE; wish <= PAIRED && error == cudaSuccess; wish++) {
        const choice c = choose(p, d, wish);
        error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.shared);
    }
    *state = NULL;
    return error;
}

static int launch(const struct call *call) {
    const choice c = choose(call->problem, call->device, call->tune[0]);
    attn_args a = attn_args_of(call);
    int32_t groups = (a.heads + c.heads - 1) / c.heads / c.blocks, items = a.batch * groups;
    void *args[] = {&a, &items, &groups};
    const int32_t room = call->device->sm_count / c.blocks;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)c.blocks;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3((unsigned)((items < room ? items : room) * c.blocks));
    how.blockDim = dim3(mma_shape<1, 32, 2, 2>::THREADS);
    how.dynamicSmemBytes = (size_t)c.shared;
    how.stream = call->stream;
    how.attrs = &cluster;
    how.numAttrs = c.blocks > 1;
    return cudaLaunchKernelExC(&how, c.kernel, args);
}

KERNEL = {
    FOR_OP(attn),
    .note = "a KV tile gathered once serves 32 heads by mma.sync, 64 where two blocks `pair` up (0: best, 1: no, 2: yes); "
        "bound by one SM a (request, 32 heads)",
    .engine = CUDA,
    .growth = {{"ctx", 0.03}},  /* measured; presumably addresses of rows far apart, which take longer to translate */
    .tunable = {{"pair", {0}, 0, 2}},
    .unfit = unfit,
    .open = open_,
    .launch = launch,
};

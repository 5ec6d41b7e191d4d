/* attn/mma: a block gathers a KV tile once, by asynchronous copies, for up to 32 heads of a request; both products by mma.sync.
 * KV moves once per 32 heads (the second group finds it in L2) into a ring of tiles in shared memory, and runs ahead across requests.
 * Limit: shared-memory and tensor-core rate of one SM a (request, 32 heads); without a split, small batches leave SMs idle.
 */
#include "mma.cuh"

template <class S>
static __global__ void __launch_bounds__(S::THREADS, 1) attn_mma(const __grid_constant__ attn_args a, int32_t items, int32_t groups) {
    extern __shared__ __align__(128) char shared_bytes[];
    mma_shared<S> &sh = *(mma_shared<S> *)shared_bytes;
    mma_cursor<S> cursor;
    mma_query<S> q;
    mma_softmax<S> softmax;
    mma_sums<S> sums;
    const mma_owner<S> owner;

    int stage = 0;
    cursor.start(a, items, groups);
    for (int s = 0; s < S::STAGES - 1; s++)
        cursor.copy(a, sh, s);

    for (int32_t item = (int32_t)blockIdx.x; item < items; item += (int32_t)gridDim.x) {
        const int64_t b = item / groups;
        const int32_t first = item % groups * S::HEADS;
        const attn_length len = attn_length_of(a, b);
        q.load(a, b, first);
        softmax.clear();
        sums.clear();
        for (int32_t i = 0; i < len.n; i += S::TILE) {
            copy_wait<S::STAGES - 2>();
            __syncthreads();  /* the tile is there for all, and all have left the one before it, which makes room */
            cursor.copy(a, sh, stage == 0 ? S::STAGES - 1 : stage - 1);
            float own[S::OWNED];
            mma_scores<S>(q, sh, stage, own);
            softmax.tile(sh, stage, owner, own);
            sums.scale(sh.old);
            sums.tile(sh, stage);
            stage = stage == S::STAGES - 1 ? 0 : stage + 1;
        }

        softmax.publish(sh, owner);
        sums.write_bf16(a, b, first, [&](int head) {
            return attn_finish(sh.best[head], mma_total(sh, head), attn_sink_log2(a, min(first + head, a.heads - 1)));
        });
        const int head = (int)threadIdx.x;
        if (head < S::HEADS && first + head < a.heads) {
            const float sum = mma_total(sh, head);
            *attn_lse(a, b, first + head) = sum > 0 ? sh.best[head] * LN2 + logf(sum) : -INFINITY;
        }
        __syncthreads();
    }
}

/* What fits the device: 64 keys a tile where 160 KB of shared memory are to be had, else 32 (99 KB: sm_86, sm_89, sm_120). */
struct choice {
    const void *kernel;
    int64_t     shared;
    int32_t     heads;
};

template <class S> static choice choice_of(void) {
    return {(const void *)attn_mma<S>, (int64_t)sizeof(mma_shared<S>), S::HEADS};
}

static choice choose(const struct problem *p, const struct device *d) {
    const bool narrow = p->dim[ATTN_HEADS] <= 16;
    const choice by_size[3] = {
        narrow ? choice_of<mma_shape<1, 64, 4, 3>>() : choice_of<mma_shape<2, 64, 4, 3>>(),
        narrow ? choice_of<mma_shape<1, 64, 4, 2>>() : choice_of<mma_shape<2, 64, 4, 2>>(),
        narrow ? choice_of<mma_shape<1, 32, 2, 2>>() : choice_of<mma_shape<2, 32, 2, 2>>(),
    };
    for (int i = 0; i < 2; i++)
        if (by_size[i].shared <= d->smem_bytes)
            return by_size[i];
    return by_size[2];
}

static const char *unfit(const struct problem *p, const struct device *d) {
    return choose(p, d).shared > d->smem_bytes ? "needs 83 KB of shared memory a block" : NULL;
}

static int open_(const struct problem *p, const struct device *d, void **state) {
    const choice c = choose(p, d);
    *state = NULL;
    return cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.shared);
}

static int launch(const struct call *call) {
    const choice c = choose(call->problem, call->device);
    attn_args a = attn_args_of(call);
    int32_t groups = (a.heads + c.heads - 1) / c.heads, items = a.batch * groups;
    void *args[] = {&a, &items, &groups};
    const unsigned blocks = (unsigned)(items < call->device->sm_count ? items : call->device->sm_count);
    return cudaLaunchKernel(c.kernel, dim3(blocks), dim3(mma_shape<1, 32, 2, 2>::THREADS), args, (size_t)c.shared, call->stream);
}

KERNEL = {
    FOR_OP(attn),
    .note = "a KV tile gathered once serves 32 heads by mma.sync; bound by shared memory and tensor cores, one SM a request and 32 heads",
    .engine = CUDA,
    .unfit = unfit,
    .open = open_,
    .launch = launch,
};

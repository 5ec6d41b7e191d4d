/* attn/mma: a block gathers a KV tile once, by asynchronous copies, for up to 32 heads of a request; both products by mma.sync.
 * KV moves once per 32 heads (the second group finds it in L2) into a ring of tiles in shared memory, and runs ahead across
 * requests. Limit: shared-memory and tensor-core rate of one SM a (request, 32 heads); without a split, small batches leave
 * SMs idle.
 */
#include "mma.cuh"

template <class S>
static __global__ void __launch_bounds__(S::THREADS, 1) attn_mma(const __grid_constant__ attn_args a, int32_t items,
    int32_t groups) {
    extern __shared__ __align__(128) char shared_bytes[];
    mma_shared<S> &sh = *(mma_shared<S> *)shared_bytes;
    const mma_places<S> at(sh);
    mma_cursor<S> cursor;
    mma_query<S> q;
    mma_softmax<S> softmax;
    mma_sums<S> sums;

    int stage = 0;
    cursor.start(a, items, groups);
    for (int s = 0; s < S::STAGES - 1; s++)
        cursor.copy(a, sh, at, s);

    for (int32_t item = (int32_t)blockIdx.x; item < items; item += (int32_t)gridDim.x) {
        const int64_t b = item / groups;
        const int32_t first = item % groups * S::HEADS;
        const int32_t n = attn_length_of(a, b).n;
        q.load(a, b, first);
        softmax.clear(a, first);
        sums.clear();
        for (int32_t i = 0; i < n; i += S::TILE) {
            const int free = stage == 0 ? S::STAGES - 1 : stage - 1;
            uint32_t v[2][4][4];
            copy_wait<S::STAGES - 2>();
            __syncthreads();  /* the tile is there for all, and all have left the one before it, which makes room */
            mma_scores<S>(q, at, stage);
            __syncthreads();
            softmax.tile(sh, at, stage);
            sums.load_v(at, stage, 0, v[0]);
            __syncthreads();
            cursor.begin(a, sh, free);
            sums.scale(sh.old);
            sums.tile(at, stage, v, [&](int k) {
#pragma unroll
                for (int j = k * 128 / S::TILE; j < (k + 1) * 128 / S::TILE; j++)
                    cursor.part(at, free, j);
            });
            cursor.end(a);
            stage = stage == S::STAGES - 1 ? 0 : stage + 1;
        }
        softmax.finish(a, sh, b, first);
        __syncthreads();
        sums.write_bf16(a, b, first, sh.factor);
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

/* 16 heads a block while that still leaves no more blocks than SMs; else 32, which halves what L2 must deliver. */
static choice choose(const struct problem *p, const struct device *d) {
    const int64_t heads = p->dim[ATTN_HEADS];
    const bool narrow = heads <= 16 || p->dim[ATTN_BATCH] * ((heads + 15) / 16) <= d->sm_count;
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
    .note = "a KV tile gathered once serves 32 heads by mma.sync; bound by one SM a (request, 32 heads)",
    .engine = CUDA,
    .growth = {{"ctx", 0.03}},  /* measured; presumably addresses of rows far apart, which take longer to translate */
    .unfit = unfit,
    .open = open_,
    .launch = launch,
};

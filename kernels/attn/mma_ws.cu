/* attn/mma: a block gathers a KV tile once, by asynchronous copies, for up to 32 heads of a request; both products by mma.sync.
 * KV moves once per 32 heads (the second group finds it in L2) into a ring of tiles in shared memory, and runs ahead across
 * requests. Limit: shared-memory and tensor-core rate of one SM a (request, 32 heads); without a split, small batches leave
 * SMs idle.
 */
#include "mma_ws.cuh"

/* The n entries of one request for one group of heads: a tile's scores, weights and products one after another. */
template <class S>
static __device__ __forceinline__ void attend(mma_shared<S> &sh, const mma_places<S> &at, const mma_query<S> &q,
    mma_softmax<S> &softmax,
                                              mma_sums<S> &sums, mma_position<S> &from, int32_t n) {
    uint32_t v[4][4];
    for (int32_t i = 0; i < n; i += S::TILE) {
        mma_wait(sh, from);
        mma_scores<S>(q, at, from, 0);
        mma_sync<S>();
        softmax.tile(sh, at, from, 0);
        sums.load_v(at, from, 0, v);
        mma_sync<S>();
        sums.scale(sh.old[0]);
        sums.tile(at, from, 0, v);
        mma_release(sh, from);
        from = from.next();
    }
}

/* The same with one barrier a tile: between two of them the weights of a tile, the products of the tile before it and the scores
 * of the one after it are made. Of the two warps on each quarter of an SM one begins with the weights and one ends with them,
 * so that the tensor cores are busy meanwhile. */
template <class S>
static __device__ __forceinline__ void attend_overlapped(mma_shared<S> &sh, const mma_places<S> &at, const mma_query<S> &q,
                                                         mma_softmax<S> &softmax, mma_sums<S> &sums, mma_position<S> &from,
                                                             int32_t n) {
    const bool weights_first = warp_id() < S::WARPS / 2;
    mma_position<S> before = from;
    uint32_t v[4][4];
    int buffer = 0;
    if (n > 0) {
        mma_wait(sh, from);
        mma_scores<S>(q, at, from, 0);
    }
    for (int32_t i = 0; i < n; i += S::TILE) {
        const mma_position<S> now = from;
        mma_sync<S>();
        if (weights_first)
            softmax.tile(sh, at, now, buffer);
        if (i > 0) {
            sums.load_v(at, before, 0, v);
            sums.scale(sh.old[buffer ^ 1]);
            sums.tile(at, before, buffer ^ 1, v);
            mma_release(sh, before);
        }
        from = from.next();
        if (i + S::TILE < n) {
            mma_wait(sh, from);
            mma_scores<S>(q, at, from, buffer ^ 1);
        }
        if (!weights_first)
            softmax.tile(sh, at, now, buffer);
        before = now;
        buffer ^= 1;
    }
    if (n > 0) {
        mma_sync<S>();
        sums.load_v(at, before, 0, v);
        sums.scale(sh.old[buffer ^ 1]);
        sums.tile(at, before, buffer ^ 1, v);
        mma_release(sh, before);
    }
}

template <class S> static __device__ __forceinline__ void compute(const attn_args &a, mma_shared<S> &sh, int32_t items,
    int32_t groups) {
    const mma_places<S> at(sh);
    mma_query<S> q;
    mma_softmax<S> softmax;
    mma_sums<S> sums;
    mma_position<S> from = {0, 0};

    q.fetch(a, (int32_t)blockIdx.x / groups, (int32_t)blockIdx.x % groups * S::HEADS);
    int32_t n = attn_length_of(a, (int32_t)blockIdx.x / groups).n;
    for (int32_t item = (int32_t)blockIdx.x; item < items; item += (int32_t)gridDim.x) {
        const int64_t b = item / groups;
        const int32_t first = item % groups * S::HEADS, coming = item + (int32_t)gridDim.x;
        const int32_t next_n = coming < items ? attn_length_of(a, coming / groups).n : 0;
        softmax.clear(a, first);
        sums.clear();
        q.arrange();
        if constexpr (S::BUFFERS == 2)
            attend_overlapped(sh, at, q, softmax, sums, from, n);
        else
            attend(sh, at, q, softmax, sums, from, n);
        if (n == 0)
            mma_sync<S>();  /* until all have read sh.factor of the item before */
        softmax.finish(a, sh, b, first);
        if (coming < items)
            q.fetch(a, coming / groups, coming % groups * S::HEADS);
        mma_sync<S>();
        sums.write_bf16(a, b, first, sh.factor);
        n = next_n;
    }
}

/* With 12 warps a thread has 168 registers. 32 heads need more and get them from the warps that copy, where the architecture
 * lets them. */
template <class S> static constexpr bool fits_registers = S::MT == 1 || MOVES_REGISTERS;

template <class S>
static __global__ void __launch_bounds__(S::THREADS, 1) attn_mma(const __grid_constant__ attn_args a, int32_t items,
    int32_t groups) {
    extern __shared__ __align__(128) char shared_bytes[];
    mma_shared<S> &sh = *(mma_shared<S> *)shared_bytes;
    if constexpr (fits_registers<S>) {
        mma_init(sh);
        if (warp_id() >= S::WARPS) {
            registers_give<72>();
            mma_producer<S> producer;
            producer.run(a, sh, items, groups);
        } else {
            registers_take<216>();
            compute<S>(a, sh, items, groups);
        }
    }
}

struct choice {
    const void *kernel;
    int64_t     shared;
    int32_t     heads;
};

template <class S> static choice choice_of(void) {
    return {(const void *)attn_mma<S>, (int64_t)sizeof(mma_shared<S>), S::HEADS};
}

/* What fits the device's shared memory: 227 KB (sm_90, sm_100), 160 KB (sm_80), 99 KB (sm_86, sm_89, sm_120). */
template <int MT> static choice choice_by_size(const struct device *d) {
    const choice by_size[3] = {choice_of<mma_shape<MT, MT == 1 ? 6 : 5, 2>>(), choice_of<mma_shape<MT, 4, 1>>(),
        choice_of<mma_shape<MT, 2, 1>>()};
    for (int i = 0; i < 2; i++)
        if (by_size[i].shared <= d->smem_bytes)
            return by_size[i];
    return by_size[2];
}

/* 16 heads a block while that leaves no more blocks than SMs; else 32, which halves what L2 must deliver, where the code for it
 * exists. */
static int heads_of(const struct problem *p, const struct device *d, int *ret_heads) {
    const int64_t heads = p->dim[ATTN_HEADS];
    cudaFuncAttributes wide;
    *ret_heads = 16;
    if (heads <= 16 || p->dim[ATTN_BATCH] * ((heads + 15) / 16) <= d->sm_count)
        return cudaSuccess;
    const int error = cudaFuncGetAttributes(&wide, choice_by_size<2>(d).kernel);
    if (error == cudaSuccess && wide.numRegs > 128)  /* else its body is empty: see fits_registers */
        *ret_heads = 32;
    return error;
}

static const char *unfit(const struct problem *p, const struct device *d) {
    (void)p;
    return choice_by_size<1>(d).shared > d->smem_bytes ? "needs 80 KB of shared memory a block" : NULL;
}

/* state: heads a block. */
static int open_(const struct problem *p, const struct device *d, void **state) {
    int heads;
    const int error = heads_of(p, d, &heads);
    if (error != cudaSuccess)
        return error;
    const choice c = heads == 32 ? choice_by_size<2>(d) : choice_by_size<1>(d);
    *state = (void *)(intptr_t)heads;
    return cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.shared);
}

static int launch(const struct call *call) {
    const choice c = (intptr_t)call->state == 32 ? choice_by_size<2>(call->device) : choice_by_size<1>(call->device);
    attn_args a = attn_args_of(call);
    int32_t groups = (a.heads + c.heads - 1) / c.heads, items = a.batch * groups;
    void *args[] = {&a, &items, &groups};
    const unsigned blocks = (unsigned)(items < call->device->sm_count ? items : call->device->sm_count);
    return cudaLaunchKernel(c.kernel, dim3(blocks), dim3(mma_shape<1, 2, 1>::THREADS), args, (size_t)c.shared, call->stream);
}

KERNEL = {
    FOR_OP(attn),
    .note = "a KV tile gathered once serves 32 heads by mma.sync; copying warps run ahead; bound by one SM a (request, 32 heads)",
    .engine = CUDA,
    .unfit = unfit,
    .open = open_,
    .launch = launch,
};

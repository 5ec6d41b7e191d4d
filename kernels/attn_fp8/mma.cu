/* attn_fp8/mma: four warps of a block copy the entries of a request as they are, eight turn codes into halves in registers, once
 * for each of the two products, and make these by mma.sync, for up to 32 heads. See ring.cuh and mma.cuh.
 * Limit: instructions and latency of a tile on one SM a (request, 32 heads); without a split, small batches leave SMs idle.
 */
#include "mma.cuh"

template <class S> static __global__ void __launch_bounds__(S::THREADS, 1) attn_fp8_mma(const __grid_constant__ fp8_args a,
    fp8_work work) {
    extern __shared__ __align__(128) char shared_bytes[];
    fp8_run<S, false>(a, work, {}, *(fp8_shared<S> *)shared_bytes);
}

struct choice {
    const void *kernel;
    int64_t     shared;
    int32_t     heads, threads;
};

template <class S> static choice choice_of(void) {
    return {(const void *)attn_fp8_mma<S>, (int64_t)sizeof(fp8_shared<S>), S::HEADS, S::THREADS};
}

/* 227 KB of shared memory (sm_90, sm_100), 163 KB (sm_80) or 99 KB (sm_86, sm_89, sm_120), where 32 heads find no room. */
static choice choice_for(const struct device *d, bool wide) {
    const choice deep = wide ? choice_of<fp8_shape<2, 6>>() : choice_of<fp8_shape<1, 8>>();
    return deep.shared <= d->smem_bytes ? deep : choice_of<fp8_shape<1, 4>>();
}

/* 16 heads a block while that leaves no more blocks than SMs; else 32, which halves copies and conversions. */
static choice choose(const struct problem *p, const struct device *d, bool wide_is_there) {
    const int64_t heads = p->dim[ATTN_HEADS];
    return choice_for(d, wide_is_there && heads > 16 && p->dim[ATTN_BATCH] * ((heads + 15) / 16) > d->sm_count);
}

static const char *unfit(const struct problem *p, const struct device *d) {
    (void)p;
    return choice_for(d, false).shared > d->smem_bytes ? "needs 98 KB of shared memory a block" : NULL;
}

/* state: NULL where there is no code for 32 heads. */
static int open_(const struct problem *p, const struct device *d, void **state) {
    (void)p;
    bool narrow = false, wide = false;
    const choice c[2] = {choice_for(d, false), choice_for(d, true)};
    const int error = fp8_open(c[0].kernel, c[0].shared, &narrow), wide_error = fp8_open(c[1].kernel, c[1].shared, &wide);
    *state = (void *)(intptr_t)wide;
    return error != cudaSuccess ? error : wide_error;
}

static int launch(const struct call *call) {
    const choice c = choose(call->problem, call->device, call->state != NULL);
    fp8_args a = fp8_args_of(call);
    const int32_t groups = (a.heads + c.heads - 1) / c.heads;
    fp8_work work = {a.batch * groups, groups, 1};
    void *args[] = {&a, &work};
    const unsigned blocks = (unsigned)(work.items < call->device->sm_count ? work.items : call->device->sm_count);
    return cudaLaunchKernel(c.kernel, dim3(blocks), dim3((unsigned)c.threads), args, (size_t)c.shared, call->stream);
}

KERNEL = {
    FOR_OP(attn_fp8),
    .note = "entries copied as they are, codes to half in registers, mma.sync for 32 heads; bound by a tile's latencies on one SM",
    .engine = CUDA,
    .unfit = unfit,
    .open = open_,
    .launch = launch,
};

/* attn_fp8/mma: a block copies the entries of a request as they are, for up to 32 heads; codes become halves in registers, once
 * for each of
 * the two products, which mma.sync makes. See mma.cuh.
 * Limit: tensor-core rate and the latency of a tile on one SM a (request, 32 heads); without a split, small batches leave SMs idle.
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

template <int WARPS> static choice choice_for(const struct device *d, bool wide) {
    const choice deep = wide ? choice_of<fp8_shape<2, 6, WARPS>>() : choice_of<fp8_shape<1, 8, WARPS>>();
    return deep.shared <= d->smem_bytes ? deep : choice_of<fp8_shape<1, 4, WARPS>>();
}

/* 16 heads a block while that leaves no more blocks than SMs; else 32, which halves copies and conversions. 227 KB of shared memory
 * (sm_90, sm_100), 163 KB (sm_80) or 99 KB (sm_86, sm_89, sm_120), where 32 heads find no room. */
static choice choose(const struct problem *p, const struct device *d, int32_t warps) {
    const int64_t heads = p->dim[ATTN_HEADS];
    const bool wide = heads > 16 && p->dim[ATTN_BATCH] * ((heads + 15) / 16) > d->sm_count;
    return warps > 8 ? choice_for<16>(d, wide) : choice_for<8>(d, wide);
}

static const char *unfit(const struct problem *p, const struct device *d) {
    return choose(p, d, 8).shared > d->smem_bytes ? "needs 98 KB of shared memory a block" : NULL;
}

static int open_(const struct problem *p, const struct device *d, void **state) {
    int error = cudaSuccess;
    *state = NULL;
    for (int32_t warps = 8; warps <= 16 && error == cudaSuccess; warps += 8) {
        const choice c = choose(p, d, warps);
        error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c.shared);
    }
    return error;
}

static int launch(const struct call *call) {
    const choice c = choose(call->problem, call->device, call->tune[0]);
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
    .tunable = {{"warps", {8, 16}, 8, 16}},
    .unfit = unfit,
    .open = open_,
    .launch = launch,
};

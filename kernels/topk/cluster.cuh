/* A row by a cluster of blocks: topk/cluster, and the second half of index_select/two_step. */
#ifndef KBENCH_TOPK_CLUSTER_CUH
#define KBENCH_TOPK_CLUSTER_CUH

#include "topk.cuh"

static constexpr int CLUSTER_THREADS = 512;

/* Few: rows of up to 8,192 entries a block stay in registers, and two blocks share an SM; many: 28,672. */
static constexpr int CLUSTER_FEW = 4, CLUSTER_MANY = 14;

template <int CACHED> static __global__ void __launch_bounds__(CLUSTER_THREADS, CACHED == CLUSTER_FEW ? 2 : 1)
    topk_cluster(const __grid_constant__ topk_args a, bool eager, int32_t alone) {
    __shared__ topk_shared<CLUSTER_THREADS, CACHED> sh;
    const peers_cluster peers = peers_cluster::here();
    topk_select<CLUSTER_THREADS, CACHED>(a, blockIdx.x / peers.count(), peers, sh, eager, alone);
}

/* Blocks a row: a power of two, no more than the SMs or the row's width have work for. wish: 0, or how many at most. */
static inline uint32_t cluster_blocks(const topk_args &a, int32_t batch, const struct device *d, int32_t wish) {
    const int64_t most = wish ? wish : peers_cluster::MOST, round = CLUSTER_THREADS * 4;
    uint32_t blocks = 1;
    while (blocks * 2 <= most && blocks * 2 * (int64_t)batch <= (wish ? INT64_MAX : d->sm_count) && blocks * round < a.width)
        blocks *= 2;
    return blocks;
}

/* alone: rows up to this length are left to one block of the cluster. */
static inline int cluster_launch(const topk_args &a, int32_t batch, const struct device *d, int32_t wish, int32_t alone,
    cudaStream_t stream) {
    const uint32_t blocks = cluster_blocks(a, batch, d, wish);
    const int64_t round = CLUSTER_THREADS * 4 * (int64_t)blocks, early = round < a.width ? round : a.width;
    cudaLaunchAttribute shape[1];
    shape[0].id = cudaLaunchAttributeClusterDimension;
    shape[0].val.clusterDim.x = blocks;
    shape[0].val.clusterDim.y = shape[0].val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks * (unsigned)batch);
    config.blockDim = dim3(CLUSTER_THREADS);
    config.stream = stream;
    config.attrs = shape;
    config.numAttrs = 1;
    const bool eager = early * batch <= 1 << 19;  /* 2 MB of scores that may be of no use, half a microsecond of memory time */
    return a.width <= CLUSTER_FEW * round ? cudaLaunchKernelEx(&config, topk_cluster<CLUSTER_FEW>, a, eager, alone)
                                          : cudaLaunchKernelEx(&config, topk_cluster<CLUSTER_MANY>, a, eager, alone);
}

static inline const char *cluster_unfit(const struct device *d) {
    return d->sm < 90 ? "needs thread block clusters: sm_90 or newer" : NULL;
}

#endif

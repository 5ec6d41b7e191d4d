/* A row by a cluster of blocks: topk/cluster, and the second half of index_select/two_step. */
#ifndef KBENCH_TOPK_CLUSTER_CUH
#define KBENCH_TOPK_CLUSTER_CUH

#include "radix.cuh"

static __global__ void __launch_bounds__(TOPK_THREADS, 1)
    topk_cluster(const __grid_constant__ topk_args a, bool eager, int32_t alone) {
    __shared__ topk_shared sh;
    const peers_cluster peers = peers_cluster::here();
    topk_select(a, blockIdx.x / peers.count(), peers, sh, eager, alone);
}

/* Blocks a row: a power of two, no more than there are SMs for. Its room is no reason for few or many. wish: 0, or how many at
 * most. */
static inline uint32_t cluster_blocks(int32_t batch, const struct device *d, int32_t wish) {
    const int64_t most = wish ? wish : peers_cluster::MOST;
    uint32_t blocks = 1;
    while (blocks * 2 <= most && (wish || blocks * 2 * (int64_t)batch <= d->sm_count))
        blocks *= 2;
    return blocks;
}

/* alone: rows up to this length are left to one block of the cluster. */
static inline int cluster_launch(const topk_args &a, int32_t batch, const struct device *d, int32_t wish, int32_t alone,
    cudaStream_t stream) {
    const uint32_t blocks = cluster_blocks(batch, d, wish);
    cudaLaunchAttribute shape[1];
    shape[0].id = cudaLaunchAttributeClusterDimension;
    shape[0].val.clusterDim.x = blocks;
    shape[0].val.clusterDim.y = shape[0].val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks * (unsigned)batch);
    config.blockDim = dim3(TOPK_THREADS);
    config.stream = stream;
    config.attrs = shape;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, topk_cluster, a, topk_eager(batch, d), alone);
}

static inline const char *cluster_unfit(const struct device *d) {
    return d->sm < 90 ? "needs thread block clusters: sm_90 or newer" : NULL;
}

#endif

/* A row by a cluster of blocks: topk/cluster, and the second half of index_select/two_step. */
#ifndef KBENCH_TOPK_CLUSTER_CUH
#define KBENCH_TOPK_CLUSTER_CUH

#include <stdlib.h>
#include "topk.cuh"

static constexpr int CLUSTER_THREADS = 1024;

/* WRITTEN: its scores, by the kernel before. */
template <bool WRITTEN>
static __global__ void __launch_bounds__(CLUSTER_THREADS, 1)
    topk_cluster(const __grid_constant__ topk_args a, bool eager, int32_t alone) {
    __shared__ topk_shared<CLUSTER_THREADS> sh;
    const peers_cluster peers = peers_cluster::here();
    topk_select<WRITTEN>(a, blockIdx.x / peers.count(), peers, sh, eager, alone);
}

/* From open: how many clusters of 1, 2, 4 and 8 blocks run at once. The SMs of a device stand in groups that a cluster can't leave,
 * and not all groups are alike: fewer than a division says. */
struct cluster_state {
    int32_t clusters[4];
};

struct cluster_config {
    cudaLaunchConfig_t  config;
    cudaLaunchAttribute shape[2];
};

/* overlap: begins when the blocks of the kernel before have ended, not after it has. */
static inline void cluster_configure(struct cluster_config *c, int log2, int64_t rows, bool overlap, cudaStream_t stream) {
    *c = {};
    c->shape[0].id = cudaLaunchAttributeClusterDimension;
    c->shape[0].val.clusterDim.x = 1u << log2;
    c->shape[0].val.clusterDim.y = c->shape[0].val.clusterDim.z = 1;
    c->shape[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    c->shape[1].val.programmaticStreamSerializationAllowed = 1;
    c->config.gridDim = dim3((unsigned)(rows << log2));
    c->config.blockDim = dim3(CLUSTER_THREADS);
    c->config.stream = stream;
    c->config.attrs = c->shape;
    c->config.numAttrs = overlap ? 2 : 1;
}

template <bool WRITTEN = false> static inline int cluster_open(const struct device *d, void **ret) {
    struct cluster_state *state = (struct cluster_state *)calloc(1, sizeof *state);
    int error = state ? cudaSuccess : cudaErrorMemoryAllocation;
    for (int log2 = 0; log2 < 4 && error == cudaSuccess; log2++) {
        struct cluster_config c;
        int clusters = 0;
        cluster_configure(&c, log2, 1, false, NULL);
        error = cudaOccupancyMaxActiveClusters(&clusters, topk_cluster<WRITTEN>, &c.config);
        state->clusters[log2] = clusters < d->sm_count >> log2 ? clusters : d->sm_count >> log2;
    }
    if (error != cudaSuccess) {
        free(state);
        state = NULL;
    }
    *ret = state;
    return error;
}

static inline void cluster_close(void *state) {
    free(state);
}

/* Blocks a row, as a power of two: as many as let all rows run at once, one block an SM. A row's room is no reason for few or many.
 * wish: 0, or how many at most. */
static inline int cluster_log2(int32_t batch, const struct cluster_state *state, int32_t wish) {
    const int32_t most = wish ? wish : (int32_t)peers_cluster::MOST;
    int log2 = 0;
    while (log2 < 3 && 2 << log2 <= most && (wish || batch <= state->clusters[log2 + 1]))
        log2++;
    return log2;
}

/* alone: rows up to this length are left to one block of the cluster. */
template <bool WRITTEN = false>
static inline int cluster_launch(const topk_args &a, int32_t batch, const struct device *d, const void *state, int32_t wish,
    int32_t alone, bool overlap, cudaStream_t stream) {
    struct cluster_config c;
    cluster_configure(&c, cluster_log2(batch, (const struct cluster_state *)state, wish), batch, overlap, stream);
    return cudaLaunchKernelEx(&c.config, topk_cluster<WRITTEN>, a, topk_eager(batch, d), alone);
}

static inline const char *cluster_unfit(const struct device *d) {
    return d->sm < 90 ? "needs thread block clusters: sm_90 or newer" : NULL;
}

#endif

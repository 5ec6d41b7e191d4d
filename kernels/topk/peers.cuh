/* The blocks that select from one row: one alone, or a thread block cluster that reads each other's shared memory. */
#ifndef KBENCH_TOPK_PEERS_CUH
#define KBENCH_TOPK_PEERS_CUH

#include "../device.cuh"

/* One block. All of it folds away. */
struct peers_none {
    static constexpr uint32_t MOST = 1;
    static __device__ __forceinline__ uint32_t rank(void) { return 0; }
    static __device__ __forceinline__ uint32_t count(void) { return 1; }
    static __device__ __forceinline__ void meet(void) { __syncthreads(); }
    static __device__ __forceinline__ void sync(void) { __syncthreads(); }
    static __device__ __forceinline__ void publish(void) {}
    static __device__ __forceinline__ void collect(void) { __syncthreads(); }
    static __device__ __forceinline__ void leave(void) {}
    static __device__ __forceinline__ void arrive(void) {}
    static __device__ __forceinline__ void wait(void) {}
    static __device__ __forceinline__ uint32_t load4(const uint32_t *mine, uint32_t) { return *mine; }
    static __device__ __forceinline__ void store4(uint32_t *mine, uint32_t, uint32_t v) { *mine = v; }
    static __device__ __forceinline__ void store(uint2 *mine, uint32_t, uint2 v) { *mine = v; }
};

/* A cluster; of one block where there are none, before sm_90. `mine` is a place in this block's shared memory; what is meant is the
 * same place in that of block `rank`, which may be this one. alone(): block 0 works by itself, the others have nothing to do. */
struct peers_cluster {
    static constexpr uint32_t MOST = 8;  /* what every device with clusters takes */
    uint32_t my_rank, blocks;

    static __device__ __forceinline__ peers_cluster here(void) {
        peers_cluster p = {0, 1};
#if __CUDA_ARCH__ >= 900
        asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(p.my_rank));
        asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(p.blocks));
#endif
        return p;
    }
    static __device__ __forceinline__ void meet(void) { __syncthreads(); }  /* of this block's threads */
    __device__ __forceinline__ void alone(void) { blocks = 1; }
    __device__ __forceinline__ uint32_t rank(void) const { return my_rank; }
    __device__ __forceinline__ uint32_t count(void) const { return blocks; }

    /* Of all threads of all blocks; what was written before is seen after. */
    __device__ __forceinline__ void sync(void) const {
        if (blocks == 1)
            __syncthreads();
#if __CUDA_ARCH__ >= 900
        else
            asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
    }
    /* sync() in two halves. */
    __device__ __forceinline__ void publish(void) const {
#if __CUDA_ARCH__ >= 900
        if (blocks > 1)
            asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
    }
    __device__ __forceinline__ void collect(void) const {
        if (blocks == 1)
            meet();
        else
            wait();
    }
    /* The same without an order of what was written, for which a fence would wait for all loads and stores on their way: nobody
     * may write to a block that has not begun, ... */
    __device__ __forceinline__ void arrive(void) const {
#if __CUDA_ARCH__ >= 900
        if (blocks > 1)
            asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
    }
    __device__ __forceinline__ void wait(void) const {
#if __CUDA_ARCH__ >= 900
        if (blocks > 1)
            asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
    }
    /* ... and a block's shared memory is gone when it ends: nobody may while others still read it. */
    __device__ __forceinline__ void leave(void) const {
        arrive();
        wait();
    }
    __device__ __forceinline__ uint32_t load4(const uint32_t *mine, uint32_t rank) const {
        uint32_t v;
#if __CUDA_ARCH__ >= 900
        asm volatile("{ .reg .u32 a; mapa.shared::cluster.u32 a, %1, %2; ld.shared::cluster.u32 %0, [a]; }"
                     : "=r"(v) : "r"(shared_address(mine)), "r"(rank) : "memory");
#else
        v = *mine;
#endif
        return v;
    }
    __device__ __forceinline__ void store4(uint32_t *mine, uint32_t rank, uint32_t v) const {
#if __CUDA_ARCH__ >= 900
        asm volatile("{ .reg .u32 a; mapa.shared::cluster.u32 a, %0, %1; st.shared::cluster.u32 [a], %2; }" ::
                     "r"(shared_address(mine)), "r"(rank), "r"(v) : "memory");
#else
        *mine = v;
#endif
    }
    __device__ __forceinline__ void store(uint2 *mine, uint32_t rank, uint2 v) const {
#if __CUDA_ARCH__ >= 900
        asm volatile("{ .reg .u32 a; mapa.shared::cluster.u32 a, %0, %1; st.shared::cluster.v2.u32 [a], {%2, %3}; }" ::
                     "r"(shared_address(mine)), "r"(rank), "r"(v.x), "r"(v.y) : "memory");
#else
        *mine = v;
#endif
    }
};

/* The first THREADS threads of each block of a cluster; the others have ended, or will before they are waited for. */
template <int THREADS> struct peers_part : peers_cluster {
    __device__ __forceinline__ explicit peers_part(const peers_cluster &all) : peers_cluster(all) {}
    static __device__ __forceinline__ void meet(void) {
        asm volatile("barrier.sync 1, %0;" ::"n"(THREADS) : "memory");
    }
    __device__ __forceinline__ void sync(void) const {
        if (blocks == 1)
            meet();
        else
            peers_cluster::sync();
    }
    __device__ __forceinline__ void collect(void) const {
        if (blocks == 1)
            meet();
        else
            wait();
    }
};

#endif

/* Two blocks of a cluster that gather for each other: sm_90 and newer. What one has copied into its shared memory goes to the same
 * place in the other's by the copy engine, past L2.
 */
#ifndef KBENCH_ATTN_PAIR_CUH
#define KBENCH_ATTN_PAIR_CUH

#include "../device.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900
#define HAS_PAIRS 1
#else
#define HAS_PAIRS 0
#endif

/* All threads of both blocks: this one's barriers are initialised; ... No more is said than that, since a fence between blocks
 * would wait for all that is on its way. */
static __device__ __forceinline__ void pair_arrive(void) {
#if HAS_PAIRS
    asm volatile("fence.mbarrier_init.release.cluster;\n\tbarrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

/* ... so are the other's. At the end, after another pair_arrive: nobody may end, and take its shared memory along, while the other
 * still writes there. */
static __device__ __forceinline__ void pair_wait(void) {
#if HAS_PAIRS
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/* So that the copy engine sees what this thread has stored and what its asynchronous copies, waited for, have brought. */
static __device__ __forceinline__ void pair_publish(void) {
#if HAS_PAIRS
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* By one thread: the barrier's phase ends when `bytes` have come, be it before or after this. */
static __device__ __forceinline__ void pair_expect(uint32_t barrier, uint32_t bytes) {
#if HAS_PAIRS
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(barrier), "r"(bytes)
                 : "memory");
#endif
}

/* By one thread: `bytes` (a multiple of 16) from here to the same place in block `rank`, counted at its barrier. */
static __device__ __forceinline__ void pair_give(uint32_t shared, uint32_t bytes, uint32_t barrier, uint32_t rank) {
#if HAS_PAIRS
    asm volatile("{ .reg .u32 to, there; mapa.shared::cluster.u32 to, %0, %3; mapa.shared::cluster.u32 there, %2, %3;\n\t"
                 "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [to], [%0], %1, [there]; }"
                 ::"r"(shared), "r"(bytes), "r"(barrier), "r"(rank) : "memory");
#endif
}

#endif

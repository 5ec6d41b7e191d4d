/* The products of sm_90a that wgmma.cuh is made of, and the descriptors of their operands. Everything here is empty where wgmma is
 * not.
 *
 * Both operands lie in shared memory as panels of rows of 128 bytes, aligned to 1024, chunk c of 16 bytes of row r at c ^ r % 8.
 * The hardware takes chunk c's place from bits 7 to 9 of an address, so that a row may begin at any 16 bytes of its panel.
 */
#ifndef KBENCH_ATTN_WGMMA_OPS_CUH
#define KBENCH_ATTN_WGMMA_OPS_CUH

#include "device.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define WGMMA_IS_THERE 1
#else
#define WGMMA_IS_THERE 0
#endif

/* An operand whose sums run along its rows: 8 rows after the first 8 are 1024 bytes further on. 16 elements further along: + 2. */
static __device__ __forceinline__ uint64_t wgmma_rows_at(uint32_t shared) {
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 16 | (shared & 0x3ffff) >> 4;
}

/* A B operand whose sums run across its rows: columns 64 and on are in the next panel, PANEL bytes further on. 16 rows further
 * down: + 128. */
template <int PANEL> static __device__ __forceinline__ uint64_t wgmma_columns_at(uint32_t shared) {
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)(PANEL >> 4) << 16 | (shared & 0x3ffff) >> 4;
}

/* Registers that a product reads or adds to may have been written since the last one. */
static __device__ __forceinline__ void wgmma_fence(void) {
#if WGMMA_IS_THERE
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

/* What other threads have written to shared memory, known to this thread by a barrier, or what it has written itself, is there for
 * the products to come. */
static __device__ __forceinline__ void wgmma_publish(void) {
#if WGMMA_IS_THERE
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* The products begun so far are a group; waits until no more than LEFT groups are unfinished. */
static __device__ __forceinline__ void wgmma_commit(void) {
#if WGMMA_IS_THERE
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
template <int LEFT> static __device__ __forceinline__ void wgmma_wait(void) {
#if WGMMA_IS_THERE
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
#endif
}

/* Among the 128 threads of one warpgroup; id: of the named barrier. */
static __device__ __forceinline__ void wgmma_team_sync(int id) {
#if WGMMA_IS_THERE
    asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory");
#endif
}

/* So that no use of c moves across a fence or a wait. */
template <int N> static __device__ __forceinline__ void wgmma_hold(float (&c)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(c[i]) :: "memory");
}

#define OF_8(k, c, i) k(c[i]), k(c[i + 1]), k(c[i + 2]), k(c[i + 3]), k(c[i + 4]), k(c[i + 5]), k(c[i + 6]), k(c[i + 7])
#define OF_16(k, c, i) OF_8(k, c, i), OF_8(k, c, i + 8)
#define OF_32(k, c, i) OF_16(k, c, i), OF_16(k, c, i + 16)
#define OF_64(k, c, i) OF_32(k, c, i), OF_32(k, c, i + 32)
#define SUMS_32                                                                                                               \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "                   \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
#define SUMS_64                                                                                                               \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                                 \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                        \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                        \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "

/* c[64 x 64] = (FIRST ? 0 : c) + a[64 x 16] * b[64 x 16]^T by a warpgroup, warp w rows 16 w and on. With g = lane / 4
 * and t = lane % 4: c[4 n + i] is row g + i / 2 * 8, column 8 n + 2 t + i % 2. a in registers: fragments as of mma_bf16, which
 * nothing may change before wgmma_wait. */
template <bool FIRST> static __device__ __forceinline__ void wgmma_scores(float (&c)[32], uint64_t a, uint64_t b) {
#if WGMMA_IS_THERE
    if constexpr (FIRST)
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS_32 "%32, %33, 0, 1, 1, 0, 0;"
                     : OF_32("=f", c, 0) : "l"(a), "l"(b));
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS_32 "%32, %33, 1, 1, 1, 0, 0;"
                     : OF_32("+f", c, 0) : "l"(a), "l"(b));
#endif
}
template <bool FIRST> static __device__ __forceinline__ void wgmma_scores(float (&c)[32], const uint32_t (&a)[4], uint64_t b) {
#if WGMMA_IS_THERE
    if constexpr (FIRST)
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS_32 "{%32, %33, %34, %35}, %36, 0, 1, 1, 0;"
                     : OF_32("=f", c, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS_32 "{%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
                     : OF_32("+f", c, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

/* c[64 x 128] += a[64 x 16] * b[16 x 128], b by wgmma_columns_at; c as above. */
static __device__ __forceinline__ void wgmma_values(float (&c)[64], uint64_t a, uint64_t b) {
#if WGMMA_IS_THERE
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " SUMS_64 "%64, %65, 1, 1, 1, 0, 1;"
                 : OF_64("+f", c, 0) : "l"(a), "l"(b));
#endif
}

#undef SUMS_32
#undef SUMS_64
#undef OF_8
#undef OF_16
#undef OF_32
#undef OF_64

/* Among all threads of a cluster of blocks; what they have written to shared memory before is seen behind it. */
static __device__ __forceinline__ void wgmma_cluster_sync(void) {
#if WGMMA_IS_THERE
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/* The same in two halves, and without an order of what was written, for which a fence would wait for all loads and stores on their
 * way: a block's shared memory is there for others once it has begun and until it ends. */
static __device__ __forceinline__ void wgmma_cluster_arrive(void) {
#if WGMMA_IS_THERE
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
static __device__ __forceinline__ void wgmma_cluster_wait(void) {
#if WGMMA_IS_THERE
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
static __device__ __forceinline__ uint32_t wgmma_cluster_rank(void) {
    uint32_t rank = 0;
#if WGMMA_IS_THERE
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

/* What lies at `shared` of this block, in block `rank`; for the accesses below. */
static __device__ __forceinline__ uint32_t wgmma_cluster_address(uint32_t shared, uint32_t rank) {
    uint32_t there = shared;
#if WGMMA_IS_THERE
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared), "r"(rank));
#endif
    return there;
}
static __device__ __forceinline__ float4 wgmma_cluster_load16(uint32_t there) {
    float4 v = {};
#if WGMMA_IS_THERE
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(there)
                 : "memory");
#endif
    return v;
}
static __device__ __forceinline__ void wgmma_cluster_store8(uint32_t there, float x, float y) {
#if WGMMA_IS_THERE
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(x), "f"(y) : "memory");
#endif
}
static __device__ __forceinline__ void wgmma_store16(uint32_t shared, const float *x) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]) : "memory");
}

/* Four 8x8 matrices of 16-bit elements from where products leave them; lane l gives the address of row l % 8 of matrix l / 8. */
static __device__ __forceinline__ void store_matrix4(uint32_t shared, uint32_t d0, uint32_t d1, uint32_t d2, uint32_t d3) {
#if WGMMA_IS_THERE
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(shared), "r"(d0), "r"(d1), "r"(d2), "r"(d3) : "memory");
#endif
}

#endif

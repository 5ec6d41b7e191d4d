/* What the copy engine and the warpgroup products of sm_90 need; nothing here is used on what lacks them.
 *
 * A tensor map describes rows of 128 bytes, of which a copy takes 64 in a row and swizzles them: chunk c of 16 bytes of row r lies
 * at c ^ r % 8, as wgmma reads it. Products are m64n64; with both operands in shared memory a page goes from memory to the tensor
 * cores without a register in between.
 */
#ifndef KBENCH_INDEXER_HOPPER_CUH
#define KBENCH_INDEXER_HOPPER_CUH

#include <cuda.h>
#include "device.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HAS_WGMMA 1
#else
#define HAS_WGMMA 0
#endif
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900
#define HAS_BULK 1
#else
#define HAS_BULK 0
#endif

/* Arrives, and lets the phase end only when `bytes` more have been copied. */
static __device__ __forceinline__ void barrier_arrive_expect(uint32_t barrier, uint32_t bytes) {
#if HAS_BULK
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(barrier), "r"(bytes)
                 : "memory");
#endif
}

/* So that barriers just initialised are known to the copy engine. */
static __device__ __forceinline__ void barrier_init_done(void) {
#if HAS_BULK
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

static __device__ __forceinline__ void bulk_prefetch_map(const CUtensorMap *map) {
#if HAS_BULK
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}

/* sm_120 would store an unused word to local memory for a cluster's address; older toolkits know no other. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 1000
#define BULK_TO "shared::cta"
#else
#define BULK_TO "shared::cluster"
#endif

/* 64 rows from `row` on, 128 bytes of each from byte x on, to shared memory; by one thread. */
static __device__ __forceinline__ void bulk_rows(uint32_t shared, const CUtensorMap *map, int32_t x, int32_t row,
                                                 uint32_t barrier) {
#if HAS_BULK
    asm volatile("cp.async.bulk.tensor.2d." BULK_TO ".global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared), "l"(map), "r"(x), "r"(row), "r"(barrier) : "memory");
#endif
}

/* bytes: a multiple of 16, as are both addresses; by one thread. */
static __device__ __forceinline__ void bulk_line(uint32_t shared, const void *global, uint32_t bytes, uint32_t barrier) {
#if HAS_BULK
    asm volatile("cp.async.bulk." BULK_TO ".global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared), "l"(global), "r"(bytes), "r"(barrier) : "memory");
#endif
}

/* Of 64 rows of 128 bytes, swizzled: groups of 8 rows are 1,024 bytes apart. A k-step of 32 bytes further on adds 2. */
static __device__ __forceinline__ uint64_t wgmma_rows(uint32_t shared) {
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 16 | (shared & 0x3ffff) >> 4;
}

static __device__ __forceinline__ void wgmma_begin(void) {
#if HAS_WGMMA
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
static __device__ __forceinline__ void wgmma_commit(void) {
#if HAS_WGMMA
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/* So that the copy engine and wgmma see what this thread has stored to shared memory. */
static __device__ __forceinline__ void wgmma_publish(void) {
#if HAS_WGMMA
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* For the four warps of warpgroup `team`. */
static __device__ __forceinline__ void warpgroup_sync(int team) {
#if HAS_WGMMA
    asm volatile("barrier.cta.sync %0, 128;" ::"r"(team + 1) : "memory");
#endif
}

#define WGMMA_SUMS                                                                                    \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                          \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
#define WGMMA_SUMS_OF(c)                                                                                                         \
    "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]),      \
        "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]),     \
        "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),     \
        "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])

/* c[64 x 64] = (add ? c : 0) + a[64 x 32 bytes] * b[64 x 32 bytes]^T by a warpgroup, warp w rows 16 w and on. With g = lane / 4 and
 * t = lane % 4: c[4 n + i] is row g + i / 2 * 8, column 8 n + 2 t + i % 2. */
static __device__ __forceinline__ void wgmma_bf16(float (&c)[32], uint64_t a, uint64_t b, bool add) {
#if HAS_WGMMA
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " WGMMA_SUMS "%32, %33, add, 1, 1, 0, 0;\n}"
                 : WGMMA_SUMS_OF(c) : "l"(a), "l"(b), "r"((int)add));
#endif
}

/* Sums keep 13 bits below the largest product of a k-step: where they cancel, a score is wrong
 * by half a per cent and more. */
static __device__ __forceinline__ void wgmma_e4m3(float (&c)[32], uint64_t a, uint64_t b, bool add) {
#if HAS_WGMMA
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " WGMMA_SUMS "%32, %33, add, 1, 1;\n}"
                 : WGMMA_SUMS_OF(c) : "l"(a), "l"(b), "r"((int)add));
#endif
}

/* Likewise with the warp's 16 rows of a in registers: a fragment as mma_bf16 has it. Nothing may change it before wgmma_wait. */
static __device__ __forceinline__ void wgmma_half(float (&c)[32], const uint32_t (&a)[4], uint64_t b, bool add) {
#if HAS_WGMMA
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " WGMMA_SUMS "{%32, %33, %34, %35}, %36, add, 1, 1, 0;\n}"
                 : WGMMA_SUMS_OF(c) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
#endif
}
static __device__ __forceinline__ void wgmma_bf16(float (&c)[32], const uint32_t (&a)[4], uint64_t b, bool add) {
#if HAS_WGMMA
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " WGMMA_SUMS "{%32, %33, %34, %35}, %36, add, 1, 1, 0;\n}"
                 : WGMMA_SUMS_OF(c) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
#endif
}

/* Until all products are there. c: theirs, which nothing may touch before. */
static __device__ __forceinline__ void wgmma_wait(float (&c)[32]) {
#if HAS_WGMMA
    asm volatile("wgmma.wait_group.sync.aligned 0;" : WGMMA_SUMS_OF(c) :: "memory");
#endif
}

#undef WGMMA_SUMS
#undef WGMMA_SUMS_OF

/* The driver's own encoder, found at run time: the program links no driver. */
typedef CUresult tensor_map_encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                                   const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                   CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* NULL: this driver has none. */
static inline tensor_map_encode *tensor_map_encoder(void) {
    void *found = NULL;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? (tensor_map_encode *)found : NULL;
}

/* Rows of `halves` times 128 bytes, `stride` bytes apart, as many as an int32 can count. false: the driver won't have it. */
static inline bool tensor_map_rows(tensor_map_encode *encode, const void *base, int64_t stride, int halves, CUtensorMap *ret) {
    const cuuint64_t size[2] = {(cuuint64_t)halves * 128, 1ull << 31}, strides[1] = {(cuuint64_t)stride};
    const cuuint32_t box[2] = {128, 64}, every[2] = {1, 1};
    const CUresult result =
        encode(ret, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, (void *)base, size, strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS;
}

#endif

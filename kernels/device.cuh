/* Device helpers that at least two kernels use. Everything here runs on sm_80 and newer: the same source serves an A100, an H200
 * and an sm_120 card, so no wgmma, no TMA, no clusters.
 */
#ifndef KBENCH_DEVICE_CUH
#define KBENCH_DEVICE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

static constexpr int      WARP = 32;
static constexpr unsigned ALL_LANES = 0xffffffffu;

/* Of a block in one dimension. Unsigned division, which is a shift, before the sign. */
static __device__ __forceinline__ int warp_id(void) {
    return (int)(threadIdx.x / WARP);
}
static __device__ __forceinline__ int lane_id(void) {
    return (int)(threadIdx.x % WARP);
}

/* Two bf16 of a 32-bit word as floats, the one at the lower address first: a bf16 is the upper half of a float. */
static __device__ __forceinline__ float bf16_lo(uint32_t word) {
    return __uint_as_float(word << 16);
}
static __device__ __forceinline__ float bf16_hi(uint32_t word) {
    return __uint_as_float(word & 0xffff0000u);
}

/* Rounds to nearest even; lo goes to the lower address. */
static __device__ __forceinline__ uint32_t bf16_pack(float lo, float hi) {
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(hi), "f"(lo));
    return word;
}

/* 16 bytes of device memory, never read again: past L1. */
static __device__ __forceinline__ uint4 load16_once(const void *p) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

static __device__ __forceinline__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* 16 bytes from device to shared memory, asynchronously and past L1. Not valid: nothing is read and 16 zero bytes are written. */
static __device__ __forceinline__ void copy16_async(uint32_t shared, const void *global, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(valid ? 16 : 0) : "memory");
}
static __device__ __forceinline__ void copy_commit(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int PENDING> static __device__ __forceinline__ void copy_wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
static __device__ __forceinline__ void copy_wait_all(void) {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* An mbarrier in shared memory: a phase ends when `count` have arrived; parity: of the phase waited for, 0 the first. */
static __device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
static __device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier) : "memory");
}
/* Arrives when all asynchronous copies that this thread has begun are there. */
static __device__ __forceinline__ void barrier_arrive_copies(uint32_t barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}
static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
    uint32_t done;
    do
#if __CUDA_ARCH__ >= 900
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
#else
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
#endif
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    while (!done);
}

/* Registers of a thread, by all warps of an aligned group of four: what some give up, others may take. Only code for one exact
 * architecture (sm_90a, sm_120a, ...) can; elsewhere nothing happens. */
#if defined __CUDA_ARCH_FEAT_SM90_ALL || defined __CUDA_ARCH_FEAT_SM100_ALL || defined __CUDA_ARCH_FEAT_SM120_ALL || \
    defined __CUDA_ARCH_SPECIFIC__
#define MOVES_REGISTERS 1
#else
#define MOVES_REGISTERS 0
#endif
template <int COUNT> static __device__ __forceinline__ void registers_give(void) {
#if MOVES_REGISTERS
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
#endif
}
template <int COUNT> static __device__ __forceinline__ void registers_take(void) {
#if MOVES_REGISTERS
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
#endif
}

/* Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. */
static __device__ __forceinline__ void load_matrix4(uint32_t (&d)[4], uint32_t shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(shared));
}
static __device__ __forceinline__ void load_matrix4_transposed(uint32_t (&d)[4], uint32_t shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(shared));
}

/* c[16x8] += a[16x16] * b[16x8], bf16 in, fp32 sums. With g = lane / 4 and t = lane % 4: c = {(g, 2t), (g, 2t+1), (g+8, 2t),
 * (g+8, 2t+1)}; a = rows {g, g+8, g, g+8}, columns 2t and 2t+1 of the lower half twice, then of the upper; b = column g, rows 2t
 * and 2t+1 of the lower half, then of the upper. */
static __device__ __forceinline__ void mma_bf16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* One instruction; a result below 2^-126 is 0. */
static __device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* x, from now on in a register: the compiler can't know that it could compute it again, which it likes to do in the middle of a
 * loop. */
static __device__ __forceinline__ uint32_t pinned(uint32_t x) {
    asm volatile("shfl.sync.idx.b32 %0, %0, %1, 0x1f, 0xffffffff;" : "+r"(x) : "r"(threadIdx.x % WARP));
    return x;
}

static __device__ __forceinline__ uint4 load16_shared(uint32_t shared) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(shared));
    return v;
}

static __device__ __forceinline__ uint2 load8_shared(uint32_t shared) {
    uint2 v;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(shared));
    return v;
}
static __device__ __forceinline__ void store8_shared(uint32_t shared, float x, float y) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(shared), "f"(x), "f"(y) : "memory");
}
static __device__ __forceinline__ void store4_shared(uint32_t shared, uint32_t x) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared), "r"(x) : "memory");
}

static __device__ __forceinline__ void prefetch_l2(const void *p) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

static __device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

#endif

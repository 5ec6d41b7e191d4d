/* What the CUDA kernels of op attn_fp8 share, beside attn/attn.cuh: where an entry lies in its page, and what its bytes mean.
 *
 * Codes become half, which holds every e4m3 exactly, two at a time. A scale is a power of two: its byte is the exponent of a float.
 * A kernel multiplies by it late, once for 64 products, since half could not hold the scaled value.
 */
#ifndef KBENCH_FP8_CUH
#define KBENCH_FP8_CUH

#include "attn/attn.cuh"
#include "attn_fp8.h"

struct fp8_paging {
    int32_t log2, bytes;  /* entries a page, as a power of two; bytes from page to page */
};

/* A kernel parameter. */
struct fp8_args : attn_args {
    fp8_paging page[2];  /* window, top-k */
};

static inline fp8_args fp8_args_of(const struct call *call) {
    fp8_args a;
    (attn_args &)a = attn_args_of(call);
    for (int list = 0; list < 2; list++) {
        const int64_t entries = call->problem->dim[ATTN_FP8_WINDOW_PAGE + list];
        a.page[list] = {0, (int32_t)attn_fp8_page_bytes(entries)};
        while (1 << a.page[list].log2 < entries)
            a.page[list].log2++;
    }
    return a;
}

struct fp8_entry {
    const uint8_t *data;    /* 448 e4m3, then 64 bf16; aligned to 64 */
    const uint8_t *scales;  /* 7 ue8m0 and an undefined byte; aligned to 8 */
};

/* slot: not negative */
static __device__ __forceinline__ fp8_entry fp8_entry_of(const fp8_args &a, bool window, int32_t slot) {
    const int32_t log2 = window ? a.page[0].log2 : a.page[1].log2, bytes = window ? a.page[0].bytes : a.page[1].bytes;
    const uint8_t *cache = (const uint8_t *)(window ? a.t[ATTN_WINDOW_KV].p : a.t[ATTN_TOPK_KV].p);
    const uint8_t *page = cache + (int64_t)(slot >> log2) * bytes;
    const int32_t  at = slot & ((1 << log2) - 1);
    return {page + at * ATTN_FP8_DATA, page + (ATTN_FP8_DATA << log2) + at * ATTN_FP8_SCALES};
}

/* 2^(byte - 127): byte 0 is a subnormal float, 255 NaN. */
static __device__ __forceinline__ float fp8_scale(uint32_t byte) {
    return __uint_as_float(byte == 255 ? 0x7fc00000u : max(byte << 23, 0x00400000u));
}

/* Two e4m3, the lower 16 bits of `pair`, as two halves, the code at the lower address first. Exact; NaN stays NaN. */
static __device__ __forceinline__ uint32_t fp8_half2(uint32_t pair) {
    uint32_t half2;
#if __CUDA_ARCH__ >= 890
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.rn.f16x2.e4m3x2 %0, low;\n}" : "=r"(half2) : "r"(pair));
#else
    /* As bits of a half, sign, exponent and mantissa are worth 2^-8 of the code, also where it is subnormal. */
    const uint32_t upper = __byte_perm(pair, 0, 0x1404), magnitude = upper & 0x7f007f00;
    const uint32_t nan = (magnitude + 0x01000100) & 0x80008000;  /* code 0x7f alone carries: its exponent becomes 31 */
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(half2) : "r"((upper & 0x80008000) | magnitude >> 1 | nan >> 1), "r"(0x5c005c00));
#endif
    return half2;
}

/* The four e4m3 of a word. */
static __device__ __forceinline__ void fp8_half4(uint32_t word, uint32_t (&half2)[2]) {
#if __CUDA_ARCH__ >= 890
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.rn.f16x2.e4m3x2 %0, low;\ncvt.rn.f16x2.e4m3x2 %1, high;\n}"
        : "=r"(half2[0]), "=r"(half2[1]) : "r"(word));
#else
    half2[0] = fp8_half2(word);
    half2[1] = fp8_half2(word >> 16);
#endif
}

static __device__ __forceinline__ float half_lo(uint32_t half2) {
    float x;
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, low;\n}" : "=f"(x) : "r"(half2));
    return x;
}
static __device__ __forceinline__ float half_hi(uint32_t half2) {
    float x;
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, high;\n}" : "=f"(x) : "r"(half2));
    return x;
}

#endif

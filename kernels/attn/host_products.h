/* The matrix products that a processor offers: AMX tiles; AVX512-BF16; or plain fp32 vectors, on any. Which one is the caller's
 * choice by mma_has() and mma_prefers_pairs().
 */
#ifndef KBENCH_ATTN_HOST_PRODUCTS_H
#define KBENCH_ATTN_HOST_PRODUCTS_H

#include <stdbool.h>

#include "host.h"

/* Values of the tunable `path`. PORTABLE takes the widest fp32 vectors of the processor, the last two ask for narrower ones. */
enum path { AUTO = 1, PORTABLE, AVX512_BF16, AMX, AVX2, ANY, PATHS };

typedef void gemm_fn(int64_t M, int64_t N, int64_t K, const float *a, int64_t am, int64_t ak, const float *b, int64_t ldb, float *c,
                     int64_t ldc, const float *scale);

typedef float vec4 __attribute__((vector_size(16), aligned(4), may_alias));
#define GEMM gemm_vec4
#define GEMM_TARGET
#define GEMM_VEC vec4
#define GEMM_LANES 4
#define GEMM_ROWS 4
#define GEMM_SPLAT(x) ((vec4){(x), (x), (x), (x)})
#define GEMM_MADD(sum, x, y) ((sum) + (x) * (y))
#include "attn/host_gemm.h"

#if defined __x86_64__ && defined __linux__
#include "attn/host_amx.h"

typedef float vec8 __attribute__((vector_size(32), aligned(4), may_alias));
#define GEMM gemm_avx2
#define GEMM_TARGET __attribute__((target("avx2,fma")))
#define GEMM_VEC vec8
#define GEMM_LANES 8
#define GEMM_ROWS 4
#define GEMM_SPLAT(x) ((vec8)_mm256_set1_ps(x))
#define GEMM_MADD(sum, x, y) ((vec8)_mm256_fmadd_ps((__m256)(x), (__m256)(y), (__m256)(sum)))
#include "attn/host_gemm.h"

typedef float vec16 __attribute__((vector_size(64), aligned(4), may_alias));
#define GEMM gemm_avx512
#define GEMM_TARGET __attribute__((target("avx512f")))
#define GEMM_VEC vec16
#define GEMM_LANES 16
#define GEMM_ROWS 8
#define GEMM_SPLAT(x) ((vec16)_mm512_set1_ps(x))
#define GEMM_MADD(sum, x, y) ((vec16)_mm512_fmadd_ps((__m512)(x), (__m512)(y), (__m512)(sum)))
#include "attn/host_gemm.h"

#define GEMM gemm_avx512_bf16
#define GEMM_TARGET __attribute__((target("avx512f,avx512bf16")))
#define GEMM_VEC vec16
#define GEMM_LANES 16
#define GEMM_ROWS 8
#define GEMM_SPLAT(x) ((vec16)_mm512_set1_ps(x))
#define GEMM_MADD(sum, x, y) ((vec16)_mm512_dpbf16_ps((__m512)(sum), (__m512bh)(x), (__m512bh)(y)))
#include "attn/host_gemm.h"

static bool mma_has(enum path path)
{
    switch (path) {
    case AMX: return __builtin_cpu_supports("avx512f") && amx_request();
    case AVX512_BF16: return __builtin_cpu_supports("avx512bf16");
    case AVX2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    default: return true;
    }
}

/* Intel's processors do pairs at half the rate of fp32 (on a Xeon with AMX, fp32 vectors came out 1.3 to 1.7 times as fast). */
static bool mma_prefers_pairs(void) { return !__builtin_cpu_is("intel"); }

static gemm_fn *mma_gemm(enum path path)
{
    switch (path) {
    case AMX: return amx_gemm;
    case AVX512_BF16: return gemm_avx512_bf16;
    case AVX2: return gemm_avx2;
    case ANY: return gemm_vec4;
    default: return __builtin_cpu_supports("avx512f") ? gemm_avx512 : mma_has(AVX2) ? gemm_avx2 : gemm_vec4;
    }
}
#else
static void amx_begin(void) {}
static void amx_end(void) {}
static bool mma_has(enum path path) { return path == PORTABLE || path == ANY; }
static bool mma_prefers_pairs(void) { return false; }
static gemm_fn *mma_gemm(enum path path) { return (void)path, gemm_vec4; }
#endif

#endif

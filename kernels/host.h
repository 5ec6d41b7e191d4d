/* For host kernels: instruction sets, bf16, exp, prefetch. Plain C that the compiler vectorises; on other machines than x86-64
 * it is compiled once, for what they all have.
 */
#ifndef KBENCH_HOST_H
#define KBENCH_HOST_H

#include <stdint.h>
#include <string.h>

#define HOST_INLINE static inline __attribute__((always_inline))

/* Before a function whose loops carry the time: compiled three times, chosen when the program starts. Not for functions with
 * OpenMP regions: what is cut out of them would not be cloned. */
#if defined __x86_64__ && defined __GNUC__
#define HOST_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HOST_CLONES
#endif

HOST_INLINE float host_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

HOST_INLINE float host_f32(uint16_t bf16) { return host_float((uint32_t)bf16 << 16); }

/* Nearest, ties to even; NaN stays NaN. */
HOST_INLINE uint16_t host_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? 0x7fc0 : rounded);
}

/* e^x for x up to 88, relative error below 1e-6 where the result counts (x > -20); 0 below -87; NaN for NaN. Without a branch. */
HOST_INLINE float host_exp(float x)
{
    float t = x * 1.44269504f;
    t = t < -127.0f ? -127.0f : t;
    float whole = (t + 12582912.0f) - 12582912.0f;   /* adding 1.5 * 2^23 leaves no room for a fraction: rounded */
    float f = t - whole;                             /* -0.5 .. 0.5; 2^f by its Taylor series, of which 7 terms leave 1e-7 */
    float p = 1.54035304e-4f;
    p = p * f + 1.33335581e-3f;
    p = p * f + 9.61812911e-3f;
    p = p * f + 5.55041087e-2f;
    p = p * f + 2.40226507e-1f;
    p = p * f + 6.93147181e-1f;
    p = p * f + 1.0f;
    return p * host_float((uint32_t)((int32_t)whole + 127) << 23);   /* 2^whole; 0 for -127 */
}

/* Asks for the first `bytes` of a row: shuffled rows are beyond what the processor foresees. */
HOST_INLINE void host_prefetch(const void *p, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)p + i, 0, 2);
}

#endif

/* Number formats narrower than float, to double and back. Every function that narrows rounds to nearest, ties to even, once:
 * from double directly, never through float. Narrow values are carried in their bit patterns.
 *
 *   format  sign exponent mantissa  bias  largest   beyond the largest      NaN
 *   bf16    1    8        7         127   3.39e38   inf                     kept, made quiet
 *   f16     1    5        10        15    65504     inf                     kept as quiet
 *   e4m3    1    4        3         7     448       448 (also from inf)     0x7f | sign    "fn": no infinity
 *   e2m1    1    2        1         1     6         6 (also from inf)       +6, the format has none
 *   ue8m0   0    8        0         127   2^127     see ue8m0_ceil          0xff           a power of two, for scales
 */
#ifndef KBENCH_DTYPE_H
#define KBENCH_DTYPE_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "op.h"

#define DTYPE_INLINE static inline __attribute__((always_inline))

DTYPE_INLINE uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

DTYPE_INLINE float f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

DTYPE_INLINE float f32_from_bf16(uint16_t x) { return f32_of_bits((uint32_t)x << 16); }

/* For finite x: without a branch, so that loops over it vectorise. Past the largest bf16 it gives inf. */
DTYPE_INLINE uint16_t bf16_from_finite(float x)
{
    uint32_t bits = bits_of_f32(x);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

DTYPE_INLINE uint16_t bf16_from_f32(float x)
{
    return isnan(x) ? (uint16_t)(bits_of_f32(x) >> 16 | 0x0040) : bf16_from_finite(x);
}

/* |x| in a format of `mantissa` bits with this bias, as a bit pattern without sign; x >= 0 and finite. Exponent fields go on
 * without limit: the caller cuts off at its largest. A carry out of the mantissa steps the exponent, as it should. */
static inline uint64_t minifloat_bits(double x, int mantissa, int bias)
{
    int exponent = x > 0 ? ilogb(x) : -bias;
    if (exponent < 1 - bias) exponent = 1 - bias;                  /* subnormal */
    uint64_t steps = (uint64_t)nearbyint(scalbn(x, mantissa - exponent));
    uint64_t base = (uint64_t)(exponent + bias - 1) << mantissa;   /* steps holds the hidden bit, if there is one */
    return base + steps;
}

static inline double minifloat_value(unsigned bits, int mantissa, int bias)
{
    int field = (int)(bits >> mantissa), fraction = (int)(bits & ((1u << mantissa) - 1));
    return field ? scalbn((1 << mantissa) + fraction, field - bias - mantissa) : scalbn(fraction, 1 - bias - mantissa);
}

static inline uint16_t bf16_from_f64(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return sign | 0x7fc0;
    if (isinf(x)) return sign | 0x7f80;
    uint64_t bits = minifloat_bits(fabs(x), 7, 127);
    return sign | (uint16_t)(bits < 0x7f80 ? bits : 0x7f80);
}

static inline uint16_t f16_from_f64(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return sign | 0x7e00;
    if (isinf(x)) return sign | 0x7c00;
    uint64_t bits = minifloat_bits(fabs(x), 10, 15);
    return sign | (uint16_t)(bits < 0x7c00 ? bits : 0x7c00);
}

static inline double f64_from_f16(uint16_t x)
{
    unsigned magnitude = x & 0x7fff;
    double value = magnitude > 0x7c00 ? NAN : magnitude == 0x7c00 ? INFINITY : minifloat_value(magnitude, 10, 15);
    return x & 0x8000 ? -value : value;
}

static inline uint8_t e4m3_from_f64(double x)
{
    uint8_t sign = signbit(x) ? 0x80 : 0;
    if (isnan(x)) return sign | 0x7f;
    uint64_t bits = isinf(x) ? 0x7e : minifloat_bits(fabs(x), 3, 7);
    return sign | (uint8_t)(bits < 0x7e ? bits : 0x7e);
}

static inline double f64_from_e4m3(uint8_t x)
{
    double value = (x & 0x7f) == 0x7f ? NAN : minifloat_value(x & 0x7f, 3, 7);
    return x & 0x80 ? -value : value;
}

/* In the low four bits. */
static inline uint8_t e2m1_from_f64(double x)
{
    if (isnan(x)) return 0x7;
    uint64_t bits = isinf(x) ? 0x7 : minifloat_bits(fabs(x), 1, 1);
    return (uint8_t)((signbit(x) ? 0x8 : 0) | (bits < 0x7 ? bits : 0x7));
}

static inline double f64_from_e2m1(uint8_t x)
{
    double value = minifloat_value(x & 0x7, 1, 1);
    return x & 0x8 ? -value : value;
}

static inline double f64_from_ue8m0(uint8_t x) { return x == 0xff ? NAN : scalbn(1.0, x - 127); }

/* The smallest power of two that is not below x: a block divided by it does not overflow. Zero and below give the smallest,
 * above 2^127 the largest. */
static inline uint8_t ue8m0_ceil(double x)
{
    if (isnan(x)) return 0xff;
    if (!(x > 0x1p-127)) return 0;
    if (x > 0x1p127) return 0xfe;
    int exponent = ilogb(x);
    return (uint8_t)(127 + exponent + (x > scalbn(1.0, exponent)));
}

/* Bytes of an element; BYTES: 1. */
static inline int dtype_bytes(enum dtype dtype)
{
    switch (dtype) {
    case I64: return 8;
    case F32:
    case I32: return 4;
    case F16:
    case BF16: return 2;
    case E4M3:
    case BYTES: return 1;
    }
    return 0;
}

/* Element i of a buffer as double; BYTES are the op's own affair (op.load) and come as plain numbers here. */
static inline double dtype_load(enum dtype dtype, const void *buf, int64_t i)
{
    switch (dtype) {
    case F32: return ((const float *)buf)[i];
    case F16: return f64_from_f16(((const uint16_t *)buf)[i]);
    case BF16: return f32_from_bf16(((const uint16_t *)buf)[i]);
    case E4M3: return f64_from_e4m3(((const uint8_t *)buf)[i]);
    case I32: return ((const int32_t *)buf)[i];
    case I64: return (double)((const int64_t *)buf)[i];
    case BYTES: return ((const uint8_t *)buf)[i];
    }
    return NAN;
}

#endif

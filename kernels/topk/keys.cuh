/* Scores as unsigned 32-bit keys of the same order, and the bins of the first look at them. The host can run it too.
 *
 * Keys below KEY_FIRST are no candidates: NaN, -inf, or past the end. -0 has a key just below +0: where both stand at the border
 * either will do, since they tie.
 */
#ifndef KBENCH_TOPK_KEYS_CUH
#define KBENCH_TOPK_KEYS_CUH

#include <stdint.h>

static constexpr uint32_t KEY_NONE = 0, KEY_FIRST = 0x00ffffffu, KEY_LAST = 0xffffffffu;
static constexpr uint32_t KEY_SHIFT = 0x007fffffu, NAN_BITS = 0x7fffffffu;

/* A float by its bits: negative ones upside down, the others above them; then all go up until the NaNs above +inf have wrapped
 * round to below -inf, where the others are. */
static __host__ __device__ __forceinline__ uint32_t key_of_bits(uint32_t bits) {
    return (bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u)) + KEY_SHIFT;
}
static __host__ __device__ __forceinline__ uint32_t bits_of_key(uint32_t key) {
    const uint32_t k = key - KEY_SHIFT;
    return k ^ (~(uint32_t)((int32_t)k >> 31) | 0x80000000u);
}

/* Keys lo <= key <= last. */
struct key_range {
    uint32_t lo, last;
    __host__ __device__ __forceinline__ bool holds(uint32_t key) const {
        return key >= lo && key <= last;
    }
};

/* A histogram has BINS bins, in groups that a warp looks at as one. */
static constexpr int BINS = 2048, GROUP = 32, GROUPS = BINS / GROUP;

/* First bins: of an fp16, cut and not rounded, all but the last 5 bits: 32 bins an octave from 2^-14 to 2^16, of either sign,
 * evenly below that, and all that is larger in the outermost. So the border of scores of any ordinary scale falls into a bin of
 * few, and two scores become bins in a handful of instructions. */
static constexpr int FIRST_SHIFT = 5;

/* Of two floats, by their bits, in the lower and the upper half; a half >> FIRST_SHIFT is a bin. */
static __host__ __device__ __forceinline__ uint32_t first_bins(uint32_t lower, uint32_t upper) {
    uint32_t halves, signs;
#ifdef __CUDA_ARCH__
    asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(__uint_as_float(upper)), "f"(__uint_as_float(lower)));
    asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(signs) : "r"(halves));  /* each half's sign, 16 times */
#else
    halves = signs = 0;
    for (int i = 0; i < 2; i++) {
        const uint32_t bits = i ? upper : lower, size = bits & 0x7fffffffu, exponent = size >> 23;
        const uint32_t half = size > 0x7f800000u ? 0x7fff : size == 0x7f800000u ? 0x7c00 : exponent >= 143 ? 0x7bff
            : exponent >= 113                    ? (size >> 13) - (112 << 10)
            : exponent >= 103                    ? (0x800000u | (size & 0x7fffffu)) >> (126 - exponent) : 0;
        halves |= (half | (size > 0x7f800000u ? 0 : bits >> 31 << 15)) << i * 16;
    }
    signs = (halves & 0x8000u ? 0xffffu : 0) | (halves & 0x80000000u ? 0xffff0000u : 0);
#endif
    return halves ^ (signs | 0x80008000u);
}
static __host__ __device__ __forceinline__ uint32_t first_bin_of_lower(uint32_t bins) {
    return bins >> FIRST_SHIFT & (BINS - 1);
}
static __host__ __device__ __forceinline__ uint32_t first_bin_of_upper(uint32_t bins) {
    return bins >> (16 + FIRST_SHIFT);
}

/* The least float whose fp16 ends in FIRST_SHIFT zeros and is number `bin` of them, by its bits. */
static __host__ __device__ __forceinline__ uint32_t first_bin_size(uint32_t bin) {
    const uint32_t half = bin << FIRST_SHIFT;
    union { uint32_t u; float f; } v = {half << 13};
    v.f *= 5192296858534827628530496329220096.f;  /* 2^112: from the exponents of fp16 to those of fp32 */
    return half >= 0x7c00 ? 0x7f800000u : v.u;
}

/* The keys of a first bin; one that holds a candidate. */
static __host__ __device__ __forceinline__ key_range first_bin_range(uint32_t bin) {
    const uint32_t half = BINS / 2, i = bin < half ? half - 1 - bin : bin - half;
    const uint32_t from = first_bin_size(i), to = first_bin_size(i + 1);  /* below `to`; but +inf is alone */
    if (bin < half)
        return {key_of_bits(0x80000000u | (to - 1)), key_of_bits(0x80000000u | from)};
    return {key_of_bits(from), from == to ? KEY_LAST : key_of_bits(to) - 1};
}

/* Later bins cut what is left of the range evenly: bin = (key - lo) >> shift. 0: a bin is one key. */
static __host__ __device__ __forceinline__ int range_shift(key_range range) {
    int shift = 0;
    for (uint32_t size = range.last - range.lo; size >= BINS; size >>= 1)
        shift++;
    return shift;
}
static __host__ __device__ __forceinline__ key_range range_bin(key_range range, int shift, uint32_t bin) {
    const uint32_t lo = range.lo + (bin << shift), size = (1u << shift) - 1;
    return {lo, range.last - lo < size ? range.last : lo + size};
}

#endif

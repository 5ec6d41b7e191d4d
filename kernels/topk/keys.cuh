/* Scores as unsigned 32-bit keys of the same order, and the bins of the first look at them. No intrinsics: the host can run it.
 *
 * Key 0 is no candidate: NaN, -inf, or past the end. Everything else is above 0. -0 has a key just below +0: where both stand at
 * the border either will do, since they tie.
 */
#ifndef KBENCH_TOPK_KEYS_CUH
#define KBENCH_TOPK_KEYS_CUH

#include <stdint.h>

static constexpr uint32_t KEY_NONE = 0, KEY_LAST = 0xffffffffu;

/* A float by its bits. Negative ones are turned upside down, the others go above them; NaNs stand above the infinities. */
static __host__ __device__ __forceinline__ uint32_t key_of_bits(uint32_t bits) {
    const uint32_t size = bits & 0x7fffffffu, key = bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
    return size > 0x7f800000u || bits == 0xff800000u ? KEY_NONE : key;
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

/* First bins: 32 an octave from 2^-16 to 2^16, of either sign; what is smaller or larger goes to the innermost or outermost. So
 * the border of scores of any ordinary scale falls into a bin of few. */
static constexpr int32_t BIN_SHIFT = 18;                                   /* sign, exponent and 5 bits of mantissa are left */
static constexpr int32_t BIN_PLUS = 0x80000000u >> BIN_SHIFT;              /* where +0 is, in such units */
static constexpr int32_t BIN_SMALL = (127 - 16) << (23 - BIN_SHIFT);       /* 2^-16 from there */

static __host__ __device__ __forceinline__ uint32_t first_bin(uint32_t key) {
    const int32_t at = (int32_t)(key >> BIN_SHIFT) - BIN_PLUS, half = BINS / 2;
    const int32_t size = (at < 0 ? -1 - at : at) - BIN_SMALL;
    const int32_t bin = size < 0 ? 0 : size < half ? size : half - 1;
    return (uint32_t)(at < 0 ? half - 1 - bin : half + bin);
}

/* The keys of first bin `bin`. */
static __host__ __device__ __forceinline__ uint32_t first_bin_begin(uint32_t bin) {
    const int32_t half = BINS / 2, at = (int32_t)bin;
    if (at == 0)
        return KEY_NONE + 1;
    if (at == half)
        return 0x80000000u;
    return (uint32_t)(BIN_PLUS + (at < half ? at - half - BIN_SMALL : at - half + BIN_SMALL)) << BIN_SHIFT;
}
static __host__ __device__ __forceinline__ key_range first_bin_range(uint32_t bin) {
    return {first_bin_begin(bin), bin + 1 < BINS ? first_bin_begin(bin + 1) - 1 : KEY_LAST};
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

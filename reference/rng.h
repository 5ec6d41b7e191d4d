/* Data by counter: a value is a function of (seed, set, stream, row, index) alone, so that any part of any tensor can be made
 * again, in any order, by any thread. A key is worth one row; the functions of a key and an index vectorise.
 */
#ifndef KBENCH_RNG_H
#define KBENCH_RNG_H

#include <stdint.h>

/* Small helpers must vanish into the loops of functions that are compiled for several instruction sets. */
#define RNG_INLINE static inline __attribute__((always_inline))

/* Full avalanche of 64 bits (the finaliser of splitmix64). */
RNG_INLINE uint64_t rng_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* stream: which use of the randomness, a tensor's index or a number above all of those. */
RNG_INLINE uint64_t rng_key(uint64_t seed, uint32_t set, uint32_t stream, uint64_t row)
{
    uint64_t key = rng_mix64(seed + 0x9e3779b97f4a7c15u);
    key = rng_mix64(key ^ ((uint64_t)set << 32 | stream));
    return rng_mix64(key ^ row);
}

/* 32 random bits: two rounds of multiply and xorshift on 32-bit lanes, half of the key before each. */
RNG_INLINE uint32_t rng_bits(uint64_t key, uint32_t i)
{
    uint32_t x = (uint32_t)key + i * 0x9e3779b9u;
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x ^= (uint32_t)(key >> 32);
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

/* 0 .. n-1, n up to 2^32; the bias of at most n / 2^32 does not matter to test data. */
RNG_INLINE uint32_t rng_below(uint64_t key, uint32_t i, uint64_t n)
{
    return (uint32_t)(rng_bits(key, i) * n >> 32);
}

/* Nearly N(0, 1): the sum of the four bytes less its mean 510, over its standard deviation sqrt(4 (256^2 - 1) / 12) = 147.8.
 * 1021 distinct values within +-3.45: no outliers, and no logarithm in the way of the vectoriser. */
RNG_INLINE float rng_normal(uint64_t key, uint32_t i)
{
    uint32_t x = rng_bits(key, i);
    x = (x & 0x00ff00ffu) + (x >> 8 & 0x00ff00ffu);
    x = (x + (x >> 16)) & 0xffffu;
    return (float)((int32_t)x - 510) * (1.0f / 147.8005f);
}

/* Where i goes under the key's permutation of 0 .. n-1 (1 <= n < 2^31), in O(1) time and space: a Feistel network over the next
 * power of four, walked on until it comes back below n, which takes under four steps on average. */
RNG_INLINE uint32_t rng_permute(uint64_t key, uint32_t n, uint32_t i)
{
    uint32_t half = 1;
    while ((uint64_t)1 << 2 * half < n) half++;
    uint32_t mask = ((uint32_t)1 << half) - 1;
    do {
        uint32_t left = i >> half, right = i & mask;
        for (uint32_t round = 0; round < 4; round++) {
            uint32_t next = left ^ (rng_bits(key, right << 2 | round) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

#endif

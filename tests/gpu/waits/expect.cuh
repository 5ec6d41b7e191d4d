/* What the threads of each style are to find, computed by the host. */
#ifndef KBENCH_WAITS_EXPECT_CUH
#define KBENCH_WAITS_EXPECT_CUH

#include <string.h>

#include "grid.cuh"
#include "product.cuh"
#include "stored.cuh"

/* Small whole numbers, as bf16: sums of their products are exact. */
static int number(int tile, int row, int column) {
    const unsigned x = ((unsigned)(tile * TILE_ROWS + row) * 64 + (unsigned)column) * 2654435761u;
    return (int)((x >> 20) % 7) - 3;
}
static uint32_t word_of(int tile, int i) {
    float low = (float)number(tile, i / 32, i % 32 * 2), high = (float)number(tile, i / 32, i % 32 * 2 + 1);
    uint32_t a, b;
    memcpy(&a, &low, 4);
    memcpy(&b, &high, 4);
    return a >> 16 | (b & 0xffff0000u);
}

/* What a thread is to find, of the words it leaves. Returns how many words the style leaves. */
typedef int expect(uint32_t *ret);

static int expect_tiles(uint32_t *ret) {
    for (int t = 0; t < READERS; t++) {
        ret[t] = 0;
        for (int i = 0; i < TILES * PIECES; i++) {
            const int at = wait_piece(t, i % PIECES) * 4;
            ret[t] = wait_fold(ret[t], word_of(i / PIECES, at), word_of(i / PIECES, at + 3));
        }
    }
    return READERS;
}

/* c of tile * tile^T, tiles from `first` on: thread t of warp w has rows 16 w + t / 4 and that + 8, columns 8 n + t % 4 * 2 and
 * that + 1. */
static int expect_products(uint32_t *ret, int first, int tiles, int times) {
    for (int at = 0; at < WORDS; at++) {
        const int t = at / 32, n = at % 32, row = t / 32 * 16 + t % 32 / 4 + n % 4 / 2 * 8;
        const int column = n / 4 * 8 + t % 4 * 2 + n % 2;
        int       sum = 0;
        for (int i = first; i < first + tiles; i++)
            for (int k = 0; k < 64; k++)
                sum += number(i, row, k) * number(i, column, k);
        const float all = (float)(sum * times);
        memcpy(ret + at, &all, 4);
    }
    return WORDS;
}
static int expect_publish(uint32_t *ret) { return expect_products(ret, 0, TILES, 1); }
static int expect_sums(uint32_t *ret) { return expect_products(ret, 0, 1, PRODUCTS); }
static int expect_stages(uint32_t *ret) { return expect_products(ret, 0, TILES, PRODUCTS); }

/* Of rounds: each thread finds the word of partner(t). */
static int expect_rounds(uint32_t *ret, int threads, int (*partner)(int)) {
    for (int t = 0; t < threads; t++) {
        ret[t] = 0;
        for (int i = 0; i < TILES; i++)
            ret[t] = wait_fold(ret[t], word_of(i, partner(t) * 4), 0);
    }
    return threads;
}
static int of_next_warp(int t) { return wait_piece(t, 0); }
static int of_other_half(int t) { return t ^ 16; }
static int of_other_block(int t) { return t ^ READERS; }
static int expect_block(uint32_t *ret) { return expect_rounds(ret, READERS, of_next_warp); }
static int expect_warp(uint32_t *ret) { return expect_rounds(ret, WARP, of_other_half); }
static int expect_cluster(uint32_t *ret) { return expect_rounds(ret, 2 * READERS, of_other_block); }

static int expect_parts(uint32_t *ret) {
    for (int t = 0; t < READERS; t++) {
        ret[t] = 0;
        for (int i = 0; i < GRID_BLOCKS; i++)
            ret[t] = wait_fold(ret[t], word_of((i * READERS + t) / TILE_PIECES, (i * READERS + t) % TILE_PIECES * 4), 0);
    }
    return READERS;
}

/* Of each block of two: its own tile, read by threads or left by products, then a word of the other's. */
static int expect_merge(uint32_t *ret, bool product) {
    static uint32_t sums[WORDS];
    for (int t = 0; t < 2 * READERS; t++) {
        const int rank = t / READERS, thread = t % READERS;
        ret[t] = 0;
        for (int k = 0; k < PIECES && !product; k++) {
            const int at = wait_piece(thread, k) * 4;
            ret[t] = wait_fold(ret[t], word_of(rank, at), word_of(rank, at + 3));
        }
        if (product && thread == 0)
            expect_products(sums, rank, 1, 1);
        if (product)
            ret[t] = wait_fold(sums[thread * 32], sums[thread * 32 + 1], sums[thread * 32 + 31]);
        ret[t] = wait_fold(ret[t], word_of(2 + (rank ^ 1), wait_piece(thread, 0) * 4), 0);
    }
    return 2 * READERS;
}
static int expect_merge_read(uint32_t *ret) { return expect_merge(ret, false); }
static int expect_merge_product(uint32_t *ret) { return expect_merge(ret, true); }

static int expect_stored(uint32_t *ret) {
    for (int t = 0; t < READERS; t++) {
        ret[t] = 0;
        for (int i = t; i < STORED_TILES * TILE_PIECES * 4; i += STORED_STEP)
            ret[t] = wait_fold(ret[t], word_of(i / (TILE_PIECES * 4), i % (TILE_PIECES * 4)), 0);
    }
    return READERS;
}

/* The phases that have ended. */
static int expect_phases(uint32_t *ret) {
    for (int t = 0; t < READERS; t++) {
        ret[t] = 0;
        for (int i = 0; i < TILES; i++)
            ret[t] = wait_fold(ret[t], 1, 0);
    }
    return READERS;
}

#endif

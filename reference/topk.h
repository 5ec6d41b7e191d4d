/* topk: the k highest of each row of scores, as physical slots.
 *
 * For request b the candidates are its entries e < length[b] with a score above -inf; NaN, of either sign and any payload,
 * ranks as -inf and is never selected, +inf is the highest score, -0 and +0 tie.
 *   slot[b, 0 .. n - 1]  = page_table[b, e / 64] * 64 + e % 64  of the n highest candidates e, in any order; n = k, or all of them
 *   slot[b, n .. k - 1]  = -1
 * Where scores tie at the border any of the tied will do; values are compared, not indices, and exactly. The order must not
 * vary from launch to launch. Source: the selection behind DeepSeek-V4's indexer, as SGLang's topk_transform serves it.
 *
 * n and max_n count entries. n, the live length, stands in device data alone: length[b] = n; ragged=1: anything in -1 .. n,
 * where a length below 0 means none, like 0. max_n sets the width of score and page_table, that is all that it may cost:
 * width = 64 * ceil(max_n / 64). Past a length score holds high values, +inf among them, and page_table 0 or numbers below
 * -1: neither must be looked at. Slots are anywhere in 64 .. 2^31 - 1 and all distinct; there is no cache behind them.
 *
 *   scores=random     N(0, 1)
 *   scores=plateau    7 of 8 entries score exactly 0.5, k / 2 or so lie above it, the rest below
 *   scores=special    N(0, 1) with NaN of both signs, -inf, +inf, -0, subnormals and the largest floats among them; every third
 *                     row is mostly NaN and -inf
 *   scores=negative   all below 0
 *   scores=close      1 + i * 2^-23, i < 4096: all alike in their upper 12 bits
 *   scores=rising     each at least as high as the one before: the best come last
 *
 * In every tensor the last dimension is one row: strides of struct arg step over what stands before the last comma.
 */
#ifndef KBENCH_TOPK_H
#define KBENCH_TOPK_H

#include "op.h"

enum topk_dim { TOPK_BATCH, TOPK_N, TOPK_MAX_N, TOPK_K, TOPK_SCORES, TOPK_RAGGED };

enum topk_tensor {
    TOPK_SCORE,       /* f32 [batch, width]        a row is one request, here and below */
    TOPK_PAGE_TABLE,  /* i32 [batch, width / 64]   below 16 bytes: dense */
    TOPK_LENGTH,      /* i32 [batch]               entries, maybe below 0; 4 bytes: dense */
    TOPK_SLOT,        /* i32 [batch, k]            below 16 bytes: dense */
};

enum topk_scores {
    TOPK_RANDOM, TOPK_PLATEAU, TOPK_SPECIAL, TOPK_NEGATIVE, TOPK_CLOSE, TOPK_RISING,
};

enum { TOPK_PAGE = 64 };

static inline int64_t topk_width(int64_t max_n) { return (max_n + TOPK_PAGE - 1) / TOPK_PAGE * TOPK_PAGE; }

/* layout_hash() of dims and tensors. */
#define topk_layout 0xffed4c23004802f9ull

#endif

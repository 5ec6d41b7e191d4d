/* index_select: score and select in one: the k entries of each request with the highest scores of indexer, as physical slots.
 *
 * Inputs are those of indexer (see indexer.h), at the same tensor indices; dims k and data follow its dims. For request b let
 * the scores be those of indexer over its live entries:
 *   slot[b, 0 .. n - 1]  = page_table[b, e / 64] * 64 + e % 64  of the n entries e that score highest; n = min(k, length[b])
 *   slot[b, n .. k - 1]  = -1                                   length 0 or below: all of them
 * The n come in any order. Where scores tie at the border any of the tied will do. The order must not vary from launch to launch.
 *
 *   data=random    as in indexer. A slot is right when its true score is at least the n-th highest less 4 times the rms error of
 *                  a score that is computed from bf16 in fp32. A product of two bf16 is exact there; a sum of m terms, rounded or
 *                  cut to 24 bits at each of m steps, is off by about 2^-23 sqrt(m) times its size. So, with 128 dims and then
 *                  64 heads, error^2 = 2^-46 (128 + 64) sum_h w_h^2 mean_e (q_h . k_e)^2, the mean over the n entries
 *   data=integer   q, k and w are small integers: every partial sum is exact in fp32 (below 2^17), and many scores tie. The scores
 *                  selected, sorted, must be exactly the highest k
 *   data=plateau   likewise, but 15 of 16 entries carry one of 4 keys: ties by the thousand, more than a buffer of candidates
 *                  holds
 *
 * Slots fit an int32. k may be anything: a kernel that offers some says so in `unfit`.
 */
#ifndef KBENCH_INDEX_SELECT_H
#define KBENCH_INDEX_SELECT_H

#include "indexer.h"

/* After the dims of enum indexer_dim. */
enum index_select_dim { INDEX_SELECT_K = INDEXER_RAGGED + 1, INDEX_SELECT_DATA };

/* After INDEXER_LENGTH. */
enum index_select_tensor {
    INDEX_SELECT_SLOT = INDEXER_LENGTH + 1,   /* i32 [batch, k]   a row is one request; below 16 bytes: dense */
};

enum index_select_data { INDEX_SELECT_RANDOM, INDEX_SELECT_INTEGER, INDEX_SELECT_PLATEAU };

/* layout_hash() of dims and tensors. */
#define index_select_layout 0xa652e99b716294aull

#endif

/* indexer_fp8: indexer (see indexer.h: same formula, dims, tables, lengths and promises) over keys in the 132-byte format that is
 * served: 128 e4m3 and one fp32 scale an entry, planar within a page of 64.
 *
 *   logits[b, e] = scale_e * sum_h w[b, h] * max(0, q[b, h] . code_e)
 *
 * q is e4m3 as well; its scale, one a (request, head), has been folded into w. scale_e is positive and any float (no power of
 * two), so that it may be applied before the relu or after the sum. Tensors have the indices of enum indexer_tensor; only q
 * and keys differ:
 *
 *   INDEXER_Q      e4m3  [batch, 64, 128]          a row is one head, 128 bytes
 *   INDEXER_KEYS   BYTES [pages, 8448]             dense: the stride to a page is INDEXER_FP8_PAGE_BYTES, whatever struct arg says
 *
 *   page p begins at byte  p * 8448                int64: past 2^32
 *   entry o of it has its codes at   o * 128       128 e4m3
 *                 and its scale at   8192 + o * 4  fp32, so that the 64 scales of a page are one row of 256 bytes
 *
 * Pages begin at multiples of 128 bytes of the tensor; the tensor's own address is a multiple of 16. |q . code| stays below
 * 2^25. Codes are up to 448, some are subnormal. Codes of an entry that is not live are NaN (0xff); so are the first or last
 * 32 scales of a page when none of their entries is live.
 *
 * A row of keys, for the harness, is a piece of 128 bytes: the codes of an entry, or the scales of 32.
 * Source: SGLang's indexer cache and DeepGEMM's paged logits.
 */
#ifndef KBENCH_INDEXER_FP8_H
#define KBENCH_INDEXER_FP8_H

#include "indexer.h"

enum {
    INDEXER_FP8_PIECE = 128,                                      /* bytes of a row of keys */
    INDEXER_FP8_SCALES = INDEXER_PAGE * INDEXER_D,                /* byte of a page where its scales begin */
    INDEXER_FP8_PAGE_BYTES = INDEXER_FP8_SCALES + INDEXER_PAGE * 4,
};

/* layout_hash(): the dims of indexer, its tensors but q E4M3 and keys BYTES. */
#define indexer_fp8_layout 0xe9d0df279597397cull

#endif

/* indexer_gemm: the product at the heart of the indexer, on keys that lie dense: what its arithmetic costs in each format.
 *
 * For request b and entry t of it, T = ctx / 4 (rounded down) entries a request, all of them live:
 *   logits[b, t] = sum_h w[b, h] * max(0, sum_d q[b, h, d] * k[b, t, d])           64 heads of 128 dims
 * w is what the model makes of it, the factor 128^-0.5 * 64^-0.5 included, and may be negative. No paging, no mask, no scale of a
 * key: those are the ops indexer and indexer_fp8.
 *
 * q and k come twice, as fp32 and as bf16: the same values, which bf16 holds exactly, so that every kernel computes the same
 * logits. A kernel's `reads` says which it reads; the others hold NaN for it. w is fp32 for all.
 *
 * A row of each tensor is all of one request: keys of a request lie without gaps. Source: the score of DeepSeek-V4's indexer.
 */
#ifndef KBENCH_INDEXER_GEMM_H
#define KBENCH_INDEXER_GEMM_H

#include "op.h"

enum indexer_gemm_dim { INDEXER_GEMM_BATCH, INDEXER_GEMM_CTX };

enum indexer_gemm_tensor {
    INDEXER_GEMM_Q32,     /* f32  [batch, 64, 128] */
    INDEXER_GEMM_Q16,     /* bf16 [batch, 64, 128] */
    INDEXER_GEMM_K32,     /* f32  [batch, T, 128] */
    INDEXER_GEMM_K16,     /* bf16 [batch, T, 128] */
    INDEXER_GEMM_W,       /* f32  [batch, 64] */
    INDEXER_GEMM_LOGITS,  /* f32  [batch, T] */
};

enum { INDEXER_GEMM_HEADS = 64, INDEXER_GEMM_D = 128, INDEXER_GEMM_RATIO = 4 };

/* Entries of a request. */
static inline int64_t indexer_gemm_entries(const struct problem *p) { return p->dim[INDEXER_GEMM_CTX] / INDEXER_GEMM_RATIO; }

/* For kernel.reads. */
enum {
    INDEXER_GEMM_READS_F32 = 1 << INDEXER_GEMM_Q32 | 1 << INDEXER_GEMM_K32 | 1 << INDEXER_GEMM_W,
    INDEXER_GEMM_READS_BF16 = 1 << INDEXER_GEMM_Q16 | 1 << INDEXER_GEMM_K16 | 1 << INDEXER_GEMM_W,
};

/* layout_hash() of the dims and tensors above. */
#define indexer_gemm_layout 0xfdbf6d79a0ac3614ull

#endif

/* indexer: paged scoring of compressed keys, the step that finds what sparse attention looks at: 64 heads of 128 dims, bf16.
 *
 * For request b and each live entry e < length[b]:
 *   logits[b, e] = sum_h w[b, h] * max(0, q[b, h] . k_e)
 * w comes scaled, by 128^-0.5 * 64^-0.5 among others, and may be negative: a score may be below 0, so what is masked is -inf,
 * not 0. Elements of logits at or past length[b] are left open: the check skips them, or wants -inf of a kernel that promises
 * CLEAN. Source: DeepSeek-V4's published inference code; pages and widths as SGLang serves them.
 *
 * ctx and max_ctx count tokens, all else counts entries, one for each 4 tokens. ctx, the live context, stands in device data
 * alone: length[b] = ctx / 4; ragged=1: anything in -1 .. ctx / 4, where a length below 0 means none, like 0. max_ctx is what
 * the server was started for and sets the widths, that is all that it may cost: width = 64 * ceil((max_ctx + 4) / 256)
 * entries, 262,208 at 1M.
 *
 * A page holds 64 entries. Entry e of request b is the row  page_table[b, e / 64] * 64 + e % 64  of keys; int64: its byte may
 * lie past 2^32. Pages of a request are shuffled over the whole cache and page 0 is never used. Rows of keys that are not a
 * live entry hold NaN: page 0, the rest of a last page, all that other input sets own. What page_table holds from page
 * ceil(length / 64) on is a label:
 *   tail=page0    0, a framework's default
 *   tail=unique   pages of this request's own, all distinct and within the cache, which holds batch * width entries for it
 *   tail=minus1   -1, no page
 * so that a kernel that reads past a length meets NaN, or nothing that it may read. Live page numbers are always in range.
 *
 * In every tensor the last dimension is one row: strides of struct arg step over what stands before the last comma. Each
 * fourth request has no w above 0: all its scores are 0 or less.
 */
#ifndef KBENCH_INDEXER_H
#define KBENCH_INDEXER_H

#include "op.h"

enum indexer_dim { INDEXER_BATCH, INDEXER_CTX, INDEXER_MAX_CTX, INDEXER_TAIL, INDEXER_RAGGED };

/* indexer_fp8 and index_select have the first five, at the same places. */
enum indexer_tensor {
    INDEXER_Q,           /* bf16 [batch, 64, 128]        a row is one head, 256 bytes: batch * 64 rows */
    INDEXER_W,           /* f32  [batch, 64]             a row is one request; so in page_table and length */
    INDEXER_KEYS,        /* bf16 [slots, 128]            a row is one entry, 256 bytes */
    INDEXER_PAGE_TABLE,  /* i32  [batch, width / 64] */
    INDEXER_LENGTH,      /* i32  [batch]                 entries, maybe below 0; 4 bytes: dense */
    INDEXER_LOGITS,      /* f32  [batch, width]          a row is one request */
};

enum indexer_tail { INDEXER_TAIL_PAGE0, INDEXER_TAIL_UNIQUE, INDEXER_TAIL_MINUS1 };

enum {
    INDEXER_HEADS = 64,
    INDEXER_D = 128,
    INDEXER_PAGE = 64,       /* entries a page */
    INDEXER_RATIO = 4,       /* tokens an entry */
    INDEXER_EXTRA = 4,       /* tokens that a server adds to its maximum */
};

/* Entries that a table and a row of logits have room for. */
static inline int64_t indexer_width(int64_t max_ctx)
{
    const int64_t tokens = INDEXER_PAGE * INDEXER_RATIO;
    return (max_ctx + INDEXER_EXTRA + tokens - 1) / tokens * INDEXER_PAGE;
}

/* layout_hash() of the dims and tensors above. */
#define indexer_layout 0xf83592c304d75b75ull

#endif

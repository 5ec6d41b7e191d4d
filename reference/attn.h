/* attn: sparse multi-query decode attention over a window cache and a compressed cache, bf16 rows, one query a request.
 *
 * K and V are the same 512-dim vector (multi-query: one KV head). For request b and head h, over the valid entries i of both
 * slot lists:  s_i = 512^-0.5 * q[b,h].kv_i ;  m = max(max_i s_i, sink[h]) ;
 *   out[b,h] = sum_i exp(s_i - m) kv_i / (sum_i exp(s_i - m) + exp(sink[h] - m))
 *   lse[b,h] = ln sum_i exp(s_i)                       natural log, without the sink
 * Without a valid entry out = 0 and lse = -inf. The sink is not scaled by 512^-0.5 and has no KV row.
 * Source: DeepSeek-V4's published inference code; layouts as served by FlashMLA (indices are physical slots, -1 is invalid).
 *
 * A slot is page * 64 + offset in its cache; pages of a request are shuffled over the whole cache and page 0 is never used.
 * length[b] = {entries of window_slot[b] that count, entries of topk_slot[b] that count}: a slot at or past it is undefined and
 * must not be looked at; a slot before it may be -1 (skip it). Rows of a cache that no valid slot names hold NaN.
 *
 * In every tensor the last dimension is one row: strides of struct arg step over what stands before the last comma. A slot list
 * of no entries (window = 0 or topk = 0) still has room for one, undefined, so that no row is empty.
 */
#ifndef KBENCH_ATTN_H
#define KBENCH_ATTN_H

#include "op.h"

enum attn_dim { ATTN_BATCH, ATTN_HEADS, ATTN_CTX, ATTN_WINDOW, ATTN_TOPK, ATTN_RATIO, ATTN_RAGGED };

enum attn_tensor {
    ATTN_Q,            /* bf16 [batch, heads, 512]     a row is one head: batch * heads rows */
    ATTN_WINDOW_KV,    /* bf16 [window slots, 512] */
    ATTN_TOPK_KV,      /* bf16 [compressed slots, 512] */
    ATTN_WINDOW_SLOT,  /* i32  [batch, window]         a row is one request, here and in the next two */
    ATTN_TOPK_SLOT,    /* i32  [batch, topk] */
    ATTN_LENGTH,       /* i32  [batch, 2]              8 bytes: dense */
    ATTN_SINK,         /* f32  [heads]                 one row; -inf: no sink */
    ATTN_OUT,          /* bf16 [batch, heads, 512]     a row is one head */
    ATTN_LSE,          /* f32  [batch, heads]          a row is one request */
};

enum { ATTN_D = 512, ATTN_PAGE = 64 };

/* layout_hash() of the dims and tensors above. */
#define attn_layout 0x94a966eaa863983full

#endif

/* attn_fp8: attn (see attn.h: same formula, same lists, same promises) over caches in the 584-byte format that is served:
 * 448 dims as e4m3 in 7 groups of 64 with a power-of-two scale each, 64 dims (the roped ones) as bf16.
 *
 * Dims and tensors have the indices of attn; two dims more say how many entries a page holds. Only the two caches differ: dtype
 * BYTES, pages of ATTN_FP8_DATA bytes an entry, then ATTN_FP8_SCALES bytes an entry, then padding to a multiple of 576:
 *
 *   page p of a cache with `page` entries a page begins at byte  p * attn_fp8_page_bytes(page)           int64: past 2^32
 *   entry o of it has its data at    o * 576                 448 e4m3, dims 0..447; then 64 bf16, dims 448..511
 *                 and its scales at  page * 576 + o * 8      7 ue8m0, byte g for dims 64 g .. 64 g + 63; the eighth is undefined
 *   slot = p * page + o                                      page 0 is never used
 *   dim d < 448 of the vector:  e4m3(d) * 2^(scale[d / 64] - 127)
 *
 *   page   data + scales    page bytes
 *     64    36,864 +   512      37,440
 *    256   147,456 + 2,048     149,760
 *      2     1,152 +    16       1,728
 *
 * Data begins at a multiple of 64 bytes of the tensor, scales at one of 8; the tensor's own address is a multiple of 16. A value is
 * exact in bf16 while its scale lies in 2^-117 .. 2^119. The NaNs of both formats (codes 0x7f and 0xff, scale 255) do not occur in
 * an entry that a list names; undefined bytes (padding, the eighth of the scales, entries without a slot) hold them.
 *
 * A row of a cache tensor, for the harness, is a piece of ATTN_FP8_PIECE bytes: an entry is 9 pieces, group after group and two of
 * rope, and 8 neighbours share a piece of scales, which is valid for all 8 when one is named. Rows are dense (stride 64).
 * Source: FlashMLA's quantised cache as SGLang and vLLM fill it. Served: window pages of 64 or 256, compressed ones of 64 (ratio 4)
 * or 2 (ratio 128).
 */
#ifndef KBENCH_ATTN_FP8_H
#define KBENCH_ATTN_FP8_H

#include "attn.h"

/* After the dims of enum attn_dim; tensors: enum attn_tensor. */
enum attn_fp8_dim { ATTN_FP8_WINDOW_PAGE = ATTN_RAGGED + 1, ATTN_FP8_TOPK_PAGE };

enum {
    ATTN_FP8_NOPE = 448,    /* dims in e4m3 */
    ATTN_FP8_GROUP = 64,    /* dims that share a scale */
    ATTN_FP8_DATA = 576,    /* bytes an entry: 448 + 64 * 2 */
    ATTN_FP8_SCALES = 8,    /* bytes an entry: 7 and one undefined */
    ATTN_FP8_PIECE = 64,    /* bytes of a row of a cache tensor */
};

/* Bytes from page to page. */
static inline int64_t attn_fp8_page_bytes(int64_t page)
{
    return (page * (ATTN_FP8_DATA + ATTN_FP8_SCALES) + ATTN_FP8_DATA - 1) / ATTN_FP8_DATA * ATTN_FP8_DATA;
}

/* layout_hash() of dims and tensors: those of attn, window_page and topk_page behind its dims, the caches BYTES. */
#define attn_fp8_layout 0xc1bacca4468b28afull

#endif

/* What attn and attn_fp8 have in common beside the formula: dims, lists, lengths, everything but the bytes of the caches. Which
 * entries a request looks at does not depend on their format.
 */
#ifndef KBENCH_ATTN_INPUTS_H
#define KBENCH_ATTN_INPUTS_H

#include "attn.h"

/* The loops that carry the time are compiled for AVX2 too and chosen when the program starts. */
#if defined __x86_64__ && defined __GNUC__
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

struct attn_paging {
    int32_t page[2];       /* entries a page: window, compressed */
    int32_t neighbours;    /* adjacent compressed entries share memory (scales): sets in one copy never meet there */
};

/* Rows and bytes a row of the tensors. */
int64_t attn_one(const struct problem *);
int64_t attn_batches(const struct problem *);
int64_t attn_batch_heads(const struct problem *);
int64_t attn_vector_bytes(const struct problem *);
int64_t attn_length_bytes(const struct problem *);
int64_t attn_heads_f32_bytes(const struct problem *);
int64_t attn_window_bytes(const struct problem *);
int64_t attn_topk_bytes(const struct problem *);
int64_t attn_slots(const struct problem *, struct attn_paging, bool window);   /* of a cache, page 0 included */
int64_t attn_topk_share(const struct problem *, struct attn_paging);           /* as tensor.share */

const char *attn_refused(const struct problem *, struct attn_paging);          /* as op.invalid */

/* op.fill for all inputs but the caches. */
void attn_fill_inputs(const struct problem *, struct attn_paging, int t, uint32_t set, int64_t row, int64_t rows, void *host);
/* 512 values nearly N(0, scale^2). */
void attn_fill_vector(uint64_t key, float scale, uint16_t *ret_bf16);

/* The list of request b: its slots and how many of them count. */
struct attn_list {
    const int32_t *slot;
    int32_t        length;
};
struct attn_list attn_list_of(const struct problem *, void *const *t, bool window, int64_t b);

/* Distinct slots that the lists name, ascending, and how many. With NULL an upper bound of it, as tensor.touched. */
int64_t attn_named(const struct problem *, void *const *t, bool window, int64_t *ret_slots);

double attn_flop(const struct problem *, void *const *t);
double attn_bytes_of(const struct problem *, void *const *t, uint64_t reads, int64_t entry_bytes);
void attn_item_rows(const struct problem *, int t, int64_t item, int64_t *ret_row, int64_t *ret_rows);

void *attn_memory(size_t bytes);   /* to be freed */

/* op.dim and op.tensor. out: 3e-3. Weights and a result in bf16, each off by up to 2^-8, leave most rows near 2e-3; where few
 * entries share the weight, one row in some thousand passes 3e-3 for that alone, so that a kernel has to keep more of its
 * weights there. abs lets no more through than the rounding of an exact zero. lse: the bound of an element is 8 abs, that is
 * 1e-3; rel_l2 is what sums of 512 floats lose with logits in the hundreds. */
#define ATTN_DIMS                                                                                                              \
    [ATTN_BATCH] = {"batch", "requests", 16, 1, 4096, .ideal = 1},                                                             \
    [ATTN_HEADS] = {"heads", "heads", 64, 8, 128, .ideal = 1},                                                                 \
    [ATTN_CTX] = {"ctx", "tokens", 8192, 0, 1 << 20, .live = true, .ideal = 0},                                                \
    [ATTN_WINDOW] = {"window", "entries", 128, 0, 4096, .ideal = 1},                                                           \
    [ATTN_TOPK] = {"topk", "entries", 512, 0, 4096, .ideal = 1},                                                               \
    [ATTN_RATIO] = {"ratio", "tokens/entry", 4, 1, 128, .ideal = 0},                                                           \
    [ATTN_RAGGED] = {"ragged", "0|1", 0, 0, 1, .label = true}
#define ATTN_TENSORS_BUT_CACHES                                                                                                \
    [ATTN_Q] = {"q", "[batch, heads, 512]", BF16, IN, .rows = attn_batch_heads, .row_bytes = attn_vector_bytes},               \
    [ATTN_WINDOW_SLOT] = {"window_slot", "[batch, window]", I32, IN, .rows = attn_batches, .row_bytes = attn_window_bytes},    \
    [ATTN_TOPK_SLOT] = {"topk_slot", "[batch, topk]", I32, IN, .rows = attn_batches, .row_bytes = attn_topk_bytes},            \
    [ATTN_LENGTH] = {"length", "[batch, 2]", I32, IN, .rows = attn_batches, .row_bytes = attn_length_bytes},                   \
    [ATTN_SINK] = {"sink", "[heads]", F32, IN, .rows = attn_one, .row_bytes = attn_heads_f32_bytes},                           \
    [ATTN_OUT] = {"out", "[batch, heads, 512]", BF16, OUT, {3e-3, 1e-6}, .rows = attn_batch_heads,                             \
                  .row_bytes = attn_vector_bytes},                                                                             \
    [ATTN_LSE] = {"lse", "[batch, heads]", F32, OUT, {1e-6, 1.25e-4}, .rows = attn_batches,                                    \
                  .row_bytes = attn_heads_f32_bytes}

#endif

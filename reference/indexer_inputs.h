/* What indexer, indexer_fp8 and index_select have in common beside the formula: dims, tables, lengths, weights, where entries lie.
 * topk takes its lengths from here.
 */
#ifndef KBENCH_INDEXER_INPUTS_H
#define KBENCH_INDEXER_INPUTS_H

#include "indexer.h"

/* The loops that carry the time are compiled for several instruction sets and chosen when the program starts. */
#if defined __x86_64__ && defined __GNUC__
#define WIDE __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define WIDE
#endif

/* Rows and bytes a row of the tensors. */
int64_t indexer_batches(const struct problem *);
int64_t indexer_batch_heads(const struct problem *);
int64_t indexer_vector_bytes(const struct problem *);   /* bf16 */
int64_t indexer_w_bytes(const struct problem *);
int64_t indexer_table_bytes(const struct problem *);
int64_t indexer_length_bytes(const struct problem *);
int64_t indexer_logits_bytes(const struct problem *);
int64_t indexer_slots(const struct problem *);          /* of the cache, page 0 included */

/* As tensor.share of keys. The copy of a set, and the key of everything in it: set / share. */
int64_t indexer_share(const struct problem *);
uint32_t indexer_copy(const struct problem *, uint32_t set);

const char *indexer_refused(const struct problem *);    /* as op.invalid */

/* Live entries of row b of batch rows that have room for `most`, in -1 .. most. Not ragged: most. In sets for checks always below
 * most, so that they differ from all other sets. */
int32_t indexer_live_length(uint64_t seed, uint32_t set, int64_t batch, int64_t b, int64_t most, bool ragged);

/* Whether request b has no weight above 0. */
bool indexer_all_negative(uint32_t set, int64_t b);

/* op.fill of w, page_table and length. */
void indexer_fill_inputs(const struct problem *, int t, uint32_t set, int64_t row, int64_t rows, void *host);
/* n values nearly N(0, 1). */
void indexer_fill_bf16(uint64_t key, int64_t n, uint16_t *ret);

/* length[b], but at least 0, and the row of the table. */
struct indexer_live {
    int64_t        length;
    const int32_t *page;
};
struct indexer_live indexer_live_of(const struct problem *, void *const *t, int64_t b);

static inline int64_t indexer_slot(const int32_t *page, int64_t entry)
{
    return (int64_t)page[entry / INDEXER_PAGE] * INDEXER_PAGE + entry % INDEXER_PAGE;
}

/* A page of which the first `live` entries are. */
struct indexer_page {
    int64_t page;
    int32_t live;
};

/* Distinct pages with live entries, ascending, and how many. With NULL an upper bound of it. */
int64_t indexer_pages(const struct problem *, void *const *t, struct indexer_page *ret);
/* As tensor.touched of keys: slots of live entries. */
int64_t indexer_touched(const struct problem *, void *const *t, int64_t *ret_slots);

double indexer_flop(const struct problem *, void *const *t);
/* Bytes of the inputs in `reads`; 0: all. */
double indexer_input_bytes(const struct problem *, void *const *t, uint64_t reads, int64_t entry_bytes);
void indexer_item_rows(const struct problem *, int t, int64_t item, int64_t *ret_row, int64_t *ret_rows);

void *indexer_memory(size_t bytes);   /* to be freed */

extern const char *const indexer_tail_names[];

#define INDEXER_DIMS                                                                                                           \
    [INDEXER_BATCH] = {"batch", "requests", 16, 1, 4096, .ideal = 1},                                                          \
    [INDEXER_CTX] = {"ctx", "tokens", 8192, 0, 1 << 22, .live = true, .ideal = 1},                                             \
    [INDEXER_MAX_CTX] = {"max_ctx", "tokens", 1 << 17, 0, 1 << 22, .ideal = 0},                                                \
    [INDEXER_TAIL] = {"tail", "past the length", INDEXER_TAIL_PAGE0, 0, INDEXER_TAIL_MINUS1, .label = true,                    \
                      .names = indexer_tail_names},                                                                            \
    [INDEXER_RAGGED] = {"ragged", "0|1", 0, 0, 1, .label = true}
#define INDEXER_INPUTS_BUT_Q_AND_KEYS                                                                                          \
    [INDEXER_W] = {"w", "[batch, 64]", F32, IN, .rows = indexer_batches, .row_bytes = indexer_w_bytes},                        \
    [INDEXER_PAGE_TABLE] = {"page_table", "[batch, width / 64]", I32, IN, .rows = indexer_batches,                             \
                            .row_bytes = indexer_table_bytes},                                                                 \
    [INDEXER_LENGTH] = {"length", "[batch]", I32, IN, .rows = indexer_batches, .row_bytes = indexer_length_bytes}
#define INDEXER_BF16_INPUTS                                                                                                    \
    [INDEXER_Q] = {"q", "[batch, 64, 128]", BF16, IN, .rows = indexer_batch_heads, .row_bytes = indexer_vector_bytes},         \
    [INDEXER_KEYS] = {"keys", "[slots, 128]", BF16, IN, .rows = indexer_slots, .row_bytes = indexer_vector_bytes,              \
                      .touched = indexer_touched, .share = indexer_share}

#endif

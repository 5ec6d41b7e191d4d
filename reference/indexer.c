/* indexer: keys of 128 bf16. What it computes stands in indexer.h. */
#include "indexer.h"

#include "indexer_formula.h"
#include "indexer_inputs.h"
#include "rng.h"

enum { D = INDEXER_D };

static void indexer_fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t rows, void *host)
{
    if (t != INDEXER_Q && t != INDEXER_KEYS) {
        indexer_fill_inputs(p, t, set, row, rows, host);
        return;
    }
    uint32_t copy = t == INDEXER_KEYS ? indexer_copy(p, set) : set;
    for (int64_t i = 0; i < rows; i++)
        indexer_fill_bf16(rng_key(p->seed, copy, (uint32_t)t, (uint64_t)(row + i)), D, (uint16_t *)host + i * D);
}

static void indexer_reference(const struct problem *p, void *const *t, int64_t item, int64_t n)
{
    indexer_formula(p, t, item, n, &indexer_bf16);
}

/* Of the logits those that are not left open: a float for each entry. */
static double indexer_bytes(const struct problem *p, void *const *t, uint64_t reads)
{
    return indexer_input_bytes(p, t, reads, D * 2) + indexer_input_bytes(p, t, 1 << INDEXER_KEYS, 4);
}

const struct op op_indexer = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "indexer",
    .note = "paged scoring of compressed keys for sparse attention, 64 heads of 128, bf16",
    .dim = {INDEXER_DIMS},
    .tensor = {
        INDEXER_INPUTS_BUT_Q_AND_KEYS,
        INDEXER_BF16_INPUTS,
        /* Sums of 128 and then 64 products in fp32 leave 1e-6; intermediate results in bf16 would leave 1e-3. */
        [INDEXER_LOGITS] = {"logits", "[batch, width]", F32, OUT, {2e-4, 1e-6}, .rows = indexer_batches,
                            .row_bytes = indexer_logits_bytes},
    },
    .invalid = indexer_refused,
    .fill = indexer_fill,
    .items = indexer_batches,
    .reference = indexer_reference,
    .item_rows = indexer_item_rows,
    .flop = indexer_flop,
    .bytes = indexer_bytes,
};

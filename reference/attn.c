/* attn: caches of bf16 rows. What it computes stands in attn.h. */
#include "attn.h"

#include "attn_formula.h"
#include "attn_inputs.h"
#include "rng.h"

enum { D = ATTN_D };

static const struct attn_paging paging = {{ATTN_PAGE, ATTN_PAGE}, .neighbours = 1};

static int64_t window_rows(const struct problem *p) { return attn_slots(p, paging, true); }
static int64_t topk_rows(const struct problem *p) { return attn_slots(p, paging, false); }
static int64_t topk_share(const struct problem *p) { return attn_topk_share(p, paging); }
static const char *attn_invalid(const struct problem *p) { return attn_refused(p, paging); }

static int64_t window_touched(const struct problem *p, void *const *t, int64_t *ret) { return attn_named(p, t, true, ret); }
static int64_t topk_touched(const struct problem *p, void *const *t, int64_t *ret) { return attn_named(p, t, false, ret); }

static void attn_fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t rows, void *host)
{
    if (t != ATTN_WINDOW_KV && t != ATTN_TOPK_KV) {
        attn_fill_inputs(p, paging, t, set, row, rows, host);
        return;
    }
    uint32_t copy = t == ATTN_TOPK_KV ? set / (uint32_t)topk_share(p) : set;
    for (int64_t i = 0; i < rows; i++)
        attn_fill_vector(rng_key(p->seed, copy, (uint32_t)t, (uint64_t)(row + i)), 1, (uint16_t *)host + i * D);
}

static void widen(const struct problem *p, void *const *t, bool window, int64_t slot, double *ret)
{
    (void)p;
    attn_widen_bf16((const uint16_t *)t[window ? ATTN_WINDOW_KV : ATTN_TOPK_KV] + slot * D, D, ret);
}

static void attn_reference(const struct problem *p, void *const *t, int64_t item, int64_t n) { attn_formula(p, t, item, n, widen); }

static double attn_bytes(const struct problem *p, void *const *t, uint64_t reads) { return attn_bytes_of(p, t, reads, D * 2); }

const struct op op_attn = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "attn",
    .note = "sparse multi-query decode attention over window and compressed cache, bf16",
    .dim = {ATTN_DIMS},
    .tensor = {
        ATTN_TENSORS_BUT_CACHES,
        [ATTN_WINDOW_KV] = {"window_kv", "[window slots, 512]", BF16, IN, .rows = window_rows, .row_bytes = attn_vector_bytes,
                            .touched = window_touched},
        [ATTN_TOPK_KV] = {"topk_kv", "[compressed slots, 512]", BF16, IN, .rows = topk_rows, .row_bytes = attn_vector_bytes,
                          .touched = topk_touched, .share = topk_share},
    },
    .invalid = attn_invalid,
    .fill = attn_fill,
    .items = attn_batches,
    .reference = attn_reference,
    .item_rows = attn_item_rows,
    .flop = attn_flop,
    .bytes = attn_bytes,
};

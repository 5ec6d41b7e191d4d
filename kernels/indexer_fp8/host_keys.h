/* Queries and keys of indexer_fp8 for host kernels, under the names of indexer/host_keys.h: converted to bf16, which holds every
 * e4m3, so that nothing is lost. */
#ifndef KBENCH_INDEXER_HOST_KEYS_H
#define KBENCH_INDEXER_HOST_KEYS_H

#include "attn_fp8/host_rows.h"
#include "host.h"
#include "indexer_fp8.h"
#include "kernel.h"

/* One page of keys. */
struct keys {
    const uint8_t *code;    /* 64 entries of 128 e4m3 */
    const float   *scale;   /* [64] */
};

static inline struct keys keys_of(const struct call *c, int64_t page)
{
    const char *base = (const char *)c->t[INDEXER_KEYS].p + page * INDEXER_FP8_PAGE_BYTES;
    return (struct keys){(const uint8_t *)base, (const float *)(base + INDEXER_FP8_SCALES)};
}

static inline void keys_prefetch(struct keys keys, int64_t entry) { host_prefetch(keys.code + entry * INDEXER_D, INDEXER_D); }

HOST_CLONES static void codes_bf16(const uint8_t *code, int64_t n, uint16_t *ret)
{
    for (int64_t i = 0; i < n; i++) ret[i] = fp8_bf16(code[i], 127);
}

/* Entries as rows of 128 bf16, converted into `spare`, [entries][128]. */
static inline const uint16_t *keys_bf16(struct keys keys, int64_t entries, uint16_t *spare, int64_t *ret_stride)
{
    codes_bf16(keys.code, entries * INDEXER_D, spare);
    *ret_stride = INDEXER_D * 2;
    return spare;
}

/* What the scores of a page's entries are to be multiplied by. */
static inline const float *keys_scales(struct keys keys) { return keys.scale; }

/* Head `row` of all requests' as 128 bf16. */
static inline const uint16_t *query_bf16(const struct call *c, int64_t row, uint16_t *spare)
{
    codes_bf16((const uint8_t *)c->t[INDEXER_Q].p + row * c->t[INDEXER_Q].stride, INDEXER_D, spare);
    return spare;
}

#endif

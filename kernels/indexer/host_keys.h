/* Queries and keys of indexer and index_select for host kernels: bf16 where they lie. indexer_fp8/host_keys.h offers the same names
 * for its format. */
#ifndef KBENCH_INDEXER_HOST_KEYS_H
#define KBENCH_INDEXER_HOST_KEYS_H

#include "host.h"
#include "indexer.h"
#include "kernel.h"

/* One page of keys. */
struct keys {
    const char *row;      /* the first of 64 entries, 128 bf16 each */
    int64_t     stride;   /* bytes from entry to entry */
};

static inline struct keys keys_of(const struct call *c, int64_t page)
{
    const struct arg *keys = &c->t[INDEXER_KEYS];
    return (struct keys){(const char *)keys->p + page * INDEXER_PAGE * keys->stride, keys->stride};
}

static inline void keys_prefetch(struct keys keys, int64_t entry) { host_prefetch(keys.row + entry * keys.stride, INDEXER_D * 2); }

/* Entries as rows of 128 bf16, where they lie; other formats convert them into `spare`, [entries][128]. */
static inline const uint16_t *keys_bf16(struct keys keys, int64_t entries, uint16_t *spare, int64_t *ret_stride)
{
    (void)entries, (void)spare;
    *ret_stride = keys.stride;
    return (const uint16_t *)keys.row;
}

/* What the scores of a page's entries are to be multiplied by; NULL: nothing. */
static inline const float *keys_scales(struct keys keys) { return (void)keys, NULL; }

/* Head `row` of all requests' as 128 bf16. */
static inline const uint16_t *query_bf16(const struct call *c, int64_t row, uint16_t *spare)
{
    (void)spare;
    return (const uint16_t *)((const char *)c->t[INDEXER_Q].p + row * c->t[INDEXER_Q].stride);
}

#endif

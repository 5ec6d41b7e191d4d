/* Entries of attn's caches for host kernels: rows of 512 bf16. attn_fp8/host_rows.h offers the same names for its format. */
#ifndef KBENCH_HOST_ROWS_H
#define KBENCH_HOST_ROWS_H

#include "attn/host_lists.h"
#include "host.h"

struct caches {
    const char *base[2];     /* window, topk */
    int64_t     stride[2];
};

/* Where one entry lies. */
struct row {
    const uint32_t *pairs;   /* [256] of two bf16 */
};

static inline struct caches caches_of(const struct call *c)
{
    const struct arg *kv = &c->t[ATTN_WINDOW_KV];
    return (struct caches){{kv[0].p, kv[1].p}, {kv[0].stride, kv[1].stride}};
}

/* Up to `most` further entries of the lists; 0 at the end. */
static inline int32_t rows_next(const struct caches *caches, struct walk *w, int32_t most, struct row *ret)
{
    int32_t n = 0, list;
    for (int32_t slot; n < most && (slot = walk_slot(w, &list)) >= 0; n++)
        ret[n].pairs = (const uint32_t *)(caches->base[list] + slot * caches->stride[list]);
    return n;
}

static inline void row_prefetch(struct row row) { host_prefetch(row.pairs, ATTN_D * 2); }

/* The entry as 256 pairs of bf16, where it lies; other formats convert it into `spare`. */
static inline const uint32_t *row_bf16(struct row row, uint32_t *spare) { return (void)spare, row.pairs; }

#endif

/* How host kernels of attn walk the slot lists of a request: window first, holes left out, nothing past a length looked at. */
#ifndef KBENCH_ATTN_HOST_LISTS_H
#define KBENCH_ATTN_HOST_LISTS_H

#include "attn.h"
#include "kernel.h"

struct walk {
    const int32_t *slot[2];     /* window, topk */
    const char    *cache[2];
    int64_t        stride[2];
    int32_t        length[2];
    int32_t        list, i;     /* next to look at */
};

static inline struct walk walk_of(const struct call *c, int64_t b)
{
    const int32_t *length = (const int32_t *)((const char *)c->t[ATTN_LENGTH].p + b * c->t[ATTN_LENGTH].stride);
    struct walk w = {0};
    for (int list = 0; list < 2; list++) {
        const struct arg *slot = &c->t[ATTN_WINDOW_SLOT + list], *cache = &c->t[ATTN_WINDOW_KV + list];
        w.slot[list] = (const int32_t *)((const char *)slot->p + b * slot->stride);
        w.cache[list] = cache->p;
        w.stride[list] = cache->stride;
        w.length[list] = length[list];
    }
    return w;
}

/* Up to `most` further rows of 512 bf16, as 256 pairs; 0 at the end. */
static inline int32_t walk_rows(struct walk *w, int32_t most, const uint32_t **ret_row)
{
    int32_t n = 0;
    for (; w->list < 2; w->list++, w->i = 0) {
        while (w->i < w->length[w->list]) {
            if (n == most) return n;
            int32_t slot = w->slot[w->list][w->i++];
            if (slot >= 0) ret_row[n++] = (const uint32_t *)(w->cache[w->list] + slot * w->stride[w->list]);
        }
    }
    return n;
}

#endif

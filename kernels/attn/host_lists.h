/* How host kernels of attn and attn_fp8 walk the slot lists of a request: window first, holes left out, nothing past a length
 * looked at. Where the entry of a slot lies is the format's affair: see host_rows.h of either op. */
#ifndef KBENCH_ATTN_HOST_LISTS_H
#define KBENCH_ATTN_HOST_LISTS_H

#include "attn.h"
#include "kernel.h"

struct walk {
    const int32_t *slot[2];     /* window, topk */
    int32_t        length[2];
    int32_t        list, i;     /* next to look at */
};

static inline struct walk walk_of(const struct call *c, int64_t b)
{
    const int32_t *length = (const int32_t *)((const char *)c->t[ATTN_LENGTH].p + b * c->t[ATTN_LENGTH].stride);
    struct walk w = {0};
    for (int list = 0; list < 2; list++) {
        const struct arg *slot = &c->t[ATTN_WINDOW_SLOT + list];
        w.slot[list] = (const int32_t *)((const char *)slot->p + b * slot->stride);
        w.length[list] = length[list] > 0 ? length[list] : 0;
    }
    return w;
}

/* Leaves part `part` of `parts` nearly equal ones of both lists, holes counted; it may be empty. */
static inline void walk_cut(struct walk *w, int64_t part, int64_t parts)
{
    int64_t all = (int64_t)w->length[0] + w->length[1];
    int32_t from = (int32_t)(all * part / parts), to = (int32_t)(all * (part + 1) / parts), first = w->length[0];
    w->list = from >= first;
    w->i = w->list ? from - first : from;
    w->length[0] = to < first ? to : first;
    w->length[1] = to - w->length[0];
}

/* The next slot that is no hole and the list that it stands in; -1 at the end. */
static inline int32_t walk_slot(struct walk *w, int32_t *ret_list)
{
    for (; w->list < 2; w->list++, w->i = 0)
        while (w->i < w->length[w->list]) {
            int32_t slot = w->slot[w->list][w->i++];
            *ret_list = w->list;
            if (slot >= 0) return slot;
        }
    return -1;
}

#endif

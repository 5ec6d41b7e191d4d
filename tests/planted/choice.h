/* Selection for the planted kernels of op topk: right, but its own way: the lowest first, and of those that tie the last. */
#ifndef KBENCH_PLANTED_CHOICE_H
#define KBENCH_PLANTED_CHOICE_H

#include <stdlib.h>

#include "kernel.h"
#include "topk.h"
#include "topk/host_select.h"

static void *row_of(const struct call *c, int t, int64_t b) { return (char *)c->t[t].p + b * c->t[t].stride; }

/* Selects for request b among its first n entries: where several score as the border does, those with the highest numbers. */
static void choose(const struct call *c, int64_t b, int64_t n)
{
    int64_t        k = c->problem->dim[TOPK_K], above, at = 0;
    const int32_t *page = row_of(c, TOPK_PAGE_TABLE, b);
    int32_t       *slot = row_of(c, TOPK_SLOT, b);
    uint32_t      *order = malloc((size_t)(n + 1) * sizeof *order);
    select_orders(row_of(c, TOPK_SCORE, b), n, order);
    uint32_t border = select_border(order, n, k, &above);
    int64_t  ties = border ? k - above : 0;
    for (int64_t i = n - 1; i >= 0 && at < k; i--)
        if (order[i] > border || (order[i] == border && ties-- > 0))
            slot[at++] = page[i / TOPK_PAGE] * TOPK_PAGE + (int32_t)(i % TOPK_PAGE);
    while (at < k) slot[at++] = -1;
    free(order);
}

static inline int64_t length_of(const struct call *c, int64_t b)
{
    int32_t length = *(int32_t *)row_of(c, TOPK_LENGTH, b);
    return length > 0 ? length : 0;
}

#endif

/* Of one request the last entry is selected in the place of a better one, if it is not selected anyway. */
#include "choice.h"

static int launch(const struct call *c)
{
    for (int64_t b = 0; b < c->problem->dim[TOPK_BATCH]; b++) choose(c, b, length_of(c, b));
    for (int64_t b = 0; b < c->problem->dim[TOPK_BATCH]; b++) {
        int64_t        n = length_of(c, b), k = c->problem->dim[TOPK_K];
        int32_t       *slot = row_of(c, TOPK_SLOT, b);
        const int32_t *page = row_of(c, TOPK_PAGE_TABLE, b);
        int32_t        last = n > 0 ? page[(n - 1) / TOPK_PAGE] * TOPK_PAGE + (int32_t)((n - 1) % TOPK_PAGE) : -1;
        if (n <= k || slot[0] == last) continue;
        slot[k - 1] = last;
        return 0;
    }
    return 0;
}

KERNEL = {FOR_OP(topk), .note = "planted: one entry too low", .engine = HOST, .launch = launch};

/* Selection for host kernels of topk and index_select: the k highest of a row of floats, by digits of 11 bits from the highest
 * down, which takes three looks at the row whatever it holds. In the order of entries: the result does not depend on threads.
 */
#ifndef KBENCH_TOPK_HOST_SELECT_H
#define KBENCH_TOPK_HOST_SELECT_H

#include "host.h"

enum { SELECT_PAGE = 64, SELECT_BITS = 11, SELECT_BINS = 1 << SELECT_BITS };

/* In the order of the floats; 0 for NaN and -inf, which no other float has. Both zeros are the same. */
HOST_INLINE uint32_t select_order(float score)
{
    float    x = score + 0.0f;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t order = bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
    return x > -__builtin_inff() ? order : 0;
}

HOST_CLONES static void select_orders(const float *score, int64_t n, uint32_t *ret)
{
    for (int64_t i = 0; i < n; i++) ret[i] = select_order(score[i]);
}

/* The k-th highest order, 0 where fewer than k are not 0, and how many lie above it. */
static uint32_t select_border(const uint32_t *order, int64_t n, int64_t k, int64_t *ret_above)
{
    const int shifts[] = {21, 10, 0};
    uint32_t  found = 0, known = 0;
    *ret_above = 0;
    for (int step = 0; step < 3; step++) {
        int32_t count[SELECT_BINS] = {0};
        int     digit = SELECT_BINS - 1, shift = shifts[step];
        for (int64_t i = 0; i < n; i++)
            if ((order[i] & known) == found) count[order[i] >> shift & (SELECT_BINS - 1)]++;
        while (digit > 0 && *ret_above + count[digit] < k) *ret_above += count[digit--];
        known |= (uint32_t)(SELECT_BINS - 1) << shift;
        found = (found & ~((uint32_t)(SELECT_BINS - 1) << shift)) | (uint32_t)digit << shift;
    }
    return found;
}

/* slot[k] of one row; order: [n], room for what the scores become. page: the row of the table. */
static inline void select_row(const float *score, int64_t n, int64_t k, const int32_t *page, uint32_t *order, int32_t *slot)
{
    int64_t above, chosen = 0;
    select_orders(score, n, order);
    uint32_t border = select_border(order, n, k, &above);
    int64_t  ties = border ? k - above : 0;
    for (int64_t i = 0; i < n && chosen < k; i++) {
        if (order[i] < border || order[i] == 0) continue;
        if (order[i] == border && ties-- <= 0) continue;
        slot[chosen++] = page[i / SELECT_PAGE] * SELECT_PAGE + (int32_t)(i % SELECT_PAGE);
    }
    while (chosen < k) slot[chosen++] = -1;
}

#endif

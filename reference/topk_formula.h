/* Choosing the highest scores, and judging a choice: for topk and index_select. */
#ifndef KBENCH_TOPK_FORMULA_H
#define KBENCH_TOPK_FORMULA_H

#include <stdint.h>

#include "op.h"

/* The k highest of n scores, or all that are above -inf (NaN is not): their indices, ascending, and how many. Of those that tie at
 * the border the first. */
int64_t topk_pick(const double *score, int64_t n, int64_t k, int64_t *ret_entry);

/* One request: its live pages, and the slots chosen. */
struct topk_choice {
    const int32_t *page;     /* [ceil(length / 64)] */
    int64_t        length;   /* 0 or more */
    const int32_t *slot;     /* [k] */
    int64_t        b, k;     /* b: for the words */
};

/* Slots as entries, and how many. -1 where a slot names no live entry, one is named twice, or -1 stands before a slot: the reason
 * is in ret_why. */
int64_t topk_entries(const struct topk_choice *, int64_t *ret_entry, char *ret_why, size_t size);

/* Whether the reference had no time for this row of slots. */
bool topk_unreached(const int32_t *slot);

/* Sorts from the highest down. */
void topk_sort(double *score, int64_t n);

/* NULL, or that the numbers of entries differ; or where two lists of n scores, from the highest down, do. */
const char *topk_miscount(int64_t b, int64_t got, int64_t want, char *ret_why, size_t size);
const char *topk_differ(int64_t b, const double *got, const double *want, int64_t n, char *ret_why, size_t size);

#endif

/* The formula of attn.h in double precision, for entries of any format. */
#ifndef KBENCH_ATTN_FORMULA_H
#define KBENCH_ATTN_FORMULA_H

#include "attn.h"

/* One entry of a cache as 512 doubles. */
typedef void attn_widen(const struct problem *, void *const *t, bool window, int64_t slot, double *ret);

/* As op.reference; an item is a request. */
void attn_formula(const struct problem *, void *const *t, int64_t item, int64_t n, attn_widen *widen);

void attn_widen_bf16(const uint16_t *bf16, int64_t n, double *ret);

#endif

/* The formula of indexer.h in double precision, for keys and queries of any format. */
#ifndef KBENCH_INDEXER_FORMULA_H
#define KBENCH_INDEXER_FORMULA_H

#include "indexer.h"

/* A format: one key as 128 doubles, the queries of a request as 64 x 128. */
struct indexer_format {
    void (*key)(void *const *t, int64_t slot, double *ret);
    void (*q)(void *const *t, int64_t b, double *ret);
};

/* bf16 for both. */
extern const struct indexer_format indexer_bf16;

/* Scores of all live entries of request b; returns how many. ret: [length[b]] */
int64_t indexer_scores(const struct problem *, void *const *t, int64_t b, const struct indexer_format *, double *ret);

/* As op.reference, into INDEXER_LOGITS; an item is a request. */
void indexer_formula(const struct problem *, void *const *t, int64_t item, int64_t n, const struct indexer_format *);

/* q_h . k for one slot and all heads. q: [64][128] as format->q gives it */
void indexer_products(void *const *t, const struct indexer_format *, const double *q, int64_t slot, double ret[INDEXER_HEADS]);

#endif

/* For unit tests of the indexer's ops, beside bind.h: the hash of a layout, outputs of which only live elements count, choices of
 * slots, and caches larger than the machine's memory. */
#ifndef KBENCH_TEST_INDEXER_BIND_H
#define KBENCH_TEST_INDEXER_BIND_H

#include <sys/mman.h>
#include "bind.h"
#include "indexer.h"

static inline uint64_t layout_of(const struct op *op)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; op->dim[i].name; i++) {
        for (const char *c = op->dim[i].name; *c; c++) hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
        hash *= 0x100000001b3u;   /* the 0 that ends a name */
    }
    hash = (hash ^ 1) * 0x100000001b3u;
    for (int i = 0; op->tensor[i].name; i++) {
        for (const char *c = op->tensor[i].name; *c; c++) hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
        hash *= 0x100000001b3u;
        hash = (hash ^ (uint8_t)op->tensor[i].dtype) * 0x100000001b3u;
        hash = (hash ^ (uint8_t)op->tensor[i].role) * 0x100000001b3u;
    }
    return hash;
}

static inline int32_t length_at(const struct bound *b, int64_t row) { return ((int32_t *)b->dense[INDEXER_LENGTH])[row]; }
static inline int32_t *table_at(const struct bound *b, int64_t row)
{
    return (int32_t *)b->dense[INDEXER_PAGE_TABLE] + row * (b->p.op->tensor[INDEXER_PAGE_TABLE].row_bytes(&b->p) / 4);
}

/* Worst relative L2 error of a row over what is not left open, or infinity and a line on stderr: past the tolerance, past the row,
 * or an open element that is not -inf (clean) or was written although it need not be (untouched). */
enum open_elements { ANYTHING, CLEAN_INF, UNTOUCHED };
static inline double logits_error(const struct bound *b, enum open_elements open)
{
    const struct tensor *tensor = &b->p.op->tensor[INDEXER_LOGITS];
    int64_t n = tensor->row_bytes(&b->p) / 4;
    double  worst = 0;
    for (int64_t r = 0; r < tensor->rows(&b->p); r++) {
        const char   *got = (char *)b->arg[INDEXER_LOGITS].p + r * b->arg[INDEXER_LOGITS].stride;
        const double *ref = (double *)b->dense[INDEXER_LOGITS] + r * n;
        double error = 0, norm = 0;
        int64_t live = 0;
        bool bad = false;
        for (int64_t i = 0; i < n; i++) {
            float    x = ((const float *)got)[i];
            uint32_t bits = bits_of_f32(x);
            if (is_unspecified(ref[i])) {
                bad |= (open == CLEAN_INF && x != -INFINITY) || (open == UNTOUCHED && bits != 0xffffffffu);
                continue;
            }
            live++;
            error += (x - ref[i]) * (x - ref[i]);
            norm += ref[i] * ref[i];
        }
        for (int64_t i = n * 4; i < b->arg[INDEXER_LOGITS].stride; i++) bad |= got[i] != (char)0xff;
        if (bad || !(sqrt(error) <= tensor->tolerance.rel_l2 * sqrt(norm) + tensor->tolerance.abs * sqrt((double)live))) {
            fprintf(stderr, "logits row %lld, %lld live: error %g of %g%s\n", (long long)r, (long long)live, sqrt(error),
                    sqrt(norm), bad ? ", or what is not live is wrong" : "");
            return INFINITY;
        }
        if (norm > 0 && sqrt(error / norm) > worst) worst = sqrt(error / norm);
    }
    return worst;
}

/* What op.verify says of the output with index `out` as it stands in the kernel's memory; NULL: right. why: [200] */
static inline const char *slots_why(const struct bound *b, int out, char *why)
{
    const struct tensor *tensor = &b->p.op->tensor[out];
    int64_t rows = tensor->rows(&b->p), bytes = tensor->row_bytes(&b->p);
    void   *t[MAX_TENSORS], *ref[MAX_TENSORS] = {0};
    memcpy(t, b->dense, sizeof t);
    ref[out] = b->dense[out];
    t[out] = bind_memory((size_t)(rows * bytes), 0);
    for (int64_t r = 0; r < rows; r++) {
        const char *from = (char *)b->arg[out].p + r * b->arg[out].stride;
        memcpy((char *)t[out] + r * bytes, from, (size_t)bytes);
        for (int64_t i = bytes; i < b->arg[out].stride; i++)
            if (from[i] != (char)0xff) {
                free(t[out]);
                return "written past the row";
            }
    }
    const char *ret = b->p.op->verify(&b->p, t, ref, why, 200);
    free(t[out]);
    return ret;
}

/* The reference's own choice as a kernel would have written it. */
static inline void slots_put(const struct bound *b, int out)
{
    int64_t bytes = b->p.op->tensor[out].row_bytes(&b->p);
    for (int64_t r = 0; r < b->p.op->tensor[out].rows(&b->p); r++)
        memcpy((char *)b->arg[out].p + r * b->arg[out].stride, (char *)b->dense[out] + r * bytes, (size_t)bytes);
}

/* Address space that takes memory only where it is written. */
static inline void *sparse_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) abort();
    return p;
}

#endif

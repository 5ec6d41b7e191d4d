#include "tensor_fill.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

enum { CHUNK_BYTES = 1 << 16 };

/* Rows [0, n) of tensor t, or those named by `row`, each to where it belongs in a dense tensor at `host`. */
static void fill_rows(const struct workload *w, int t, uint32_t set, const int64_t *row, int64_t n, char *host)
{
    int64_t row_bytes = w->shape[t].row_bytes, step = row || row_bytes > CHUNK_BYTES ? 1 : CHUNK_BYTES / row_bytes;
#pragma omp parallel for schedule(static, 16) if (n * row_bytes > 4 * CHUNK_BYTES)
    for (int64_t i = 0; i < n; i += step) {
        int64_t first = row ? row[i] : i, count = n - i < step ? n - i : step;
        w->op->fill(&w->problem, t, set, first, count, host + first * row_bytes);
    }
}

int64_t *touched_rows(const struct workload *w, int t, void *const *host, int64_t *ret_n)
{
    const struct tensor *tensor = &w->op->tensor[t];
    int64_t *row = must_alloc((size_t)tensor->touched(&w->problem, host, NULL) + 1, sizeof *row);
    *ret_n = tensor->touched(&w->problem, host, row);
    return row;
}

void fill_set(const struct workload *w, uint32_t set, void *const *host)
{
    for (int sparse = 0; sparse < 2; sparse++)
        for (int t = 0; t < w->n; t++) {
            const struct shape *shape = &w->shape[t];
            if (!shape->input || !w->op->tensor[t].touched != !sparse) continue;
            int64_t n = shape->rows;
            int64_t *row = sparse ? touched_rows(w, t, host, &n) : NULL;
            fill_rows(w, t, set, row, n, host[t]);
            free(row);
        }
}

/* A dense tensor goes row by row only where the device wants other strides; through a packed copy otherwise. */
int put_rows(struct workload *w, int t, void *const *host, struct arg to)
{
    const struct shape *shape = &w->shape[t];
    struct dev *dev = w->dev;
    if (!w->op->tensor[t].touched && to.stride == shape->row_bytes)
        return dev->ops->put(dev, to.p, host[t], (size_t)(shape->rows * shape->row_bytes));
    if (!w->op->tensor[t].touched) {
        char *strided = must_alloc((size_t)shape->rows, (size_t)to.stride);
        memset(strided, POISON_NAN, (size_t)(shape->rows * to.stride));
        for (int64_t r = 0; r < shape->rows; r++)
            memcpy(strided + r * to.stride, (char *)host[t] + r * shape->row_bytes, (size_t)shape->row_bytes);
        int error = dev->ops->put(dev, to.p, strided, (size_t)(shape->rows * to.stride));
        free(strided);
        return error;
    }
    int64_t n;
    int64_t *row = touched_rows(w, t, host, &n);
    char *packed = must_alloc((size_t)n + 1, (size_t)shape->row_bytes);
#pragma omp parallel for if (n > 1024)
    for (int64_t i = 0; i < n; i++)
        memcpy(packed + i * shape->row_bytes, (char *)host[t] + row[i] * shape->row_bytes, (size_t)shape->row_bytes);
    int error = dev->ops->scatter(dev, to.p, to.stride, shape->row_bytes, row, n, packed);
    free(packed);
    free(row);
    return error;
}

/* For unit tests of ops and host kernels: one input set of a problem in memory as the harness lays it out. Untouched cache rows
 * and the gaps between rows hold NaN bytes, outputs are poisoned, the reference is computed. */
#ifndef KBENCH_TEST_BIND_H
#define KBENCH_TEST_BIND_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dtype.h"
#include "kernel.h"

struct bound {
    struct problem p;
    int            n;
    void          *dense[MAX_TENSORS];   /* inputs as filled; outputs: the reference, double */
    struct arg     arg[MAX_TENSORS];     /* what a kernel gets */
};

static inline bool bind_is_output(const struct bound *b, int t) { return b->p.op->tensor[t].role == OUT; }

static inline void *bind_memory(size_t bytes, int byte)
{
    void *memory = aligned_alloc(256, (bytes + 511) / 256 * 256);
    if (!memory) abort();
    return memset(memory, byte, (bytes + 511) / 256 * 256);
}

/* Leaves NaN bytes in every row that the other inputs do not name. */
static inline void bind_poison(struct bound *b, int t, int64_t rows, int64_t bytes)
{
    const struct tensor *tensor = &b->p.op->tensor[t];
    if (!tensor->touched) return;
    int64_t *row = calloc((size_t)tensor->touched(&b->p, b->dense, NULL) + 1, sizeof *row);
    int64_t  n = tensor->touched(&b->p, b->dense, row), next = 0;
    for (int64_t r = 0; r < rows; r++) {
        if (next < n && row[next] == r)
            next++;
        else
            memset((char *)b->dense[t] + r * bytes, 0xff, (size_t)bytes);
    }
    free(row);
}

/* Copies the dense inputs to where the kernel reads them, poisons outputs, computes the reference. Again after a change. */
static inline void bind_spread(struct bound *b)
{
    for (int t = 0; t < b->n; t++) {
        const struct tensor *tensor = &b->p.op->tensor[t];
        int64_t rows = tensor->rows(&b->p), bytes = tensor->row_bytes(&b->p);
        memset(b->arg[t].p, 0xff, (size_t)(rows * b->arg[t].stride));
        if (bind_is_output(b, t)) continue;
        for (int64_t r = 0; r < rows; r++)
            memcpy((char *)b->arg[t].p + r * b->arg[t].stride, (char *)b->dense[t] + r * bytes, (size_t)bytes);
    }
    b->p.op->reference(&b->p, b->dense, 0, b->p.op->items(&b->p));
}

/* pad: bytes between rows, a multiple of 16; rows shorter than 16 bytes, and those of packed tensors, stay dense. */
static inline struct bound bind_problem(const struct problem *p, uint32_t set, int64_t pad)
{
    struct bound b = {.p = *p};
    for (; b.n < MAX_TENSORS && p->op->tensor[b.n].name; b.n++) {
        const struct tensor *tensor = &p->op->tensor[b.n];
        int64_t rows = tensor->rows(p), bytes = tensor->row_bytes(p);
        bool    output = tensor->role == OUT;
        b.arg[b.n].stride = bytes < 16 || tensor->dtype == BYTES ? bytes : (bytes + 15) / 16 * 16 + pad;
        b.arg[b.n].p = bind_memory((size_t)(rows * b.arg[b.n].stride), 0xff);
        b.dense[b.n] = bind_memory((size_t)(rows * bytes * (output ? 8 / dtype_bytes(tensor->dtype) : 1)), 0xff);
        if (!output) p->op->fill(p, b.n, set, 0, rows, b.dense[b.n]);
    }
    for (int t = 0; t < b.n; t++) bind_poison(&b, t, p->op->tensor[t].rows(p), p->op->tensor[t].row_bytes(p));
    bind_spread(&b);
    return b;
}

static inline void bind_free(struct bound *b)
{
    for (int t = 0; t < b->n; t++) {
        free(b->dense[t]);
        free(b->arg[t].p);
    }
}

/* Worst relative L2 error of a row, or infinity and a line on stderr where output t breaks its tolerance. Every comparison is
 * written so that NaN fails it. */
static inline double bind_error(const struct bound *b, int t)
{
    const struct tensor *tensor = &b->p.op->tensor[t];
    int64_t rows = tensor->rows(&b->p), n = tensor->row_bytes(&b->p) / dtype_bytes(tensor->dtype);
    double  worst = 0;
    for (int64_t r = 0; r < rows; r++) {
        const char   *got = (char *)b->arg[t].p + r * b->arg[t].stride;
        const double *ref = (double *)b->dense[t] + r * n;
        double error = 0, norm = 0, most = 0;
        for (int64_t i = 0; i < n; i++) {
            double x = dtype_load(tensor->dtype, got, i);
            if (isinf(ref[i]) && x == ref[i]) continue;
            error += (x - ref[i]) * (x - ref[i]);
            norm += ref[i] * ref[i];
            most = fabs(x - ref[i]) <= most ? most : fabs(x - ref[i]);
        }
        double rms = sqrt(norm / (double)n), abs = tensor->tolerance.abs, rel = tensor->tolerance.rel_l2;
        bool   gap = false;
        for (int64_t i = tensor->row_bytes(&b->p); i < b->arg[t].stride; i++) gap |= got[i] != (char)0xff;
        if (!(sqrt(error) <= rel * sqrt(norm) + abs * sqrt((double)n)) || !(most <= 8 * (rel * rms + abs)) || gap) {
            fprintf(stderr, "%s row %lld: error %g of %g, largest %g%s\n", tensor->name, (long long)r, sqrt(error), sqrt(norm),
                    most, gap ? ", written past the row" : "");
            return INFINITY;
        }
        if (norm > 0 && sqrt(error / norm) > worst) worst = sqrt(error / norm);
    }
    return worst;
}

/* One launch of a host kernel as the harness would do it: live dims at their max, workspace poisoned. Returns launch's code. */
static inline int bind_launch(const struct bound *b, const struct kernel *k, const struct device *device, const int32_t *tune)
{
    struct problem seen = b->p;
    for (int i = 0; i < MAX_DIMS && b->p.op->dim[i].name; i++)
        if (b->p.op->dim[i].live) seen.dim[i] = b->p.op->dim[i].max;
    size_t      bytes = k->workspace ? k->workspace(&seen, device, tune) : 0;
    char       *workspace = bind_memory(bytes + 256, 0xff);
    struct call call = {.problem = &seen, .device = device, .t = b->arg, .workspace = workspace, .tune = tune};
    int         code = k->open ? k->open(&seen, device, &call.state) : 0;
    if (!code) code = k->launch(&call);
    if (k->close && call.state) k->close(call.state);
    for (int i = 0; i < 256; i++)
        if (workspace[bytes + (size_t)i] != (char)0xff) code = code ? code : -1000;   /* past its workspace */
    free(workspace);
    return code;
}

#endif

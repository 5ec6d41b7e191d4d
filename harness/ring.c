/* The ring of input sets that the timer goes round: as many as it takes for their touched bytes to push each other out of L2. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "tensor_fill.h"
#include "workload.h"

enum { MAX_SETS = 8192 };

/* Where a call needs little of what it is given (short rows of wide tensors, one of two twins), more sets than its tensors alone
 * would ask for; but no more memory than this. */
static const double MOST_BYTES = 2e9;

/* Bytes of set 0's inputs that a call can touch. */
static double touched_bytes(const struct workload *w)
{
    double bytes = 0;
    for (int t = 0; t < w->n; t++) {
        int64_t rows = w->shape[t].rows;
        if (!w->shape[t].input) continue;
        if (w->op->tensor[t].touched) free(touched_rows(w, t, w->host[0], &rows));
        bytes += (double)rows * (double)w->shape[t].row_bytes;
    }
    return bytes;
}

static size_t slot_bytes(const struct shape *shape)
{
    return ((size_t)(shape->rows * shape->stride) + 255) / 256 * 256;
}

static bool is_output(const struct shape *shape)
{
    return shape->output && !shape->input;
}

/* How many copies of the outputs it takes to push each other out of L2; set 0, which is looked at after the timing, has one of its
 * own. One a set would be gigabytes where outputs are far wider than what a call touches. */
static int64_t output_copies(const struct shape *shape, int n, int64_t sets, double bytes)
{
    double one = 0;
    for (int t = 0; t < n; t++)
        if (is_output(&shape[t])) one += (double)slot_bytes(&shape[t]);
    double copies = 1 + fmax(1, ceil(bytes / fmax(one, 1)));
    return copies < (double)sets ? (int64_t)copies : sets;
}

/* Which copy of a tensor a set finds. */
static int64_t copy_of(const struct shape *shape, int64_t set, int64_t copies)
{
    if (!is_output(shape)) return set / shape->share;
    return set && copies < 2 ? 0 : set ? 1 + (set - 1) % (copies - 1) : 0;
}

/* One allocation a tensor. */
static int allocate(struct workload *w, double bytes, int placement)
{
    int64_t outputs = output_copies(w->shape, w->n, w->sets, bytes);
    for (int t = 0; t < w->n; t++) {
        const struct shape *shape = &w->shape[t];
        size_t slot = slot_bytes(shape);
        int64_t copies = is_output(shape) ? outputs : (w->sets + shape->share - 1) / shape->share;
        void *p;
        size_t room = w->dev->machine.engine == CUDA ? (size_t)PLACEMENT_BYTES * (PLACEMENTS - 1) : 0;
        TRY(workload_block(w, BLOCK_RING + t, slot * (size_t)copies + room, &p));
        p = (char *)p + (size_t)PLACEMENT_BYTES * (size_t)placement;
        for (int s = 0; s < w->sets; s++)
            w->ring[s * MAX_TENSORS + t] = (struct arg){(char *)p + slot * (size_t)copy_of(shape, s, copies), shape->stride};
        /* Outputs too: the first touch of a page, which a CPU's system fills with zeros, belongs to nobody's time. */
        if (w->op->tensor[t].touched || is_output(shape)) TRY(w->dev->ops->set(w->dev, p, POISON_NAN, slot * (size_t)copies));
    }
    return 0;
}

/* Dense inputs of all sets into one staging block a tensor, laid out as on the device, so that they go over in one piece. */
static int put_dense(struct workload *w, char **stage)
{
    for (int t = 0; t < w->n; t++) {
        const struct shape *shape = &w->shape[t];
        if (!shape->input || w->op->tensor[t].touched) continue;
        size_t slot = slot_bytes(shape);
        stage[t] = must_alloc((size_t)w->sets, slot);
#pragma omp parallel for schedule(dynamic, 1)
        for (int s = 0; s < w->sets; s++)
            for (int64_t r = 0; r < shape->rows; r += shape->stride == shape->row_bytes ? shape->rows : 1)
                w->op->fill(&w->problem, t, (uint32_t)s, r, shape->stride == shape->row_bytes ? shape->rows : 1,
                            stage[t] + (size_t)s * slot + r * shape->stride);
        TRY(w->dev->ops->put(w->dev, w->ring[t].p, stage[t], slot * (size_t)w->sets));
    }
    return 0;
}

/* What `touched` reads of a set: rows dense, as op.h promises. */
static void bind_dense(const struct workload *w, int set, char *const *stage, void **ret, char **ret_copy)
{
    for (int t = 0; t < w->n; t++) {
        const struct shape *shape = &w->shape[t];
        ret[t] = stage[t] ? stage[t] + (size_t)set * slot_bytes(shape) : NULL;
        ret_copy[t] = NULL;
        if (!stage[t] || shape->stride == shape->row_bytes) continue;
        ret_copy[t] = must_alloc((size_t)shape->rows, (size_t)shape->row_bytes);
        for (int64_t r = 0; r < shape->rows; r++)
            memcpy(ret_copy[t] + r * shape->row_bytes, (char *)ret[t] + r * shape->stride, (size_t)shape->row_bytes);
        ret[t] = ret_copy[t];
    }
}

/* The touched rows of one sparse tensor of one set. */
static int put_sparse(struct workload *w, int t, int set, void *const *host)
{
    const struct shape *shape = &w->shape[t];
    int64_t n;
    int64_t *row = touched_rows(w, t, host, &n);
    struct arg to = w->ring[set * MAX_TENSORS + t];
    if (w->dev->machine.engine == HOST) {   /* straight to where they belong */
        for (int64_t i = 0; i < n; i++) w->op->fill(&w->problem, t, (uint32_t)set, row[i], 1, (char *)to.p + row[i] * to.stride);
        free(row);
        return 0;
    }
    char *packed = must_alloc((size_t)n + 1, (size_t)shape->row_bytes);
    for (int64_t i = 0; i < n; i++) w->op->fill(&w->problem, t, (uint32_t)set, row[i], 1, packed + i * shape->row_bytes);
    int error = 0;
#pragma omp critical   /* one stream, one staging buffer */
    error = w->dev->ops->scatter(w->dev, to.p, to.stride, shape->row_bytes, row, n, packed);
    free(packed);
    free(row);
    return error;
}

/* All sparse tensors of one set, and its work by the actual lengths. */
static int fill_set_of_ring(struct workload *w, int set, char *const *stage, double *ret_bytes, double *ret_flop)
{
    void *host[MAX_TENSORS];
    char *copy[MAX_TENSORS];
    int error = 0;
    bind_dense(w, set, stage, host, copy);
    for (int t = 0; t < w->n && !error; t++)
        if (w->shape[t].input && w->op->tensor[t].touched) error = put_sparse(w, t, set, host);
    *ret_bytes = w->op->bytes(&w->problem, host, 0);
    *ret_flop = w->op->flop(&w->problem, host);
    for (int t = 0; t < w->n; t++) free(copy[t]);
    return error;
}

static int fill_ring(struct workload *w, char **stage)
{
    TRY(put_dense(w, stage));
    double bytes = 0, flop = 0;
    int error = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : bytes, flop)
    for (int s = 0; s < w->sets; s++) {
        double set_bytes, set_flop;
        int set_error = fill_set_of_ring(w, s, stage, &set_bytes, &set_flop);
        bytes += set_bytes;
        flop += set_flop;
        if (set_error)
#pragma omp atomic write
            error = set_error;
    }
    w->bytes = bytes / w->sets;
    w->flop = flop / w->sets;
    return error;
}

void workload_needs(struct workload *w, uint64_t reads)
{
    uint64_t outputs = 0;
    for (int t = 0; t < w->n; t++)
        if (is_output(&w->shape[t])) outputs |= 1ull << t;
    double least = w->op->bytes(&w->problem, w->host[0], reads) - w->op->bytes(&w->problem, w->host[0], outputs);
    if (least > 0 && (w->needed_bytes <= 0 || least < w->needed_bytes)) w->needed_bytes = least;
}

int workload_sets(const struct workload *w, double bytes)
{
    double touched = touched_bytes(w), needed = w->needed_bytes > 0 ? fmin(w->needed_bytes, touched) : touched, dense = 0;
    for (int t = 0; t < w->n; t++)
        if (w->shape[t].input) dense += (double)slot_bytes(&w->shape[t]) / (double)w->shape[t].share;
    double sets = ceil(bytes / fmax(touched, 1)), more = fmin(ceil(bytes / fmax(needed, 1)), floor(MOST_BYTES / fmax(dense, 1)));
    return (int)fmin(MAX_SETS, fmax(bytes > 0 ? CHECK_SETS : 1, fmax(sets, more)));
}

int workload_ring(struct workload *w, double bytes, int placement)
{
    w->touched_bytes = w->needed_bytes > 0 ? fmin(w->needed_bytes, touched_bytes(w)) : touched_bytes(w);
    w->sets = workload_sets(w, bytes);
    free(w->ring);
    w->ring = must_alloc((size_t)w->sets * MAX_TENSORS, sizeof *w->ring);
    TRY(allocate(w, bytes, placement));
    char *stage[MAX_TENSORS] = {0};
    int error = fill_ring(w, stage);
    for (int t = 0; t < w->n; t++) free(stage[t]);
    return error;
}

double workload_bytes(const struct problem *problem, double ring_bytes)
{
    struct shape shape[MAX_TENSORS];
    double per_set = 0, ring = 0, check = 0, outputs = 0;
    int n = op_tensors(problem->op);
    workload_shapes(problem, shape);
    for (int t = 0; t < n; t++) {
        double tensor = (double)shape[t].rows * (double)shape[t].stride;
        check += (double)shape[t].rows * (double)shape[t].check_stride;
        if (is_output(&shape[t])) {
            outputs += tensor;
            continue;
        }
        ring += tensor / (double)shape[t].share;
        per_set += shape[t].share > 1 ? 0 : tensor;   /* those that sets share hold more than one set touches */
    }
    double sets = fmin(MAX_SETS, fmax(CHECK_SETS, ceil(ring_bytes / fmax(per_set, 1))));
    return check + fmax(ring * sets, per_set * sets) + outputs * (double)output_copies(shape, n, (int64_t)sets, ring_bytes);
}

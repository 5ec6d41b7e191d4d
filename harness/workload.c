#include "workload.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base.h"
#include "dtype.h"
#include "reference_run.h"
#include "tensor_fill.h"

static int64_t round_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

void workload_shapes(const struct problem *problem, struct shape *ret)
{
    for (int t = 0; t < op_tensors(problem->op); t++) {
        const struct tensor *tensor = &problem->op->tensor[t];
        struct shape *shape = &ret[t];
        *shape = (struct shape){.input = tensor->role != OUT, .output = tensor->role == OUT || tensor->role == INOUT,
                                .element_bytes = dtype_bytes(tensor->dtype), .rows = tensor->rows(problem),
                                .row_bytes = tensor->row_bytes(problem), .share = tensor->share ? tensor->share(problem) : 1};
        bool dense = shape->row_bytes < 16 || tensor->dtype == BYTES;   /* packed: rows are pieces of one whole */
        shape->row_elements = shape->row_bytes / shape->element_bytes;
        shape->stride = dense ? shape->row_bytes : round_up(shape->row_bytes, 16);
        shape->check_stride = dense ? shape->row_bytes : shape->stride + 256;
    }
}

/* Same problem, same key; another worker of the same run finds its work done. */
static uint64_t problem_key(const struct problem *problem)
{
    uint64_t key = 0xcbf29ce484222325;
    for (const char *c = problem->op->name; *c; c++) key = (key ^ (uint8_t)*c) * 0x100000001b3;
    for (int d = 0; d < MAX_DIMS; d++) key = (key ^ (uint64_t)problem->dim[d]) * 0x9e3779b97f4a7c15 + 1;
    key = (key ^ problem->seed) * 0x9e3779b97f4a7c15;   /* each step is one to one: neighbouring seeds keep apart */
    return key ? key : 1;
}

/* Room for `bytes` at the end of what is laid out, which is then at *at; its place, or NULL without a base. */
static void *place(char *base, size_t *at, int64_t bytes)
{
    size_t begin = *at;
    *at += (size_t)round_up(bytes, 4096);
    return base ? base + begin : NULL;
}

/* Lays the store out: head, then per set inputs, references and flags, each on its own page so that sparse ones stay sparse.
 * Returns its size; without a base that is all it does. */
static size_t lay_out(struct workload *w, char *base)
{
    size_t at = 4096;
    for (int set = 0; set < CHECK_SETS; set++)
        for (int t = 0; t < w->n; t++) {
            const struct shape *shape = &w->shape[t];
            bool real = w->op->tensor[t].dtype <= E4M3;
            if (shape->input) w->host[set][t] = place(base, &at, shape->rows * shape->row_bytes);
            if (!shape->output) continue;
            w->ref[set][t] = place(base, &at, shape->rows * (real ? shape->row_elements * 8 : shape->row_bytes));
            w->checked[set][t] = place(base, &at, shape->rows);
        }
    return at;
}

static int map_store(struct workload *w, uint64_t key)
{
    w->map_bytes = lay_out(w, NULL);
    off_t have = lseek(w->memory, 0, SEEK_END), need = (off_t)(STORE_AT + w->map_bytes);
    if (have < need && ftruncate(w->memory, need)) return DEV_OOM;
    w->map = mmap(NULL, w->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, w->memory, STORE_AT);
    if (w->map == MAP_FAILED) {
        w->map = NULL;
        return DEV_OOM;
    }
    lay_out(w, w->map);
    w->head = w->map;
    if (w->head->key == key) return 0;
    if (w->map_bytes > (size_t)1 << 30) {   /* pages that an earlier sparse group touched would add up */
        munmap(w->map, w->map_bytes);
        if (ftruncate(w->memory, STORE_AT) || ftruncate(w->memory, need)) return DEV_OOM;
        w->map = mmap(NULL, w->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, w->memory, STORE_AT);
        if (w->map == MAP_FAILED) return w->map = NULL, DEV_OOM;
        lay_out(w, w->map);
        w->head = w->map;
    }
    *w->head = (struct store_head){.key = key};
    return 0;
}

int workload_prepare(struct workload *w, const struct problem *problem, const struct kernel *oracle, double budget_s)
{
    w->problem = *problem;
    w->op = problem->op;
    w->seen = problem_for_kernel(problem);
    w->n = op_tensors(problem->op);
    w->sets = 0;
    workload_shapes(problem, w->shape);
    int error = map_store(w, problem_key(problem));
    if (error) {
        text(w->error, sizeof w->error, "no host memory for %.3f GB of tensors", (double)w->map_bytes * 1e-9);
        return error;
    }
    for (int set = 0; set < CHECK_SETS && !w->head->filled; set++) fill_set(w, set ? CHECK_SET : 0, w->host[set]);
    w->head->filled = 1;
    if (budget_s >= 0 && !w->head->referenced) {
        TRY(workload_check_buffers(w));
        TRY(reference_run(w, oracle, budget_s));
        w->head->referenced = 1;
    }
    return 0;
}

int workload_block(struct workload *w, int which, size_t bytes, void **ret)
{
    struct block *block = &w->block[which];
    if (block->bytes < bytes || !block->p) {
        w->dev->ops->free(w->dev, block->p);
        *block = (struct block){0};
        int error = w->dev->ops->alloc(w->dev, bytes, &block->p);
        if (error) {
            text(w->error, sizeof w->error, "no device memory for %.3f GB, %.3f GB are free", (double)bytes * 1e-9,
                 (double)w->dev->ops->free_bytes(w->dev) * 1e-9);
            block->p = NULL;
            return error;
        }
        block->bytes = bytes;
    }
    *ret = block->p;
    return 0;
}

/* Another group's blocks may stand in the way of this one's. */
static void free_blocks(struct workload *w, int first, int n)
{
    for (int i = first; i < first + n; i++) {
        w->dev->ops->free(w->dev, w->block[i].p);
        w->block[i] = (struct block){0};
    }
}

static size_t check_bytes(const struct shape *shape)
{
    return (size_t)round_up(shape->rows * shape->check_stride, 16);
}

static int check_buffers(struct workload *w)
{
    for (int t = 0; t < w->n; t++) {
        size_t bytes = check_bytes(&w->shape[t]);
        void *p;
        TRY(workload_block(w, BLOCK_CHECK + t, bytes + 2 * GUARD_BYTES + 256, &p));
        char *base = p;
        TRY(w->dev->ops->set(w->dev, base, GUARD_BYTE, GUARD_BYTES + 16));
        TRY(w->dev->ops->set(w->dev, base + GUARD_BYTES + 16 + bytes, GUARD_BYTE, GUARD_BYTES));
        /* rows start at 16 mod 256: no more is promised */
        w->check[t] = (struct arg){base + GUARD_BYTES + 16, w->shape[t].check_stride};
    }
    return 0;
}

int workload_check_buffers(struct workload *w)
{
    int error = check_buffers(w);
    if (error != DEV_OOM) return error;
    free_blocks(w, 0, BLOCKS);
    return check_buffers(w);
}

int workload_put(struct workload *w, int set, uint64_t reads)
{
    for (int t = 0; t < w->n; t++) {
        if (!w->shape[t].input) continue;
        size_t bytes = check_bytes(&w->shape[t]);
        TRY(w->dev->ops->set(w->dev, w->check[t].p, POISON_NAN, bytes));
        if (!reads || reads >> t & 1) TRY(put_rows(w, t, w->host[set], w->check[t]));
        if (!w->shape[t].output) TRY(w->dev->ops->hash(w->dev, w->check[t].p, bytes, &w->check_hash[t]));
    }
    return 0;
}

int workload_poison_outputs(struct workload *w, int byte)
{
    for (int t = 0; t < w->n; t++)
        if (w->shape[t].output && !w->shape[t].input) TRY(w->dev->ops->set(w->dev, w->check[t].p, byte, check_bytes(&w->shape[t])));
    return 0;
}

bool workload_guards_ok(struct workload *w, int *ret_error, char *ret_why, size_t size)
{
    uint8_t guard[GUARD_BYTES];
    *ret_error = 0;
    for (int t = 0; t < w->n; t++)
        for (int side = 0; side < 2; side++) {
            size_t bytes = check_bytes(&w->shape[t]);
            const char *at = (const char *)w->check[t].p + (side ? (ptrdiff_t)bytes : -GUARD_BYTES);
            *ret_error = w->dev->ops->get(w->dev, guard, at, GUARD_BYTES);
            if (*ret_error) return false;
            for (int i = 0; i < GUARD_BYTES; i++) {
                int byte = side ? i : GUARD_BYTES - 1 - i;
                if (guard[byte] == GUARD_BYTE) continue;
                text(ret_why, size, "wrote %d bytes %s of %s", side ? byte + 1 : GUARD_BYTES - byte, side ? "behind the end"
                    : "before the begin",
                     w->op->tensor[t].name);
                return false;
            }
        }
    return true;
}

bool workload_inputs_ok(struct workload *w, int *ret_error, char *ret_why, size_t size)
{
    *ret_error = 0;
    for (int t = 0; t < w->n; t++) {
        uint64_t hash;
        if (!w->shape[t].input || w->shape[t].output) continue;
        *ret_error = w->dev->ops->hash(w->dev, w->check[t].p, check_bytes(&w->shape[t]), &hash);
        if (*ret_error) return false;
        if (hash == w->check_hash[t]) continue;
        text(ret_why, size, "input %s was written", w->op->tensor[t].name);
        return false;
    }
    return true;
}

void workload_release(struct workload *w)
{
    if (w->map) munmap(w->map, w->map_bytes);
    w->map = NULL;
    free(w->ring);
    w->ring = NULL;
}

void workload_close(struct workload *w)
{
    workload_release(w);
    free_blocks(w, 0, BLOCKS);
}

#include "reference_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "compare.h"
#include "dtype.h"
#include "tensor_fill.h"

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* A step that visits all n items, spread out from the start, so that any first part is a fair sample. */
static int64_t spread(int64_t n)
{
    int64_t step = (int64_t)((double)n * 0.6180339887498949) | 1;
    while (gcd(step, n) != 1) step++;
    return step;
}

static void bind_reference(const struct workload *w, int set, void **ret)
{
    for (int t = 0; t < w->n; t++) ret[t] = w->shape[t].output ? w->ref[set][t] : w->host[set][t];
}

/* INOUT tensors start as what they held before the call. */
static void preload(const struct workload *w, int set)
{
    for (int t = 0; t < w->n; t++) {
        const struct shape *shape = &w->shape[t];
        enum dtype dtype = w->op->tensor[t].dtype;
        if (!shape->input || !shape->output) continue;
        if (dtype > E4M3) memcpy(w->ref[set][t], w->host[set][t], (size_t)(shape->rows * shape->row_bytes));
        else
            for (int64_t i = 0; i < shape->rows * shape->row_elements; i++) ((double *)w->ref[set][t])[i] = dtype_load(dtype,
                w->host[set][t], i);
    }
}

/* Returns how many items were done within the budget; two at least. */
static int64_t run_cpu(struct workload *w, int set, double budget_s)
{
    void *t[MAX_TENSORS] = {0};
    bind_reference(w, set, t);
    preload(w, set);
    for (int out = 0; out < w->n; out++) {   /* the memory may have served another problem */
        const struct shape *shape = &w->shape[out];
        if (!shape->output) continue;
        memset(w->checked[set][out], 0, (size_t)shape->rows);
        if (w->op->tensor[out].dtype > E4M3 && !shape->input)
            memset(w->ref[set][out], UNREACHED_BYTE, (size_t)(shape->rows * shape->row_bytes));
    }
    int64_t items = w->op->items(&w->problem), step = spread(items), done = 0;
    double until = now_s() + budget_s;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : done)
    for (int64_t i = 0; i < items; i++) {
        if (i > 1 && now_s() >= until) continue;
        int64_t item = i * step % items;
        w->op->reference(&w->problem, t, item, 1);
        for (int out = 0; out < w->n; out++) {
            int64_t row, rows;
            if (!w->shape[out].output) continue;
            w->op->item_rows(&w->problem, out, item, &row, &rows);
            memset(w->checked[set][out] + row, 1, (size_t)rows);
        }
        done++;
    }
    return done;
}

static char *value_words(double value, char *ret, size_t size)
{
    return is_unspecified(value) ? text(ret, size, "left open") : text(ret, size, "%.12g", value);
}

/* Whether the oracle's rows agree with those of the CPU: both are double, only the order of sums differs. Else w->error says
 * where they part. */
static bool agrees(struct workload *w, const struct kernel *oracle, int set, int t, const double *got)
{
    int64_t n = w->shape[t].row_elements;
    const double *cpu = w->ref[set][t];
    for (int64_t row = 0; row < w->shape[t].rows; row++) {
        if (!w->checked[set][t][row]) continue;
        double square = 0;
        for (int64_t i = 0; i < n; i++) square += isfinite(cpu[row * n + i]) ? cpu[row * n + i] * cpu[row * n + i] : 0;
        double room = 1e-9 * (sqrt(square / (double)n) + 1e-9);
        for (int64_t i = row * n; i < (row + 1) * n; i++) {
            bool open = is_unspecified(cpu[i]), nan = isnan(cpu[i]) && isnan(got[i]);
            if (open == is_unspecified(got[i]) && (got[i] == cpu[i] || fabs(got[i] - cpu[i]) <= room || nan)) continue;
            char where[96], is[32], should[32];
            element_text(&w->problem, t, row, i - row * n, where, sizeof where);
            text(w->error, sizeof w->error, "oracle %s and the CPU's reference of %s disagree at %s: %s and %s, so neither can "
                "judge a kernel; correct the one that is wrong", oracle->name ? oracle->name : "(a plug-in's)", w->op->name, where,
                value_words(got[i], is, sizeof is), value_words(cpu[i], should, sizeof should));
            return false;
        }
    }
    return true;
}

static int launch_oracle(struct workload *w, const struct kernel *oracle, int set, struct arg *arg)
{
    TRY(workload_put(w, set, oracle->reads));
    struct call call = {.problem = &w->seen, .device = &w->dev->machine.facts, .t = arg, .stream = w->dev->stream};
    for (int t = 0; t < w->n; t++) {
        arg[t] = w->check[t];
        if (!w->shape[t].output) continue;
        arg[t].stride = w->shape[t].row_elements * 8;
        TRY(workload_block(w, BLOCK_ORACLE + t, (size_t)(w->shape[t].rows * arg[t].stride), &arg[t].p));
    }
    TRY(oracle->launch(&call));
    return w->dev->ops->sync(w->dev);
}

static int run_oracle(struct workload *w, const struct kernel *oracle, int set)
{
    struct arg arg[MAX_TENSORS];
    TRY(launch_oracle(w, oracle, set, arg));
    double *copy[MAX_TENSORS] = {0};
    bool good = true;
    int error = 0;
    for (int t = 0; t < w->n && !error && good; t++) {
        if (!w->shape[t].output) continue;
        size_t bytes = (size_t)(w->shape[t].rows * w->shape[t].row_elements) * 8;
        copy[t] = must_alloc(bytes, 1);
        error = w->dev->ops->get(w->dev, copy[t], arg[t].p, bytes);
        good = error || agrees(w, oracle, set, t, copy[t]);
    }
    for (int t = 0; t < w->n; t++) {
        if (copy[t] && good && !error) {
            memcpy(w->ref[set][t], copy[t], (size_t)(w->shape[t].rows * w->shape[t].row_elements) * 8);
            memset(w->checked[set][t], 1, (size_t)w->shape[t].rows);
        }
        free(copy[t]);
    }
    return error ? error : good ? 0 : DEV_FORBIDDEN;
}

int reference_run(struct workload *w, const struct kernel *oracle, double budget_s)
{
    double begin = now_s(), least = 100;
    int64_t items = w->op->items(&w->problem);
    for (int set = 0; set < CHECK_SETS; set++) {
        int64_t done = run_cpu(w, set, budget_s / CHECK_SETS);
        double pct = 100.0 * (double)done / (double)items;
        if (done < items && oracle) {
            TRY(run_oracle(w, oracle, set));
            pct = 100;
        }
        least = fmin(least, pct);
    }
    w->head->checked_pct = least;
    w->head->reference_s = now_s() - begin;
    return 0;
}

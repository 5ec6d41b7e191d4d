#include "check.h"

#include <stdarg.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "compare.h"
#include "dtype.h"

enum { WORKSPACE_GARBAGE = 0x3c };   /* 0.0115 in bf16 and fp32: numbers that look like somebody's partial results */

/* A check on its way: the verdict so far, and the outputs of the first launch, to which others must be equal bit for bit. */
struct check {
    struct bound  *bound;
    struct verdict verdict;
    void          *first[MAX_TENSORS];   /* host copies of strided outputs */
    step_fn       *step;
    void          *step_arg;
};

/* Ends the check with a verdict; false, so that steps read `return fail(...)`. */
__attribute__((format(printf, 3, 4))) static bool fail(struct check *check, enum status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    check->verdict.status = status;
    vsnprintf(check->verdict.reason, sizeof check->verdict.reason, format, list);
    va_end(list);
    return false;
}

static bool good(struct check *check, int error, const char *what)
{
    double err_rel = check->verdict.err_rel, pct = check->verdict.checked_pct;
    if (!error) return true;
    check->verdict = verdict_of_error(check->bound, error, what);
    check->verdict.err_rel = err_rel;
    check->verdict.checked_pct = pct;
    return false;
}

static void begin_step(struct check *check, const char *what)
{
    check->step(check->step_arg, what);
}

/* Compares one float output on the host; notes the error, words the failure. */
static bool compare_output(struct check *check, int t, int set, const void *got, int64_t stride, int poison, const char *when)
{
    struct workload *w = check->bound->w;
    struct worst worst = compare_rows(&w->problem, t, got, stride, poison, check->bound->kernel->promises & CLEAN,
                                      w->ref[set][t], w->checked[set][t]);
    char where[160];
    check->verdict.err_rel = fmax(check->verdict.err_rel, worst.err_rel);
    if (worst.row < 0 || worst.excess <= 1) return true;
    element_text(&w->problem, t, worst.row, worst.column, where, sizeof where);
    const char *rows = worst.rows == 1 ? "row" : "rows";
    if (worst.nan && !isfinite(worst.want))
        return fail(check, STATUS_WRONG, "%s: %s is %.6g, should be %.6g; %lld of %lld %s wrong", when, where,
                    worst.got, worst.want, (long long)worst.failed_rows, (long long)worst.rows, rows);
    if (worst.nan && !worst.untouched)
        return fail(check, STATUS_NAN, "%s: %s is %.6g, should be %.6g; %lld of %lld %s wrong", when, where, worst.got, worst.want,
                    (long long)worst.failed_rows, (long long)worst.rows, rows);
    if (worst.untouched)
        return fail(check, STATUS_WRONG, "%s: %s was not written; %lld of %lld %s wrong", when, where, (long long)worst.failed_rows,
                    (long long)worst.rows, rows);
    return fail(check, STATUS_WRONG, "%s: %s is %.6g, should be %.6g (%.3gx the tolerance); %lld of %lld %s wrong",
                when, where, worst.got, worst.want, worst.excess, (long long)worst.failed_rows, (long long)worst.rows, rows);
}

/* Integer and packed outputs, or ops with a rule of their own, which sees the inputs, too. Rows go over dense; `at` is where the
 * outputs were fetched from. */
static bool compare_verified(struct check *check, int set, void *const *got, const struct arg *at, const char *when)
{
    struct workload *w = check->bound->w;
    void *t[MAX_TENSORS], *dense[MAX_TENSORS] = {0};
    char why[200];
    for (int i = 0; i < w->n; i++) {
        const struct shape *shape = &w->shape[i];
        t[i] = w->host[set][i];
        if (!shape->output || !got[i]) continue;
        t[i] = dense[i] = must_alloc((size_t)shape->rows, (size_t)shape->row_bytes);
        for (int64_t r = 0; r < shape->rows; r++)
            memcpy((char *)dense[i] + r * shape->row_bytes, (char *)got[i] + r * at[i].stride, (size_t)shape->row_bytes);
    }
    bool wrong = w->op->verify(&w->problem, t, w->ref[set], why, sizeof why);
    for (int i = 0; i < w->n; i++) free(dense[i]);
    return !wrong || fail(check, STATUS_WRONG, "%s: %s", when, why);
}

/* Fetches an output with its stride; the caller frees. */
static int fetch(struct workload *w, struct arg from, int t, void **ret)
{
    size_t bytes = (size_t)(w->shape[t].rows * from.stride);
    *ret = must_alloc(bytes + 16, 1);
    return w->dev->ops->get(w->dev, *ret, from.p, bytes);
}

/* Between rows of a strided output lies somebody else's data: the poison must still be there. */
static bool gaps_ok(struct check *check, int t, const char *got, int poison, const char *when)
{
    const struct shape *shape = &check->bound->w->shape[t];
    for (int64_t r = 0; r < shape->rows && !shape->input; r++)
        for (int64_t i = r * shape->check_stride + shape->row_bytes; i < (r + 1) * shape->check_stride; i++)
            if ((uint8_t)got[i] != poison)
                return fail(check, STATUS_OVERWRITE, "%s: wrote behind row %lld of %s, into what lies between its rows", when,
                    (long long)r,
                            check->bound->w->op->tensor[t].name);
    return true;
}

/* Whether the op leaves elements of an output open, as far as its reference was made. */
static bool leaves_open(const struct workload *w, int t)
{
    const struct shape *shape = &w->shape[t];
    const double *ref = w->ref[0][t];
    bool found = false;
    if (w->op->tensor[t].dtype > E4M3) return false;
    for (int64_t r = 0; r < shape->rows && !found; r++)
        for (int64_t i = 0; i < shape->row_elements && w->checked[0][t][r] && !found; i++)
            found = is_unspecified(ref[r * shape->row_elements + i]);
    return found;
}

/* An element that a kernel need not write, and so may hold either launch's poison. Where the reference was not made, both must. */
static bool is_open(const struct workload *w, int t, int64_t row, int64_t i, const char *first, const char *got, int poison)
{
    const struct shape *shape = &w->shape[t];
    if (w->checked[0][t][row]) return is_unspecified(((const double *)w->ref[0][t])[row * shape->row_elements + i]);
    for (int b = 0; b < shape->element_bytes; b++)
        if ((uint8_t)first[b] != POISON_FINITE || (uint8_t)got[b] != poison) return false;
    return true;
}

static bool same_as_first(struct check *check, int t, const char *got, int poison, const char *rule)
{
    struct workload *w = check->bound->w;
    const struct shape *shape = &w->shape[t];
    const char *first = check->first[t];
    int open = -1, n = shape->element_bytes;
    for (int64_t r = 0; r < shape->rows; r++) {
        int64_t at = r * shape->check_stride;
        if (!memcmp(first + at, got + at, (size_t)shape->row_bytes)) continue;
        if (open < 0) open = leaves_open(w, t);
        for (int64_t i = 0; i < shape->row_elements; i++, at += n) {
            if (!memcmp(first + at, got + at, (size_t)n) || (open && is_open(w, t, r, i, first + at, got + at, poison))) continue;
            char where[160];
            element_text(&w->problem, t, r, i, where, sizeof where);
            return fail(check, STATUS_WRONG, "%s: %s", where, rule);
        }
    }
    return true;
}

/* All outputs of a launch that is over: guards, gaps, inputs, then values of `set`; `rule`: also equal to the first launch's, else
 * this is why not. keep: this is the first launch. */
static bool outputs_ok(struct check *check, int set, int poison, const char *when, const char *rule, bool keep)
{
    struct workload *w = check->bound->w;
    void *got[MAX_TENSORS] = {0};
    char why[200];
    int error;
    bool ok = true;
    if (!workload_guards_ok(w, &error, why, sizeof why))
        return error ? good(check, error, when) : fail(check, STATUS_OVERWRITE, "%s: %s", when, why);
    if (!workload_inputs_ok(w, &error, why, sizeof why))
        return error ? good(check, error, when) : fail(check, STATUS_WRONG, "%s: %s", when, why);
    for (int t = 0; t < w->n && ok; t++) {
        if (!w->shape[t].output) continue;
        ok = good(check, fetch(w, w->check[t], t, &got[t]), when) && gaps_ok(check, t, got[t], poison, when);
        if (ok && rule) ok = same_as_first(check, t, got[t], poison, rule);
        if (ok && !w->op->verify && w->op->tensor[t].dtype <= E4M3)
            ok = compare_output(check, t, set, got[t], w->shape[t].check_stride, poison, when);
    }
    if (ok && w->op->verify) ok = compare_verified(check, set, got, w->check, when);
    for (int t = 0; t < w->n; t++)
        if (keep) check->first[t] = got[t];
        else free(got[t]);
    return ok;
}

static bool guards_whole(struct check *check, const void *begin, size_t bytes, const char *name, const char *when)
{
    uint8_t guard[2][GUARD_BYTES];
    struct dev *dev = check->bound->w->dev;
    if (!bytes) return true;
    if (!good(check, dev->ops->get(dev, guard[0], (const char *)begin - GUARD_BYTES, GUARD_BYTES), when) ||
        !good(check, dev->ops->get(dev, guard[1], (const char *)begin + bytes, GUARD_BYTES), when)) return false;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < GUARD_BYTES; i++)
            if (guard[side][i] != GUARD_BYTE)
                return fail(check, STATUS_OVERWRITE, "%s: wrote %s of its %s", when, side ? "behind the end" : "before the begin",
                    name);
    return true;
}

/* Scratch memory after a launch: stayed inside it, and counters are zero again. */
static bool scratch_ok(struct check *check, const char *when)
{
    struct bound *bound = check->bound;
    if (!guards_whole(check, bound->workspace, bound->workspace_bytes, "workspace", when) ||
        !guards_whole(check, bound->zeroed, bound->zeroed_bytes, "zeroed counters", when)) return false;
    if (!bound->zeroed_bytes) return true;
    uint8_t *bytes = must_alloc(bound->zeroed_bytes, 1);
    int error = bound->w->dev->ops->get(bound->w->dev, bytes, bound->zeroed, bound->zeroed_bytes);
    size_t i = 0;
    while (!error && i < bound->zeroed_bytes && !bytes[i]) i++;
    free(bytes);
    if (error) return good(check, error, when);
    return i == bound->zeroed_bytes || fail(check, STATUS_WRONG, "%s: counters not zero again after the launch, byte %zu", when, i);
}

/* Poisons, launches by `how`, waits. */
static bool launch(struct check *check, enqueue_fn *how, void *arg, int poison, int workspace, const char *what)
{
    struct bound *bound = check->bound;
    struct workload *w = bound->w;
    begin_step(check, what);
    if (!good(check, workload_poison_outputs(w, poison), what)) return false;
    if (bound->workspace_bytes && !good(check, w->dev->ops->set(w->dev, bound->workspace, workspace, bound->workspace_bytes),
        what)) return false;
    if (!good(check, w->dev->ops->poison_shared(w->dev), what)) return false;
    return good(check, how(arg), what) && good(check, w->dev->ops->sync(w->dev), what) && scratch_ok(check, what);
}

static const char *const NOT_DETERMINISTIC = "differs between launches on the same inputs: not deterministic";
static const char *const READS_WORKSPACE =
    "depends on what the workspace held before the launch: it reads workspace that it did not write";
static const char *const EITHER =
    "differs between launches on the same inputs: not deterministic, or it reads workspace that it did not write";

/* On the CPU a launch can take as long as all else of a check: one more of them has to tell both faults. */
static bool repeats_on_host(struct check *check)
{
    return launch(check, bound_launch, check->bound, POISON_NAN, WORKSPACE_GARBAGE, "second launch") &&
           outputs_ok(check, 0, POISON_NAN, "second launch", check->bound->workspace_bytes ? EITHER : NOT_DETERMINISTIC, false);
}

static bool repeats_on_device(struct check *check)
{
    struct bound *bound = check->bound;
    struct dev *dev = bound->w->dev;
    size_t before = dev->ops->free_bytes(dev);
    if (!launch(check, bound_launch, bound, POISON_NAN, POISON_NAN, "second launch")) return false;
    size_t after = dev->ops->free_bytes(dev);
    if (!outputs_ok(check, 0, POISON_NAN, "second launch", NOT_DETERMINISTIC, false)) return false;
    if (after + (1 << 20) < before)
        return fail(check, STATUS_CAPTURE_FAIL, "launch allocates: %.3g MB less are free after a launch",
            (double)(before - after) * 1e-6);
    const char *what = "launch with other bytes in the workspace";
    return !bound->workspace_bytes || (launch(check, bound_launch, bound, POISON_NAN, WORKSPACE_GARBAGE, what) &&
                                       outputs_ok(check, 0, POISON_NAN, what, READS_WORKSPACE, false));
}

static bool eager_launches(struct check *check)
{
    if (!launch(check, bound_launch, check->bound, POISON_FINITE, POISON_NAN, "first launch")) return false;
    if (!outputs_ok(check, 0, POISON_FINITE, "first launch", NULL, true)) return false;
    return check->bound->kernel->engine == HOST ? repeats_on_host(check) : repeats_on_device(check);
}

struct replay {
    struct dev   *dev;
    struct graph *graph;
};

static int replay(void *arg)
{
    struct replay *replay = arg;
    return replay->dev->ops->replay(replay->dev, replay->graph);
}

/* Set 1 under the same addresses, then set 0 again: stale data, baked-in lengths and memoised answers come out. */
static bool replays(struct check *check, struct replay *captured)
{
    struct bound *bound = check->bound;
    struct workload *w = bound->w;
    if (!good(check, workload_put(w, 1, bound->kernel->reads), "second input set")) return false;
    if (!launch(check, replay, captured, POISON_FINITE, WORKSPACE_GARBAGE, "replay with other inputs and lengths") ||
        !outputs_ok(check, 1, POISON_FINITE, "replay with other inputs and lengths", NULL, false)) return false;
    if (bound->kernel->engine == HOST) return true;   /* a replay is a plain launch there */
    if (!launch(check, bound_launch, bound, POISON_NAN, POISON_NAN, "launch with other inputs at the same addresses") ||
        !outputs_ok(check, 1, POISON_NAN, "launch with other inputs at the same addresses", NULL, false)) return false;
    return good(check, workload_put(w, 0, bound->kernel->reads), "first input set") &&
           launch(check, replay, captured, POISON_NAN, POISON_NAN, "replay with the first inputs again") &&
           outputs_ok(check, 0, POISON_NAN, "replay with the first inputs again", "differs between an eager launch and a replay",
               false);
}

static bool captured(struct check *check)
{
    struct bound *bound = check->bound;
    struct dev *dev = bound->w->dev;
    struct replay graph = {.dev = dev};
    bool asynchronous = true;
    char why[200] = "";
    int nodes;
    const char *behind = "launch behind unfinished work";
    begin_step(check, behind);
    if (bound->kernel->engine == CUDA && !good(check, dev->ops->asynchronous(dev, bound_launch, bound, &asynchronous), behind))
        return false;
    if (!asynchronous) return fail(check, STATUS_CAPTURE_FAIL, "launch synchronises: it waited for earlier work of its stream");
    begin_step(check, "capture");
    int error = dev->ops->capture(dev, bound_launch, bound, &graph.graph, &nodes, why, sizeof why);
    if (error == DEV_FORBIDDEN) return fail(check, STATUS_CAPTURE_FAIL, "%s", why);
    if (!good(check, error, "capture")) return false;
    bool ok = replays(check, &graph);
    if (!dev->sticky) dev->ops->drop(dev, graph.graph);
    return ok;
}

struct verdict check_kernel(struct bound *bound, step_fn *step, void *arg)
{
    struct workload *w = bound->w;
    struct check check = {.bound = bound, .step = step, .step_arg = arg,
                          .verdict = {.err_rel = 0, .checked_pct = w->head->checked_pct}};
    bool ok = good(&check, workload_check_buffers(w), "check buffers") && good(&check, workload_put(w, 0, bound->kernel->reads),
        "first input set");
    bound->t = w->check;
    if (ok && eager_launches(&check)) captured(&check);
    for (int t = 0; t < MAX_TENSORS; t++) free(check.first[t]);
    return check.verdict;
}

struct verdict check_once(struct bound *bound, step_fn *step, void *arg)
{
    struct workload *w = bound->w;
    struct check check = {.bound = bound, .step = step, .step_arg = arg,
                          .verdict = {.err_rel = 0, .checked_pct = w->head->checked_pct}};
    begin_step(&check, "single launch");
    bool ok = good(&check, workload_check_buffers(w), "check buffers") && good(&check, workload_put(w, 0, bound->kernel->reads),
        "first input set") &&
              good(&check, workload_poison_outputs(w, POISON_FINITE), "outputs");
    bound->t = w->check;
    ok = ok && good(&check, bound_launch(bound), "single launch") && good(&check, w->dev->ops->sync(w->dev), "single launch");
    if (ok && !(bound->kernel->promises & PROBE)) outputs_ok(&check, 0, POISON_FINITE, "single launch", NULL, false);
    return check.verdict;
}

struct verdict check_ring_set(struct bound *bound)
{
    struct workload *w = bound->w;
    struct check check = {.bound = bound, .verdict = {.err_rel = 0, .checked_pct = w->head->checked_pct}};
    void *got[MAX_TENSORS] = {0};
    const struct arg *arg = w->ring;
    bool ok = true;
    for (int t = 0; t < w->n && ok; t++) {
        if (!w->shape[t].output || w->shape[t].input) continue;
        ok = good(&check, fetch(w, arg[t], t, &got[t]), "outputs of a timed launch");
        if (ok && !w->op->verify && w->op->tensor[t].dtype <= E4M3)
            ok = compare_output(&check, t, 0, got[t], arg[t].stride, POISON_NAN, "timed launch");
    }
    if (ok && w->op->verify) compare_verified(&check, 0, got, arg, "timed launch");
    for (int t = 0; t < w->n; t++) free(got[t]);
    return check.verdict;
}

#include "judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "compare.h"
#include "dtype.h"

bool judge_fail(struct check *check, enum status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    check->verdict.status = status;
    vsnprintf(check->verdict.reason, sizeof check->verdict.reason, format, list);
    va_end(list);
    return false;
}

bool judge_good(struct check *check, int error, const char *what)
{
    double err_rel = check->verdict.err_rel, pct = check->verdict.checked_pct;
    if (!error) return true;
    check->verdict = verdict_of_error(check->bound, error, what);
    check->verdict.err_rel = err_rel;
    check->verdict.checked_pct = pct;
    return false;
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
    char share[80];
    text(share, sizeof share, "%lld of %lld %s wrong", (long long)worst.failed_rows, (long long)worst.rows,
         worst.rows == 1 ? "row" : "rows");
    if (worst.nan && (!isfinite(worst.want) || !worst.untouched))
        return judge_fail(check, isfinite(worst.want) ? STATUS_NAN : STATUS_WRONG, "%s: %s is %.6g, should be %.6g; %s", when,
                          where, worst.got, worst.want, share);
    if (worst.untouched) return judge_fail(check, STATUS_WRONG, "%s: %s was not written; %s", when, where, share);
    return judge_fail(check, STATUS_WRONG, "%s: %s is %.6g, should be %.6g (%.3gx the tolerance); %s", when, where, worst.got,
                      worst.want, worst.excess, share);
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
    return !wrong || judge_fail(check, STATUS_WRONG, "%s: %s", when, why);
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
                return judge_fail(check, STATUS_OVERWRITE, "%s: wrote behind row %lld of %s, into what lies between its rows", when,
                    (long long)r, check->bound->w->op->tensor[t].name);
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
            return judge_fail(check, STATUS_WRONG, "%s: %s", where, rule);
        }
    }
    return true;
}

bool judge_outputs(struct check *check, int set, int poison, const char *when, const char *rule, bool keep)
{
    struct workload *w = check->bound->w;
    void *got[MAX_TENSORS] = {0};
    char why[200];
    int error;
    bool ok = true;
    if (!workload_guards_ok(w, &error, why, sizeof why))
        return error ? judge_good(check, error, when) : judge_fail(check, STATUS_OVERWRITE, "%s: %s", when, why);
    if (!workload_inputs_ok(w, &error, why, sizeof why))
        return error ? judge_good(check, error, when) : judge_fail(check, STATUS_WRONG, "%s: %s", when, why);
    for (int t = 0; t < w->n && ok; t++) {
        if (!w->shape[t].output) continue;
        ok = judge_good(check, fetch(w, w->check[t], t, &got[t]), when) && gaps_ok(check, t, got[t], poison, when);
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
    if (!judge_good(check, dev->ops->get(dev, guard[0], (const char *)begin - GUARD_BYTES, GUARD_BYTES), when) ||
        !judge_good(check, dev->ops->get(dev, guard[1], (const char *)begin + bytes, GUARD_BYTES), when)) return false;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < GUARD_BYTES; i++)
            if (guard[side][i] != GUARD_BYTE)
                return judge_fail(check, STATUS_OVERWRITE, "%s: wrote %s of its %s", when,
                                  side ? "behind the end" : "before the begin", name);
    return true;
}

bool judge_scratch(struct check *check, const char *when)
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
    if (error) return judge_good(check, error, when);
    if (i == bound->zeroed_bytes) return true;
    return judge_fail(check, STATUS_WRONG, "%s: counters not zero again after the launch, byte %zu", when, i);
}

void judge_ring_outputs(struct check *check)
{
    struct workload *w = check->bound->w;
    const struct arg *arg = w->ring;
    void *got[MAX_TENSORS] = {0};
    bool ok = true;
    for (int t = 0; t < w->n && ok; t++) {
        if (!w->shape[t].output || w->shape[t].input) continue;
        ok = judge_good(check, fetch(w, arg[t], t, &got[t]), "outputs of a timed launch");
        if (ok && !w->op->verify && w->op->tensor[t].dtype <= E4M3)
            ok = compare_output(check, t, 0, got[t], arg[t].stride, POISON_NAN, "timed launch");
    }
    if (ok && w->op->verify) compare_verified(check, 0, got, arg, "timed launch");
    for (int t = 0; t < w->n; t++) free(got[t]);
}

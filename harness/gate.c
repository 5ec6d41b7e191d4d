#include "gate.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "gate_known.h"
#include "wanting.h"

const char *const verdict_name[GATE_VERDICTS] = {"holds", "broken", "inconclusive", "left out"};
const double      gate_marked_margin = 2;
const struct gate gate_whole_run = {.name = "the whole run"};

static struct finding *add(struct findings *all, const struct gate *gate, enum verdict verdict)
{
    all->finding = must_grow(all->finding, (size_t)all->n + 1, sizeof *all->finding);
    struct finding *f = &all->finding[all->n++];
    *f = (struct finding){.gate = gate, .verdict = verdict, .ratio = NAN, .lo = NAN, .hi = NAN, .floor_pct = NAN};
    return f;
}

/* The dimensions that the gate names have these values; which: an index into each axis. */
static bool on_problem(const struct row *row, const struct gate *gate, const int *which)
{
    for (int a = 0; a < gate->n_axes; a++)
        if (row_dim(row, gate->axis[a].name) != gate->axis[a].value[which[a]]) return false;
    return true;
}

/* Of several rows, tunings and repeats, the fastest counts; NULL: none has a time. A failed one comes back instead. */
static const struct row *row_of(const struct table *run, const struct row *group, const char *kernel, const struct row **ret_failed)
{
    const struct row *best = NULL;
    for (int i = 0; i < run->n; i++) {
        const struct row *row = &run->row[i];
        if (strcmp(row->kernel, kernel) || !row_same_group(row, group)) continue;
        if (row_status(row) != STATUS_OK) {
            if (!*ret_failed || row_failed(row)) *ret_failed = row;
        } else if (row->t_med_ns > 0 && (!best || row->t_med_ns < best->t_med_ns)) {
            best = row;
        }
    }
    return best;
}

static char *problem_of(const struct row *row, char *ret, size_t size)
{
    size_t n = 0;
    *ret = 0;
    for (int d = 0; d < row->n_dims; d++) {
        char value[24];
        if (row->dim[d].value == INT64_MIN) continue;
        dim_text(row->dim[d].name, row->dim[d].value, value, sizeof value);
        n += strlen(text(ret + n, size - n, "%s%s=%s", n ? "," : "", row->dim[d].name, value));
    }
    if (strcmp(row->cache, "cold")) text(ret + n, size - n, " %s", row->cache);
    return ret;
}

static char *combination_of(const struct gate *gate, const int *which, char *ret, size_t size)
{
    size_t n = strlen(text(ret, size, "%s", gate->n_axes ? "" : "any problem"));
    for (int a = 0; a < gate->n_axes; a++) {
        char value[24];
        dim_text(gate->axis[a].name, gate->axis[a].value[which[a]], value, sizeof value);
        n += strlen(text(ret + n, size - n, "%s%s=%s", a ? "," : "", gate->axis[a].name, value));
    }
    return ret;
}

/* No time to compare: a row that is missing or has failed is no better than a slow one, but one that is still to come. */
static void no_time(struct findings *all, const struct gate *gate, const struct row *group, const char *kernel,
                    const struct row *failed)
{
    struct finding *f = add(all, gate, failed && row_wanting(failed) ? GATE_OPEN : GATE_BROKEN);
    problem_of(group, f->what, sizeof f->what);
    if (failed && row_wanting(failed)) text(f->why, sizeof f->why, "%s is planned and not measured yet", kernel);
    else if (failed)
        text(f->why, sizeof f->why, "%s is %s%s%s", kernel, failed->status, *failed->reason ? ": " : "", failed->reason);
    else text(f->why, sizeof f->why, "the run has no time of %s", kernel);
    if (failed && !row_wanting(failed) && *failed->repeat) f->repeat = failed->repeat;
}

/* What the gate's ratios are held against. */
struct held {
    const struct table        *run;
    const struct noise_floors *floors;
    bool                       strict;
};

/* NULL, or why the row's times are no median within an interval. */
static const char *unsettled(const struct row *row)
{
    bool interval = row->t_lo_ns > 0 && row->t_hi_ns >= row->t_lo_ns && !isinf(row->t_hi_ns);
    if (!interval) return "has no interval";
    return row->t_med_ns >= row->t_lo_ns && row->t_med_ns <= row->t_hi_ns ? NULL : "has a median outside of its own interval";
}

static void compare(struct findings *all, const struct gate *gate, const struct row *kernel, const struct row *over,
                    const struct held *held)
{
    struct finding *f = add(all, gate, GATE_OPEN);
    double          limit = gate->at_least;
    const char     *marks = *kernel->marks ? kernel->marks : over->marks, *why = unsettled(kernel), *also = unsettled(over);
    f->ratio = over->t_med_ns / kernel->t_med_ns;
    f->lo = over->t_lo_ns / kernel->t_hi_ns;
    f->hi = over->t_hi_ns / kernel->t_lo_ns;
    /* Of a number and a NaN fmax gives the number. */
    f->floor_pct = fmax(noise_floor_pct(held->floors, kernel), noise_floor_pct(held->floors, over));
    if (f->floor_pct > 0) f->lo /= 1 + f->floor_pct / 100, f->hi *= 1 + f->floor_pct / 100;
    problem_of(kernel, f->what, sizeof f->what);
    if (!why && !also && (!(f->lo > 0) || isinf(f->hi))) why = "is too far from the other for a ratio";
    if (why || also) {
        text(f->why, sizeof f->why, "%s %s", why ? gate->kernel : gate->over, why ? why : also);
        if (*kernel->repeat) f->repeat = kernel->repeat;
        return;
    }
    if (f->lo >= limit) f->verdict = GATE_HOLDS;
    else if (f->hi < limit) f->verdict = GATE_BROKEN;
    else text(f->why, sizeof f->why, "the limit lies within the interval");
    bool clear = f->ratio >= limit * gate_marked_margin || f->ratio <= limit / gate_marked_margin;
    if (*marks && f->verdict != GATE_OPEN && (held->strict || !clear)) {
        f->verdict = GATE_OPEN;
        text(f->why, sizeof f->why, "%s is marked %s%s", *kernel->marks ? gate->kernel : gate->over, marks,
            held->strict ? "" : ", and the limit is not twice away");
    }
    if (f->verdict != GATE_HOLDS && *kernel->repeat) f->repeat = kernel->repeat;
}

/* All groups of one combination of values. False: the kernel has no row there. */
static bool judge_problem(struct findings *all, const struct gate *gate, const int *which, const struct held *held)
{
    const struct table *run = held->run;
    bool any = false;
    for (int i = 0; i < run->n; i++) {
        const struct row *row = &run->row[i], *failed = NULL, *kernel, *over;
        bool              seen = false;
        if (strcmp(row->kernel, gate->kernel) || !on_problem(row, gate, which)) continue;
        for (int j = 0; j < i && !seen; j++) seen = !strcmp(run->row[j].kernel, gate->kernel) && row_same_group(&run->row[j], row);
        any = true;
        if (seen) continue;
        kernel = row_of(run, row, gate->kernel, &failed);
        if (!kernel || (failed && row_failed(failed))) {
            no_time(all, gate, row, gate->kernel, failed);
            continue;
        }
        failed = NULL;
        over = row_of(run, row, gate->over, &failed);
        if (!over || (failed && row_failed(failed))) no_time(all, gate, row, gate->over, failed);
        else compare(all, gate, kernel, over, held);
    }
    return any;
}

/* The next combination of values, the last axis fastest; false behind the last. */
static bool next(const struct gate *gate, int *which)
{
    for (int a = gate->n_axes - 1; a >= 0; a--) {
        if (++which[a] < gate->axis[a].n) return true;
        which[a] = 0;
    }
    return false;
}

static void judge_ratio(struct findings *all, const struct gate *gate, const struct held *held)
{
    const struct table *run = held->run;
    int  which[MAX_DIMS] = {0};
    bool engine_there = false;
    for (int i = 0; i < run->n; i++) engine_there |= !strcmp(run->row[i].engine, gate->device == CUDA ? "cuda" : "host");
    if (gate->has_device && !engine_there) {
        text(add(all, gate, GATE_LEFT_OUT)->why, sizeof all->finding->why, "the run is not of the %s engine",
            gate->device == CUDA ? "cuda" : "host");
        return;
    }
    do {
        if (judge_problem(all, gate, which, held)) continue;
        struct finding *f = add(all, gate, GATE_BROKEN);
        combination_of(gate, which, f->what, sizeof f->what);
        text(f->why, sizeof f->why, "the run has no row of %s", gate->kernel);
    } while (next(gate, which));
}

static bool of_gate(const struct gate *gate, const struct static_fact *fact)
{
    if (*gate->sm && strcmp(gate->sm, fact->sm)) return false;
    for (int g = 0; g < gate->n_globs; g++)
        if (!fnmatch(gate->glob[g].word, fact->kernel, 0)) return true;
    return false;
}

static void judge_static(struct findings *all, const struct gate *gate, const struct static_fact *facts, const char *toolkit)
{
    int met = 0, broken = 0;
    for (const struct static_fact *fact = facts; fact->kernel && same_toolkit(gate->toolkit, toolkit); fact++) {
        if (!of_gate(gate, fact)) continue;
        met++;
        for (int i = 0; i < STATIC_NUMBERS; i++) {
            if (gate->most[i] < 0 || fact->number[i] <= gate->most[i]) continue;
            struct finding *f = add(all, gate, GATE_BROKEN);
            text(f->what, sizeof f->what, "%s, sm %s, %.200s", fact->kernel, fact->sm, fact->function);
            text(f->why, sizeof f->why, "%s is %d, at most %d is allowed: %s", static_columns[i].name, (int)fact->number[i],
                (int)gate->most[i], static_columns[i].help);
            broken++;
        }
    }
    if (broken) return;
    struct finding *f = add(all, gate, met ? GATE_HOLDS : GATE_LEFT_OUT);
    if (met) text(f->what, sizeof f->what, "%d function%s", met, met == 1 ? "" : "s");
    else if (!facts->kernel) text(f->why, sizeof f->why, "this build has no CUDA code");
    else if (!same_toolkit(gate->toolkit, toolkit))
        text(f->why, sizeof f->why, "limits are for CUDA %s, this build is by %s", gate->toolkit, toolkit);
    else text(f->why, sizeof f->why, "this build has no code for sm %s", gate->sm);
}

static void judge_whole(struct findings *all, const struct table *run)
{
    enum { SHOWN = 3 };
    struct finding *f = NULL;
    int             wanting = 0;
    size_t          n = 0;
    for (int i = 0; i < run->n; i++) {
        const struct row *row = &run->row[i];
        char problem[400];
        if (!row_wanting(row)) continue;
        if (!f) f = add(all, &gate_whole_run, GATE_OPEN), f->repeat = row->repeat;
        if (wanting++ < SHOWN)
            n += strlen(text(f->why + n, sizeof f->why - n, "%s%s%s%s %.90s", n ? "; " : "", row->kernel, *row->tune ? " " : "",
                row->tune, problem_of(row, problem, sizeof problem)));
    }
    if (wanting > SHOWN) text(f->why + n, sizeof f->why - n, "; and %d more", wanting - SHOWN);
    if (wanting) text(f->what, sizeof f->what, "%d of %d rows are not there", wanting, run->n);
    if (!run->torn) return;
    f = add(all, &gate_whole_run, GATE_OPEN);
    text(f->why, sizeof f->why, "rows.csv:%d: the last line is cut short; --resume cuts it off and measures what is missing",
        run->torn);
}

struct findings gate_judge(const struct gatefile *file, const struct table *run, const struct noise_floors *floors,
                           const struct static_fact *facts, const char *toolkit, bool strict)
{
    struct held     held = {run, floors, strict};
    struct findings all = {0};
    if (run) judge_whole(&all, run);
    for (int i = 0; i < file->n; i++) {
        const struct gate *gate = &file->gate[i];
        if (gate->is_static) judge_static(&all, gate, facts, toolkit);
        else if (run) judge_ratio(&all, gate, &held);
    }
    for (int i = 0; i < all.n; i++) all.count[all.finding[i].verdict]++;
    return all;
}

void findings_free(struct findings *all)
{
    free(all->finding);
    *all = (struct findings){0};
}

int findings_code(const struct findings *all)
{
    if (all->count[GATE_BROKEN]) return EXIT_REGRESSION;
    if (all->count[GATE_OPEN] || !all->count[GATE_HOLDS]) return EXIT_INCONCLUSIVE;
    return EXIT_OK;
}

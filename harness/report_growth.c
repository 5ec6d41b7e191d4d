/* Growth for people: one line a kernel, with the widest series of each dimension; and what grows above its declaration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "registry.h"
#include "report_parts.h"

static bool same_runner(const struct row *a, const struct row *b)
{
    return !strcmp(a->kernel, b->kernel) && !strcmp(a->tune, b->tune) && !strcmp(a->engine, b->engine) &&
        !strcmp(a->cache, b->cache) && a->seed == b->seed;
}

/* Of two series of one kernel and dimension the one to show: a verdict that matters, then the wider, then the longer in time. */
static bool tells_more(const struct scaling *a, const struct scaling *b)
{
    static const int weight[] = {[SCALING_OK] = 0, [SCALING_UNJUDGED] = 0, [SCALING_OPEN] = 1, [SCALING_ABOVE] = 2};
    double wide_a = (double)a->to / (double)a->from, wide_b = (double)b->to / (double)b->from;
    if (weight[a->verdict] != weight[b->verdict]) return weight[a->verdict] > weight[b->verdict];
    if (wide_a != wide_b) return wide_a > wide_b;
    if (a->points != b->points) return a->points > b->points;
    return a->last->t_med_ns > b->last->t_med_ns;
}

const struct scaling *growth_of(const struct scalings *all, const struct row *row, const char *dim)
{
    const struct scaling *best = NULL;
    for (int i = 0; i < all->n; i++) {
        const struct scaling *s = &all->of[i];
        if (!strcmp(s->dim, dim) && same_runner(s->last, row) && (!best || tells_more(s, best))) best = s;
    }
    return best;
}

/* Most of the time at the largest size does not grow at all. */
static bool mostly_constant(const struct scaling *s)
{
    return s->fit.a > 0 && !s->fit.hinge && s->fit.t0 > s->last->t_med_ns / 2;
}

/* "max_ctx^0.98", with an interval that is wider than a tenth "ctx^0.8..1.1", and "ctx^1.00(1.2x)" where most is t0. */
static char *term_text(const struct scaling *s, char *ret, size_t size)
{
    char ratio[32];
    if (s->fit.hi - s->fit.lo <= 0.1) text(ret, size, "%s^%.2f", s->dim, s->fit.exponent);
    else if (isfinite(s->fit.hi)) text(ret, size, "%s^%.1f..%.1f", s->dim, s->fit.lo, s->fit.hi);
    else text(ret, size, "%s^%.1f..", s->dim, s->fit.lo);
    size_t n = strlen(ret);
    if (mostly_constant(s)) text(ret + n, size - n, "(%s)", ratio_text(s->ratio, ratio, sizeof(ratio)));
    return ret;
}

/* "max_ctx takes 1.43x (1.41..1.45) from 8K to 1M, declared flat (1.05x at most); at batch=32,ctx=512" */
static char *complaint_text(const struct scaling *s, const struct report_options *o, char *ret, size_t size)
{
    char ratio[32], from[32], to[32], bar[64], dims[600] = "";
    for (int d = 0; d < s->last->n_dims; d++) {
        char value[32];
        const char *name = s->last->dim[d].name;
        size_t n = strlen(dims);
        if (!strcmp(name, s->dim) || report_says_once(o, name)) continue;
        text(dims + n, sizeof(dims) - n, "%s%s=%s", n ? "," : "", name, dim_text(name, s->last->dim[d].value, value,
            sizeof(value)));
    }
    if (s->declared > 0) text(bar, sizeof(bar), "exponent %.2f (%.2f..%.2f), declared %g", s->fit.exponent, s->fit.lo, s->fit.hi,
        s->declared);
    else text(bar, sizeof(bar), "declared flat: %.2fx at most", SCALING_FLAT);
    return text(ret, size, "%s takes %s (%.2f..%.2f) from %s to %s, %s%s%s", s->dim, ratio_text(s->ratio, ratio, sizeof(ratio)),
        s->ratio_lo, s->ratio_hi, value_text(s->from, from, sizeof(from)), value_text(s->to, to, sizeof(to)), bar,
        dims[0] ? "; at " : "", dims);
}

/* The kernels that have a series, each once, in the order of the rows. Returns how many; free(). */
static int find_runners(const struct scalings *all, const struct row ***ret)
{
    int n = 0;
    *ret = must_alloc((size_t)all->n, sizeof(**ret));
    for (int i = 0; i < all->n; i++) {
        int k = 0;
        while (k < n && !same_runner((*ret)[k], all->of[i].first)) k++;
        if (k == n) (*ret)[n++] = all->of[i].first;
    }
    return n;
}

static char *runner_text(const struct row *row, const struct table *table, char *ret, size_t size)
{
    label_text(row, table->row, table->n, ret, size);
    size_t n = strlen(ret);
    text(ret + n, size - n, "%s%s", row_is_probe(row) ? " (probe)" : "", strcmp(row->cache, "hot") ? "" : " (hot)");
    return ret;
}

static void print_complaints(FILE *out, const struct scalings *all, const struct row *runner, const struct report_options *o)
{
    char words[sizeof(all->of->repeat)];
    for (int i = 0; i < all->n; i++) {
        const struct scaling *s = &all->of[i];
        if (!same_runner(s->last, runner) || s->verdict != SCALING_ABOVE) continue;
        fprintf(out, "    %sabove:%s ", o->colour ? "\033[1;31m" : "", o->colour ? "\033[0m" : "");
        wrap_words(out, o->width, 11, 6, complaint_text(s, o, words, sizeof(words)));
        fprintf(out, "      repeat: ");
        wrap_command(out, o->width, 14, 10, tame_text(s->repeat, words, sizeof(words)));
    }
}

static void print_runner(FILE *out, const struct scalings *all, const struct table *table, const struct row *row, int width,
    const struct report_options *o)
{
    char label[240], words[900] = "", term[80];
    for (int d = 0; d < row->n_dims; d++) {
        const struct scaling *s = growth_of(all, row, row->dim[d].name);
        size_t n = strlen(words);
        if (s) text(words + n, sizeof(words) - n, "%s%s%s", n ? " " : "", term_text(s, term, sizeof(term)),
            s->verdict == SCALING_ABOVE ? " above" : s->verdict == SCALING_OPEN ? "?" : "");
    }
    int column = fprintf(out, "  %-*s  ", width, runner_text(row, table, label, sizeof(label)));
    wrap_words(out, o->width, column, width + 4 < o->width / 2 ? width + 4 : 6, words);
    print_complaints(out, all, row, o);
}

static void print_legend(FILE *out, const struct scalings *all, const struct report_options *o)
{
    bool open = false, constant = false;
    char words[300];
    for (int i = 0; i < all->n; i++) open |= all->of[i].verdict == SCALING_OPEN, constant |= mostly_constant(&all->of[i]);
    text(words, sizeof(words), "time = t0 + a * size^exponent, or the larger of both%s%s",
        constant ? "; (1.2x): in all, as most of it is t0" : "",
        open ? "; ?: may be above what is declared, noise leaves it open" : "");
    fprintf(out, "\n%sgrowth%s: ", o->colour ? "\033[1m" : "", o->colour ? "\033[0m" : "");
    wrap_words(out, o->width, 8, 2, words);
}

void report_growth(FILE *out, const struct scalings *all, const struct table *table, const struct report_options *o)
{
    const struct row **runner;
    int n = find_runners(all, &runner), width = 0;
    if (n && o->markdown) {
        markdown_growth(out, all, table, runner, n);
    } else if (n) {
        for (int i = 0; i < n; i++) {
            char label[240];
            int wide = (int)strlen(runner_text(runner[i], table, label, sizeof(label)));
            if (wide > width && wide <= o->width / 2) width = wide;
        }
        print_legend(out, all, o);
        for (int i = 0; i < n; i++) print_runner(out, all, table, runner[i], width, o);
    }
    free(runner);
}

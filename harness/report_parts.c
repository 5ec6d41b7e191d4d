#include "report_parts.h"

#include <math.h>
#include <string.h>
#include "base.h"
#include "registry.h"

static char *add(char *ret, size_t size, const char *separator, const char *word)
{
    size_t n = strlen(ret);
    if (n < size) text(ret + n, size - n, "%s%s", n ? separator : "", word);
    return ret;
}

char *machine_text(const struct machine *m, char *ret, size_t size)
{
    char word[200];
    tame_text(m->name[0] ? m->name : "unknown device", ret, size);
    if (m->engine == CUDA && m->facts.sm_count) add(ret, size, ", ", text(word, sizeof(word), "%d SMs", m->facts.sm_count));
    if (m->driver[0]) add(ret, size, ", ", text(word, sizeof(word), "driver %s", m->driver));
    if (m->toolkit[0]) add(ret, size, ", ", text(word, sizeof(word), m->engine == CUDA ? "CUDA %s" : "%s", m->toolkit));
    if (m->engine == HOST && m->features[0]) add(ret, size, ", ", m->features);
    return ret;
}

char *ceilings_text(const struct machine *m, char *ret, size_t size)
{
    const struct ceilings *c = &m->ceilings;
    char number[32], word[64];
    ret[0] = '\0';
    if (c->read_GBps > 0) add(ret, size, ", ", text(word, sizeof(word), "read %s GB/s", amount_text(c->read_GBps, number,
        sizeof(number))));
    if (c->copy_GBps > 0) add(ret, size, ", ", text(word, sizeof(word), "copy %s GB/s", amount_text(c->copy_GBps, number,
        sizeof(number))));
    if (c->matrix_GFLOPs > 0) {
        bool tera = c->matrix_GFLOPs >= 1e4;
        amount_text(tera ? c->matrix_GFLOPs / 1e3 : c->matrix_GFLOPs, number, sizeof(number));
        add(ret, size, ", ", text(word, sizeof(word), "matrix %s %cFLOP/s", number, tera ? 'T' : 'G'));
    }
    if (c->floor_ns > 0) add(ret, size, ", ", text(word, sizeof(word), "floor %s", ns_text(c->floor_ns, number, sizeof(number))));
    return ret;
}

void report_see(struct report_options *o, const char *dim, int64_t value)
{
    for (int i = 0; i < o->n_seen; i++) {
        if (strcmp(o->seen[i].name, dim)) continue;
        o->seen[i].varies |= o->seen[i].value != value;
        return;
    }
    if (o->n_seen == COUNT(o->seen)) return;   /* then it stands in every group */
    struct seen_dim *seen = &o->seen[o->n_seen++];
    text(seen->name, sizeof(seen->name), "%s", dim);
    seen->value = value;
    seen->varies = false;
}

static bool any_varies(const struct report_options *o)
{
    for (int i = 0; i < o->n_seen; i++) {
        if (o->seen[i].varies) return true;
    }
    return false;
}

bool report_says_once(const struct report_options *o, const char *dim)
{
    for (int i = 0; i < o->n_seen; i++) {
        if (!strcmp(o->seen[i].name, dim)) return !o->seen[i].varies && any_varies(o);
    }
    return false;
}

static void add_dim(char *ret, size_t size, const char *separator, const char *name, int64_t value)
{
    char number[32], word[64];
    add(ret, size, separator, text(word, sizeof(word), "%s=%s", name, dim_text(name, value, number, sizeof(number))));
}

char *throughout_text(const struct report_options *o, char *ret, size_t size)
{
    ret[0] = '\0';
    for (int i = 0; i < o->n_seen; i++) {
        if (report_says_once(o, o->seen[i].name)) add_dim(ret, size, ", ", o->seen[i].name, o->seen[i].value);
    }
    return ret;
}

char *problem_dims_text(const struct row *row, const struct report_options *o, char *ret, size_t size)
{
    ret[0] = '\0';
    for (int i = 0; i < row->n_dims; i++) {
        if (!report_says_once(o, row->dim[i].name)) add_dim(ret, size, ",", row->dim[i].name, row->dim[i].value);
    }
    return ret;
}

char *regime_text(const struct row *rows, int n, char *ret, size_t size)
{
    char number[32];
    text(ret, size, "%s", rows[0].cache[0] ? rows[0].cache : "any cache");
    for (int i = 0; i < n; i++) {
        if (!(rows[i].ring_MB > 0) || rows[i].sets < 1) continue;
        size_t at = strlen(ret);
        text(ret + at, size - at, ", %d set%s of %s MB", (int)rows[i].sets, rows[i].sets == 1 ? "" : "s",
            amount_text(rows[i].ring_MB / (double)rows[i].sets, number, sizeof(number)));
        break;
    }
    return ret;
}

char *limit_text(const struct row *rows, int n, char *ret, size_t size)
{
    char number[32];
    ret[0] = '\0';
    for (int i = 0; i < n; i++) {
        if (!(rows[i].limit_ns > 0)) continue;
        return text(ret, size, rows[i].limit_by[0] ? "limit %s by %s" : "limit %s", ns_text(rows[i].limit_ns, number,
            sizeof(number)),
            rows[i].limit_by);
    }
    return ret;
}

/* The first mark of a ;-list into ret; returns what follows it. */
static const char *take_mark(const char *list, char *ret, size_t size)
{
    size_t n = strcspn(list, ";"), kept = n < size ? n : size - 1;
    memcpy(ret, list, kept);
    ret[kept] = '\0';
    return list + n + (list[n] == ';');
}

char *marks_text(const struct row *row, char *ret, size_t size)
{
    char word[sizeof(row->marks)], tame[sizeof(row->marks)];
    ret[0] = '\0';
    for (const char *list = row->marks; *list;) {
        list = take_mark(list, word, sizeof(word));
        if (word[0]) add(ret, size, ", ", tame_text(word, tame, sizeof(tame)));
    }
    return ret;
}

static int count_mark(const struct table *table, const char *mark)
{
    int n = 0;
    for (int i = 0; i < table->n; i++) {
        char word[sizeof(table->row[0].marks)];
        bool found = false;
        for (const char *list = table->row[i].marks; *list && !found;) {
            list = take_mark(list, word, sizeof(word));
            found = !strcmp(word, mark);
        }
        n += found;
    }
    return n;
}

char *counts_text(const struct table *table, int above, char *ret, size_t size)
{
    static const char *const marks[] = {"noisy", "throttled", "contended", "drifting", "bimodal"};
    int count[STATUS_COUNT + 1] = {0}, marked = 0;
    char word[64];
    ret[0] = '\0';
    for (int i = 0; i < table->n; i++) {
        count[row_status(&table->row[i])]++;
        marked += table->row[i].marks[0] != '\0';
    }
    for (int s = 0; s <= STATUS_COUNT; s++) {
        if (count[s]) add(ret, size, ", ", text(word, sizeof(word), "%d %s", count[s], s < STATUS_COUNT ? status_name[s]
            : "of unknown status"));
    }
    if (!table->n) text(ret, size, "no rows");
    if (above) add(ret, size, "; ", text(word, sizeof(word), above == 1 ? "1 growth above its declaration" :
        "%d growths above their declarations", above));
    if (marked) add(ret, size, "; ", text(word, sizeof(word), "%d with marks", marked));
    if (table->again) add(ret, size, "; ", text(word, sizeof(word), "%d measured again", table->again));
    bool first = true;
    for (int m = 0; m < COUNT(marks) && marked; m++) {
        int n = count_mark(table, marks[m]);
        if (n) add(ret, size, first ? ": " : ", ", text(word, sizeof(word), "%d %s", n, marks[m])), first = false;
    }
    return ret;
}

const struct row *report_base(const struct row *rows, int n)
{
    for (int i = 0; i < n; i++) {
        if (row_status(&rows[i]) == STATUS_OK && !row_is_probe(&rows[i]) && rows[i].t_med_ns > 0) return &rows[i];
    }
    return NULL;
}

double speedup(const struct row *base, const struct row *row, bool *ret_clear) {
    *ret_clear = false;
    if (!base || row_is_probe(row) || row_status(row) != STATUS_OK || !(row->t_med_ns > 0)) return NAN;
    *ret_clear = row->t_hi_ns < base->t_lo_ns || row->t_lo_ns > base->t_hi_ns;
    return base->t_med_ns / row->t_med_ns;
}

struct share share_of(const struct row *rows, int n)
{
    for (int i = 0; i < n; i++) {
        if (!isnan(rows[i].pct_probe)) return (struct share){"of probe", offsetof(struct row, pct_probe)};
    }
    return (struct share){"of limit", offsetof(struct row, pct_limit)};
}

double share_get(const struct share *share, const struct row *row) {
    return *(const double *)((const char *)row + share->offset);
}

int group_end(const struct table *table, int i)
{
    int end = i + 1;
    while (end < table->n && row_same_group(&table->row[i], &table->row[end])) end++;
    return end;
}

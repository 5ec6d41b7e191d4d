#include "sweep_again.h"

#include <string.h>

#include "again.h"
#include "base.h"
#include "identity.h"
#include "quiet.h"

/* The group's row of a variant among rows[first..], or NULL. */
static const struct row *row_of(const struct sweep_run *run, const struct job *job, int v, int first)
{
    struct row key;
    row_clear(&key);
    identify_row(&key, &job->group, v, &run->registry, run->cli);
    for (int i = first; i < run->rows.n; i++)
        if (row_same_key(&run->rows.row[i], &key)) return &run->rows.row[i];
    return NULL;
}

/* All that is right of a group runs again, what is not measured for its own sake beside it: what ran before a short kernel shows in
 * its time, and alone it would only run behind itself. Its verdict stands: it is not checked again. */
static void add_variant(struct job *ret, const struct job *of, int v, struct verdict verdict)
{
    int n = ret->group.n++;
    ret->group.variant[n] = of->group.variant[v];
    ret->decided[n] = true;
    ret->verdict[n] = verdict;
}

/* A group whose marks are worth a further try. beside: who is not. False: nobody. */
static bool marked_job(const struct sweep_run *run, const struct job *done, int first, int try, struct job *ret, bool *beside)
{
    int marked = 0;
    *ret = *done;
    ret->group.n = 0;
    for (int v = 0; v < done->group.n; v++) {
        const struct row *row = row_of(run, done, v, first);
        if (!row || row_status(row) != STATUS_OK) continue;
        bool again = quiet_tries(row->marks) >= try;
        beside[ret->group.n] = !again;
        marked += again;
        add_variant(ret, done, v, done->verdict[v]);
    }
    return marked > 0;
}

void sweep_measure_marked(struct sweep_run *run, const struct job *done, int first)
{
    enum { TRIES = 2, STAYS_BUSY = 3 };
    bool over = run->cli->budget_s > 0 && now_s() - run->began_s > run->cli->budget_s, tried = false;
    bool beside[MAX_VARIANTS];
    struct job again;
    if (run->check_only || run->cli->wrap || run->cli->rounds || over) return;
    for (int try = 1; try <= TRIES && run->busy < STAYS_BUSY && !*run->interrupted && !run->file_error; try++) {
        if (!marked_job(run, done, first, try, &again, beside)) break;
        for (int v = 0; v < again.group.n; v++) run->progress.total += !beside[v];
        sweep_run_job(run, &again, ONCE_MORE, beside);
        run->rows.again += again_settle(&run->rows, first);
        tried = true;
    }
    if (!marked_job(run, done, first, 1, &again, beside)) run->busy = 0;
    else if (tried && ++run->busy == STAYS_BUSY && !run->cli->quiet)
        say("the machine stays busy: from here on marked rows are not measured again");
}

static const struct row *right_row(const struct table *table, const struct row *key)
{
    for (int i = 0; i < table->n; i++)
        if (row_same_key(&table->row[i], key) && row_status(&table->row[i]) == STATUS_OK) return &table->row[i];
    return NULL;
}

/* The row's variant of a group, checked again, and what `table` has of the others. False: the group has no such row. */
static bool job_again(const struct sweep_run *run, const struct job *planned, const struct table *table, const struct row *row,
                      struct job *ret, bool *beside)
{
    bool found = false;
    *ret = *planned;
    ret->group.n = 0;
    for (int v = 0; v < planned->group.n; v++) {
        struct row key;
        row_clear(&key);
        identify_row(&key, &planned->group, v, &run->registry, run->cli);
        bool same = row_same_key(&key, row);
        const struct row *there = same ? row : right_row(table, &key);
        int n = ret->group.n;
        if (!there) continue;
        add_variant(ret, planned, v, (struct verdict){STATUS_OK, .err_rel = there->err_rel, .checked_pct = there->checked_pct});
        ret->decided[n] = beside[n] = !same;
        found |= same;
    }
    return found;
}

/* One row of the plan once more; false where the plan doesn't have it (a resumed run's may not). */
static bool measure_again(struct sweep_run *run, const struct table *table, const struct row *row)
{
    for (int g = 0; g < run->plan.n; g++) {
        struct job planned = sweep_job(run, &run->plan.group[g]), again;
        bool beside[MAX_VARIANTS];
        if (!job_again(run, &planned, table, row, &again, beside)) continue;
        run->progress.total++;
        sweep_run_job(run, &again, MEASURED_AGAIN, beside);
        return true;
    }
    return false;
}

void sweep_confirm_growth(struct sweep_run *run)
{
    enum { TURNS = 2, MOST = 8 };
    for (int turn = 0; turn < TURNS && !*run->interrupted && !run->file_error; turn++) {
        struct table    table;
        struct scalings s;
        if (!run_files_read(&run->files, &table)) return;
        s = scalings_find(&table);
        for (int i = 0, n = 0; i < s.n && n < MOST && !*run->interrupted; i++) {
            if (s.of[i].verdict != SCALING_ABOVE) continue;
            if (!n++ && !turn && !run->cli->quiet) say("time grows above a declaration: measuring its ends again, to be sure");
            if (measure_again(run, &table, s.of[i].last)) measure_again(run, &table, s.of[i].first);
        }
        scalings_free(&s), table_free(&table);
    }
}

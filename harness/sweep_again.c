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

/* What of a group is worth a further try, and the probe beside it. Checks hold: they are not done again. False: nothing. */
static bool marked_job(const struct sweep_run *run, const struct job *done, int first, int try, struct job *ret, bool *beside)
{
    int marked = 0;
    *ret = *done;
    ret->group.n = 0;
    for (int v = 0; v < done->group.n; v++) {
        const struct row *row = row_of(run, done, v, first);
        if (!row || row_status(row) != STATUS_OK) continue;
        bool again = quiet_tries(row->marks) >= try;
        if (!again && !row_is_probe(row)) continue;
        int n = ret->group.n++;
        ret->group.variant[n] = done->group.variant[v];
        ret->decided[n] = true;
        ret->verdict[n] = done->verdict[v];
        beside[n] = !again;
        marked += again;
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

/* One row of the plan once more; false where the plan doesn't have it (a resumed run's may not). */
static bool measure_again(struct sweep_run *run, const struct row *row)
{
    for (int g = 0; g < run->plan.n; g++)
        for (int v = 0; v < run->plan.group[g].n; v++) {
            struct row planned;
            struct job job = sweep_job(run, &run->plan.group[g]);
            row_clear(&planned);
            identify_row(&planned, &job.group, v, &run->registry, run->cli);
            if (!row_same_key(&planned, row)) continue;
            job.group.variant[0] = job.group.variant[v];
            job.group.n = 1;
            run->progress.total++;
            sweep_run_job(run, &job, MEASURED_AGAIN, NULL);
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
            if (measure_again(run, s.of[i].last)) measure_again(run, s.of[i].first);
        }
        scalings_free(&s), table_free(&table);
    }
}

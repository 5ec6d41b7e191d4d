#include "sweep_run.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "identity.h"

static struct timing timing_of(const struct sweep_run *run)
{
    const struct cli *cli = run->cli;
    bool host = run->supervisor.hello.machine.engine == HOST;
    struct timing timing = {.width_pct = cli->width_pct > 0 ? cli->width_pct : 1, .cap_s = host ? 1.0 : 0.5, .rounds = cli->rounds,
                            .min_rounds = 11, .max_rounds = 201};
    if (cli->cap_s > 0) timing.cap_s = cli->cap_s;
    if (run->budget_per_row_s > 0 && run->budget_per_row_s < timing.cap_s) timing.cap_s = run->budget_per_row_s;
    return timing;
}

static void keep_row(struct sweep_run *run, const struct row *row)
{
    run->rows.row = must_grow(run->rows.row, (size_t)run->rows.n + 1, sizeof *row);
    run->rows.row[run->rows.n++] = *row;
}

/* To its files; kept until the group is shown. */
static int take_profile(struct sweep_run *run, struct outcome *outcome)
{
    struct profile_log *log = run->profile;
    if (!log || !outcome->profile || log->n == MAX_VARIANTS) return 0;
    log->failed += *outcome->profile->replay.failed != 0;
    log->of[log->n].row = outcome->row;
    log->of[log->n++].profile = outcome->profile;
    int error = profile_files_write(&log->files, &outcome->row, outcome->profile, &run->supervisor.hello.machine);
    outcome->profile = NULL;
    return error;
}

/* Where a file could not be written: nothing more is run. */
static void heed_file_error(struct sweep_run *run)
{
    if (!run->file_error) return;
    progress_hide(&run->progress);
    say("%s: %s; rows before this one are kept, make room and finish with --resume %s", run->files.folder.path,
        strerror(run->file_error), run->files.folder.path);
    *run->interrupted = *run->interrupted ? *run->interrupted : -1;
}

static void write_outcome(struct sweep_run *run, struct outcome *outcome)
{
    if (run->check_only || run->file_error) return;
    run->file_error = take_profile(run, outcome);   /* a row that stands has its profile, as it has its samples */
    if (!run->file_error) run->file_error = run_files_row(&run->files, &outcome->row, outcome->n_samples, outcome->sample);
    heed_file_error(run);
}

void sweep_settle_profiles(struct sweep_run *run, int first)
{
    struct profile_log *log = run->profile;
    bool other = false;
    for (int i = 0; log && i < log->n; i++)
        for (int r = first; r < run->rows.n; r++) {
            const struct row *row = &run->rows.row[r];
            if (!row_same_key(row, &log->of[i].row) || row->t_med_ns == log->of[i].row.t_med_ns) continue;
            log->of[i].row = *row;
            other = true;
        }
    if (!other || run->file_error) return;
    run->file_error = profile_files_again(&log->files, log->at, log->n, log->of, &run->supervisor.hello.machine);
    heed_file_error(run);
}

struct job sweep_job(const struct sweep_run *run, const struct group *group)
{
    return (struct job){.group = *group, .ceilings = run->supervisor.hello.machine.ceilings, .timing = timing_of(run),
        .check = true, .reference_s = run->cli->reference_s, .time = !run->check_only && !run->cli->wrap,
        .once = run->cli->wrap, .profile = run->profile,
        .timeout_s = run->cli->timeout_s > 0 ? run->cli->timeout_s : run->cli->wrap ? 600 : 30};
}

void sweep_run_job(struct sweep_run *run, struct job *job, const char *again, const bool *beside)
{
    struct outcome *outcome = must_alloc((size_t)job->group.n, sizeof *outcome);
    struct done done;
    char what[200];
    job->profile = job->profile && !again;
    progress_now(&run->progress, group_text(&job->group, what, sizeof what));
    supervisor_group(&run->supervisor, job, outcome, &done);
    for (int v = 0; v < job->group.n; v++) {
        struct row *row = &outcome[v].row;
        /* Interrupted under the tracer: a row that stands has its profile. */
        bool half = job->profile && row->t_med_ns > 0 && !outcome[v].profile && *run->interrupted;
        if (*row->status && !half && !(beside && beside[v])) {
            identify_row(row, &job->group, v, &run->registry, run->cli);
            if (again) {
                char reason[sizeof row->reason];
                memcpy(reason, row->reason, sizeof reason);
                text(row->reason, sizeof row->reason, "%s%s%.200s", again, *reason ? "; " : "", reason);
            }
            keep_row(run, row);
            progress_row(&run->progress, row);
            write_outcome(run, &outcome[v]);
        }
        free(outcome[v].sample), free(outcome[v].profile);
    }
    if (!run->check_only && !run->file_error) run_files_group(&run->files, what, &done);
    free(outcome);
    if (!*run->supervisor.refused) return;
    progress_hide(&run->progress);
    die(EXIT_USAGE, "%s", run->supervisor.refused);
}

/* `check` and `sweep`: plan -> worker -> rows -> people, top to bottom. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "again.h"
#include "base.h"
#include "commands.h"
#include "identity.h"
#include "lock.h"
#include "plot.h"
#include "profile_files.h"
#include "progress.h"
#include "quiet.h"
#include "report.h"
#include "report_profile.h"
#include "run_files.h"
#include "supervisor.h"
#include "sweep.h"

static volatile sig_atomic_t interrupted;   /* the one thing that a signal handler may touch */

static void on_signal(int number)
{
    if (interrupted) _exit(128 + number);   /* a second one means it */
    interrupted = number;
}

struct sweep_run {
    struct cli           *cli;
    struct registry       registry;
    struct supervisor     supervisor;
    struct plan           plan;
    struct run_files      files;      /* of a sweep; a check keeps none */
    struct report_options report;
    struct progress       progress;
    struct table          rows;       /* of this invocation, in order */
    struct scalings       scalings;   /* of all rows in the folder; they point into `all` */
    struct table          all;
    bool                  check_only, stdout_gone;
    struct profile_log   *profile;    /* of `profile`, else NULL */
    int                   file_error;
    double                budget_per_row_s, began_s;
    int                   busy;       /* groups in a row that stayed marked, however often they were measured */
};

/* What the group at hand shows behind its table. */
struct profile_log {
    struct profile_files files;
    int                  n, failed;
    struct {
        struct row      row;
        struct profile *profile;
    } of[MAX_VARIANTS];
};

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

/* A group to stdout as soon as it is over; a reader that went away stops the talk, not the run. */
static void show_group(struct sweep_run *run, int first)
{
    if (run->stdout_gone || run->rows.n == first) return;
    progress_hide(&run->progress);
    report_group(stdout, run->rows.row + first, run->rows.n - first, &run->report);
    for (int i = 0; run->profile && i < run->profile->n; i++)
        report_profile(stdout, &run->profile->of[i].row, run->profile->of[i].profile, &run->supervisor.hello.machine, &run->report);
    if (fflush(stdout)) run->stdout_gone = true;
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

static void forget_profiles(struct profile_log *log)
{
    while (log && log->n) free(log->of[--log->n].profile);
}

static void write_outcome(struct sweep_run *run, struct outcome *outcome)
{
    if (run->check_only || run->file_error) return;
    run->file_error = take_profile(run, outcome);   /* a row that stands has its profile, as it has its samples */
    if (!run->file_error) run->file_error = run_files_row(&run->files, &outcome->row, outcome->n_samples, outcome->sample);
    if (!run->file_error) return;
    progress_hide(&run->progress);
    say("%s: %s; rows before this one are kept, make room and finish with --resume %s", run->files.folder.path,
        strerror(run->file_error), run->files.folder.path);
    interrupted = interrupted ? interrupted : -1;
}

/* Which of the group's rows a resumed run has already: those are not run again. True: all of them. */
static bool drop_done(struct sweep_run *run, struct group *group)
{
    int n = 0;
    for (int v = 0; v < group->n; v++) {
        struct row key;
        row_clear(&key);
        identify_row(&key, group, v, &run->registry, run->cli);
        if (!run->check_only && runfolder_has(&run->files.folder, &key)) continue;
        group->variant[n++] = group->variant[v];
    }
    group->n = n;
    return !n;
}

static struct job job_of(const struct sweep_run *run, const struct group *group)
{
    return (struct job){.group = *group, .ceilings = run->supervisor.hello.machine.ceilings, .timing = timing_of(run),
        .check = true, .time = !run->check_only && !run->cli->wrap, .once = run->cli->wrap, .profile = run->profile,
        .timeout_s = run->cli->timeout_s > 0 ? run->cli->timeout_s : run->cli->wrap ? 600 : 30};
}

/* again: NULL, or why rows that stand already are measured once more. beside: NULL, or which variants only keep them company. */
static void run_job(struct sweep_run *run, struct job *job, const char *again, const bool *beside)
{
    struct outcome *outcome = must_alloc((size_t)job->group.n, sizeof *outcome);
    struct done done;
    char what[200];
    job->profile = job->profile && !again;
    progress_now(&run->progress, group_text(&job->group, what, sizeof what));
    supervisor_group(&run->supervisor, job, outcome, &done);
    for (int v = 0; v < job->group.n; v++) {
        struct row *row = &outcome[v].row;
        if (*row->status && !(beside && beside[v])) {
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
}

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

/* Rows that other work or held clocks have marked get two more tries; all samples are kept. Not where the number of rounds was
 * given, nor beyond the budget, nor on a machine that stays busy. */
static void measure_marked(struct sweep_run *run, const struct job *done, int first)
{
    enum { TRIES = 2, STAYS_BUSY = 3 };
    bool over = run->cli->budget_s > 0 && now_s() - run->began_s > run->cli->budget_s, tried = false;
    bool beside[MAX_VARIANTS];
    struct job again;
    if (run->check_only || run->cli->wrap || run->cli->rounds || over) return;
    for (int try = 1; try <= TRIES && run->busy < STAYS_BUSY && !interrupted && !run->file_error; try++) {
        if (!marked_job(run, done, first, try, &again, beside)) break;
        for (int v = 0; v < again.group.n; v++) run->progress.total += !beside[v];
        run_job(run, &again, ONCE_MORE, beside);
        run->rows.again += again_settle(&run->rows, first);
        tried = true;
    }
    if (!marked_job(run, done, first, 1, &again, beside)) run->busy = 0;
    else if (tried && ++run->busy == STAYS_BUSY && !run->cli->quiet)
        say("the machine stays busy: from here on marked rows are not measured again");
}

static void run_group(struct sweep_run *run, const struct group *planned)
{
    struct job job = job_of(run, planned);
    int first = run->rows.n;
    if (drop_done(run, &job.group)) return;
    run_job(run, &job, NULL, NULL);
    measure_marked(run, &job, first);
    show_group(run, first);
    forget_profiles(run->profile);
}

static void open_report(struct sweep_run *run)
{
    struct winsize window = {0};
    bool tty = isatty(STDOUT_FILENO);
    const char *colour = run->cli->colour ? run->cli->colour : "auto", *plain = getenv("NO_COLOR");
    bool coloured = !strcmp(colour, "always") || (!strcmp(colour, "auto") && tty && !(plain && *plain));
    int columns = tty && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) ? window.ws_col : 80;
    run->report = (struct report_options){.width = columns < 80 ? 80 : columns > 120 ? 120 : columns,
                                          .markdown = run->cli->markdown, .colour = coloured,
                                          .folder = run->check_only ? NULL : run->files.folder.path};
    for (int g = 0; g < run->plan.n; g++) {
        const struct op *op = op_find(run->plan.group[g].op);
        for (int d = 0; d < op_dims(op); d++) report_see(&run->report, op->dim[d].name, run->plan.group[g].dim[d]);
    }
    report_machine(stdout, &run->supervisor.hello.machine, &run->report);
    if (fflush(stdout)) run->stdout_gone = true;
}

static int planned_rows(const struct plan *plan)
{
    int n = 0;
    for (int g = 0; g < plan->n; g++) n += plan->group[g].n;
    return n;
}

/* One row of the plan once more; false where the plan doesn't have it (a resumed run's may not). */
static bool measure_again(struct sweep_run *run, const struct row *row)
{
    for (int g = 0; g < run->plan.n; g++)
        for (int v = 0; v < run->plan.group[g].n; v++) {
            struct row planned;
            struct job job = job_of(run, &run->plan.group[g]);
            row_clear(&planned);
            identify_row(&planned, &job.group, v, &run->registry, run->cli);
            if (!row_same_key(&planned, row)) continue;
            job.group.variant[0] = job.group.variant[v];
            job.group.n = 1;
            run->progress.total++;
            run_job(run, &job, MEASURED_AGAIN, NULL);
            return true;
        }
    return false;
}

/* A growth above its declaration must come back: both ends are measured again, in turns, since a machine that changed its speed
 * between them looks just like it. All times of a size count, so that what passes once is no failure. */
static void confirm_growth(struct sweep_run *run)
{
    enum { TURNS = 2, MOST = 8 };
    for (int turn = 0; turn < TURNS && !interrupted && !run->file_error; turn++) {
        struct table    table;
        struct scalings s;
        if (!run_files_read(&run->files, &table)) return;
        s = scalings_find(&table);
        for (int i = 0, n = 0; i < s.n && n < MOST && !interrupted; i++) {
            if (s.of[i].verdict != SCALING_ABOVE) continue;
            if (!n++ && !turn && !run->cli->quiet) say("time grows above a declaration: measuring its ends again, to be sure");
            if (measure_again(run, s.of[i].last)) measure_again(run, s.of[i].first);
        }
        scalings_free(&s), table_free(&table);
    }
}

/* What all rows together say: how time grows, and plots. */
static void derive(struct sweep_run *run)
{
    if (run->check_only || run->file_error || run->cli->wrap) return;
    if (!run->profile) confirm_growth(run);
    if (run->file_error || !run_files_read(&run->files, &run->all)) return;
    run->scalings = scalings_find(&run->all);
    run->report.above = scalings_above(&run->scalings);
    run_files_derive(&run->files, &run->all, &run->scalings);
    if (run->cli->no_plots) return;
    struct plot_result plots = plot_run(run->files.folder.path, &run->all);
    if (*plots.note) say("%s", plots.note);
}

static void finish(struct sweep_run *run)
{
    derive(run);
    progress_end(&run->progress);
    char next[700];
    if (!run->check_only && interrupted) {
        text(next, sizeof next, "./kbench %s --resume %s  finishes it", run->cli->command, run->files.folder.path);
        run->report.next = next;
    }
    if (!run->stdout_gone) {
        report_growth(stdout, &run->scalings, &run->all, &run->report);
        report_crossover(stdout, &run->all, &run->report);
        report_summary(stdout, &run->rows, &run->report);
        fflush(stdout);
    }
}

static int exit_code_of(const struct sweep_run *run)
{
    bool marked = scalings_open(&run->scalings) > 0, failed = scalings_above(&run->scalings) > 0;
    for (int i = 0; i < run->rows.n; i++) {
        failed |= row_failed(&run->rows.row[i]) != 0;
        marked |= *run->rows.row[i].marks != 0;
    }
    if (run->file_error) return EXIT_ENVIRONMENT;
    if (interrupted > 0) return 128 + interrupted;
    if (failed || (run->profile && run->profile->failed)) return EXIT_ROW_FAILED;
    return marked && run->cli->strict ? EXIT_INCONCLUSIVE : EXIT_OK;
}

static void open_profile(struct sweep_run *run, struct profile_log *log)
{
    run->profile = log;
    int error = profile_files_open(&log->files, &run->files.folder, run->cli->resume);
    if (error) die(EXIT_ENVIRONMENT, "%s: can't be written: %s; name another folder with --out", run->files.folder.path,
        strerror(error));
}

int command_sweep(struct cli *cli)
{
    struct lock lock;
    struct sweep_run run = {.cli = cli, .check_only = !strcmp(cli->command, "check")};
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    run.registry = registry_open(cli->plugins.n, (char *const *)cli->plugins.word);
    supervisor_open(&run.supervisor, cli, &interrupted);
    const struct machine *machine = &run.supervisor.hello.machine;
    if (*run.supervisor.hello.why_not_cuda && cli->verbose) say("%s", run.supervisor.hello.why_not_cuda);
    run.plan = sweep_plan(cli, &run.registry, machine);
    if (cli->dry_run) {
        plan_print(stdout, &run.plan, &run.registry, machine, cli);
        supervisor_close(&run.supervisor);
        return EXIT_OK;
    }
    /* A check on a CPU is little disturbed; on a GPU it takes memory and whole time slices from a run that measures. */
    bool alone = (!run.check_only && !cli->wrap) || machine->engine == CUDA;
    lock.fd = -1;
    if (alone && !lock_device(&lock, cli, machine, &interrupted)) {
        supervisor_close(&run.supervisor);
        return 128 + interrupted;
    }
    run.began_s = now_s();
    if (!run.check_only && !cli->wrap) supervisor_measure(&run.supervisor);
    if (cli->budget_s > 0) run.budget_per_row_s = cli->budget_s / planned_rows(&run.plan);
    if (!run.check_only) run_files_open(&run.files, cli, &run.plan, &run.registry, machine);
    struct profile_log log = {.n = 0};
    if (!strcmp(cli->command, "profile")) open_profile(&run, &log);
    if (!run.check_only) text(cli->ran, sizeof cli->ran, "%s", run.files.folder.path);
    open_report(&run);
    run.progress = progress_begin(planned_rows(&run.plan), isatty(STDERR_FILENO) && strcmp(getenv("TERM") ? getenv("TERM")
        : "dumb", "dumb"), cli->quiet);
    for (int g = 0; g < run.plan.n && !interrupted; g++) run_group(&run, &run.plan.group[g]);
    finish(&run);
    int code = exit_code_of(&run);
    supervisor_close(&run.supervisor);
    lock_drop(&lock);
    if (!run.check_only) run_files_close(&run.files);
    profile_files_close(&log.files);
    plan_free(&run.plan);
    scalings_free(&run.scalings), table_free(&run.all);
    free(run.rows.row);
    return code;
}

/* `check` and `sweep`: plan -> worker -> rows -> people, top to bottom. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base.h"
#include "identity.h"
#include "lock.h"
#include "report_profile.h"
#include "sweep_again.h"

static volatile sig_atomic_t interrupted;   /* the one thing that a signal handler may touch */

static void on_signal(int number)
{
    if (interrupted) _exit(128 + number);   /* a second one means it */
    interrupted = number;
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

static void forget_profiles(struct profile_log *log)
{
    while (log && log->n) free(log->of[--log->n].profile);
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

static void run_group(struct sweep_run *run, const struct group *planned)
{
    struct job job = sweep_job(run, planned);
    int first = run->rows.n;
    if (drop_done(run, &job.group)) return;
    if (run->profile) run->profile->at = profile_files_at(&run->profile->files);
    sweep_run_job(run, &job, NULL, NULL);
    sweep_measure_marked(run, &job, first);
    sweep_settle_profiles(run, first);
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

/* What all rows together say: how time grows, and plots. */
static void derive(struct sweep_run *run)
{
    if (run->check_only || run->file_error || run->cli->wrap) return;
    sweep_confirm_growth(run);
    if (run->file_error || !run_files_read(&run->files, &run->all)) return;
    run->scalings = scalings_find(&run->all);
    run->report.above = scalings_above(&run->scalings);
    run_files_derive(&run->files, &run->all, &run->scalings, !run->cli->no_plots);
}

static void finish(struct sweep_run *run)
{
    derive(run);
    progress_end(&run->progress);
    char next[2500];
    if (!run->check_only && interrupted) {
        char *folder = shell_word(run->files.folder.path);
        text(next, sizeof next, "./kbench %s --resume %s  finishes it", run->cli->command, folder);
        free(folder);
        run->report.next = next;
    }
    if (!run->stdout_gone) {
        report_growth(stdout, &run->scalings, &run->all, &run->report);
        report_crossover(stdout, &run->all, &run->report);
        report_summary(stdout, &run->rows, &run->report);
        fflush(stdout);
    }
    run->report.next = NULL;
    if (run->profile && run->profile->failed)
        say("%d of the breakdowns %s not hold: why stands in %s/counters.csv, and breakdown.csv is without them; profile these "
            "rows again", run->profile->failed, run->profile->failed == 1 ? "does" : "do", run->files.folder.path);
}

static int exit_code_of(const struct sweep_run *run)
{
    bool marked = scalings_open(&run->scalings) > 0 || run->marked_before;
    bool failed = scalings_above(&run->scalings) > 0 || run->failed_before;
    for (int i = 0; i < run->rows.n; i++) {
        failed |= row_failed(&run->rows.row[i]) != 0;
        marked |= *run->rows.row[i].marks != 0;
    }
    if (run->file_error) return EXIT_ENVIRONMENT;
    if (interrupted > 0) return 128 + interrupted;
    if (run->files.error) return EXIT_ENVIRONMENT;
    if (failed || (run->profile && run->profile->failed)) return EXIT_ROW_FAILED;
    return marked && run->cli->strict ? EXIT_INCONCLUSIVE : EXIT_OK;
}

/* A run is as good as all of its rows, whichever invocation measured them. */
static void judge_standing(struct sweep_run *run)
{
    const struct table *done = &run->files.folder.done;
    for (int i = 0; i < done->n; i++) {
        run->failed_before |= row_failed(&done->row[i]) != 0;
        run->marked_before |= *done->row[i].marks != 0;
    }
}

/* Rows that stand are not measured again, so that what they lack would be missing for ever. */
static void demand_profiles(const struct sweep_run *run, int *ret_failed)
{
    int n = 0;
    const struct row *row = run->cli->resume ? profile_files_lack(&run->files.folder, &n, ret_failed) : NULL;
    if (row)
        die(EXIT_USAGE, "--resume %s: %d of its %d rows have no profile in counters.csv and breakdown.csv, as %s; put the files "
            "back if they are lost, or begin anew with another --out", run->cli->resume, n, run->files.folder.done.n, row->kernel);
}

/* Its rows would stand without a profile in a folder of profiles, and no --resume could give them one. */
static void refuse_profiles_run(const struct cli *cli)
{
    char path[4096];
    if (!cli->resume || strcmp(cli->command, "sweep")) return;
    if (!access(text(path, sizeof path, "%s/counters.csv", cli->resume), F_OK))
        die(EXIT_USAGE, "--resume %s: a profile, whose rows a sweep would add without one; finish it with kbench profile --resume",
            cli->resume);
}

static void open_profile(struct sweep_run *run, struct profile_log *log)
{
    demand_profiles(run, &log->failed);
    run->profile = log;
    int error = profile_files_open(&log->files, &run->files.folder, run->cli->resume);
    if (error) die(EXIT_ENVIRONMENT, "%s: can't be written: %s; name another folder with --out", run->files.folder.path,
        strerror(error));
}

/* Workers that answer, and what there is to run in them. */
static void open_plan(struct sweep_run *run)
{
    run->registry = registry_open(run->cli->plugins.n, (char *const *)run->cli->plugins.word);
    supervisor_open(&run->supervisor, run->cli, &run->registry, run->interrupted);
    const struct hello *hello = &run->supervisor.hello;
    if (*hello->why_not_cuda && run->cli->verbose) say("%s", hello->why_not_cuda);
    run->plan = sweep_plan(run->cli, &run->registry, &hello->machine);
}

/* A check on a CPU is little disturbed; on a GPU it takes memory and whole time slices from a run that measures. False:
 * interrupted while it waited. */
static bool lock_if_alone(const struct sweep_run *run, struct lock *ret)
{
    const struct machine *machine = &run->supervisor.hello.machine;
    bool alone = (!run->check_only && !run->cli->wrap) || machine->engine == CUDA;
    ret->fd = -1;
    return !alone || lock_device(ret, run->cli, machine, run->interrupted);
}

/* The device's ceilings, the run's files, and what people see before the first row. */
static void begin(struct sweep_run *run, struct profile_log *log)
{
    struct cli *cli = run->cli;
    int rows = planned_rows(&run->plan);
    run->began_s = now_s();
    if (!run->check_only && !cli->wrap) supervisor_measure(&run->supervisor);
    if (cli->budget_s > 0) run->budget_per_row_s = cli->budget_s / rows;
    if (!run->check_only) run_files_open(&run->files, cli, &run->plan, &run->registry, &run->supervisor.hello.machine);
    judge_standing(run);
    if (!strcmp(cli->command, "profile")) open_profile(run, log);
    if (!run->check_only) text(cli->ran, sizeof cli->ran, "%s", run->files.folder.path);
    open_report(run);
    bool bar = isatty(STDERR_FILENO) && strcmp(getenv("TERM") ? getenv("TERM") : "dumb", "dumb");
    run->progress = progress_begin(rows, bar, cli->quiet);
}

int command_sweep(struct cli *cli)
{
    struct lock lock;
    struct profile_log log = {.n = 0};
    struct sweep_run run = {.cli = cli, .interrupted = &interrupted, .check_only = !strcmp(cli->command, "check")};
    if (cli->wrap && !strcmp(cli->command, "profile"))
        die(EXIT_USAGE, "profile --wrap: a tool before the worker has its one launch, and nothing is timed, traced or counted "
            "beside it; use check --wrap, or profile without");
    refuse_profiles_run(cli);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    open_plan(&run);
    const struct machine *machine = &run.supervisor.hello.machine;
    if (cli->dry_run) {
        plan_print(stdout, &run.plan, &run.registry, machine, cli);
        supervisor_close(&run.supervisor);
        return EXIT_OK;
    }
    if (!run.check_only) run_files_refuse_others(cli, &run.plan, &run.registry, machine);
    if (!lock_if_alone(&run, &lock)) {
        supervisor_close(&run.supervisor);
        return 128 + interrupted;
    }
    begin(&run, &log);
    for (int g = 0; g < run.plan.n && !interrupted; g++) run_group(&run, &run.plan.group[g]);
    finish(&run);
    supervisor_close(&run.supervisor);
    lock_drop(&lock);
    if (!run.check_only) run_files_close(&run.files);
    int code = exit_code_of(&run);
    profile_files_close(&log.files);
    plan_free(&run.plan);
    scalings_free(&run.scalings), table_free(&run.all);
    free(run.rows.row);
    return code;
}

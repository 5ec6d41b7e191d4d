#include "commands_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base.h"
#include "plot.h"
#include "profile_read.h"
#include "report.h"
#include "runfolder.h"

struct run {
    char           folder[600];
    struct table   table;
    struct machine machine;
    bool           machine_known;
};

static void find_rows(struct run *run, const char *path, char *ret_rows, size_t size)
{
    struct stat st;
    if (strlen(path) >= sizeof(run->folder)) die(EXIT_USAGE, "%.60s...: the path is too long", path);
    if (stat(path, &st)) die(EXIT_USAGE, "%s: can't be read: %s; name a run folder or its rows.csv", path, strerror(errno));
    text(run->folder, sizeof(run->folder), "%s", path);
    if (S_ISDIR(st.st_mode)) {
        size_t n = strlen(run->folder);
        while (n > 1 && run->folder[n - 1] == '/') run->folder[--n] = '\0';
        text(ret_rows, size, "%s/rows.csv", run->folder);
    } else {
        char *slash = strrchr(run->folder, '/');
        text(ret_rows, size, "%s", path);
        if (slash) slash[slash == run->folder] = '\0';   /* "/rows.csv" lies in "/" */
        else strcpy(run->folder, ".");
    }
}

/* Rows have to be there; without env.json the report names no device. */
static struct run open_run(const char *path)
{
    struct run run = {0};
    char rows[640], env[640], error[800];
    find_rows(&run, path, rows, sizeof(rows));
    if (table_read(rows, &run.table, error, sizeof(error))) die(EXIT_USAGE, "%s; name a run folder or its rows.csv", error);
    run.machine_known = !env_read(text(env, sizeof(env), "%s/env.json", run.folder), &run.machine, error, sizeof(error));
    if (!run.machine_known) say("%s: the device is not named", error);
    return run;
}

static void demand_runs(const struct cli *cli)
{
    if (!cli->args.n) die(EXIT_USAGE, "%s: which run? name its folder or rows.csv; ./kbench list results shows them", cli->command);
}

static struct report_options options_of(const struct cli *cli)
{
    struct winsize window = {0};
    const char *colour = cli->colour ? cli->colour : "auto", *plain = getenv("NO_COLOR"), *terminal = getenv("TERM");
    bool tty = isatty(STDOUT_FILENO), able = tty && !(plain && *plain) && terminal && strcmp(terminal, "dumb");
    int columns = tty && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) ? window.ws_col : 80;
    return (struct report_options){.width = columns < 80 ? 80 : columns > 120 ? 120 : columns, .markdown = cli->markdown,
        .colour = !cli->markdown && (!strcmp(colour, "always") || (!strcmp(colour, "auto") && able))};
}

static int strict_code(const struct table *table)
{
    struct scalings scalings = scalings_find(table);
    int code = scalings_open(&scalings) ? EXIT_INCONCLUSIVE : EXIT_OK, above = scalings_above(&scalings);
    scalings_free(&scalings);
    if (above) return EXIT_ROW_FAILED;
    for (int i = 0; i < table->n; i++) {
        if (row_failed(&table->row[i])) return EXIT_ROW_FAILED;
        if (table->row[i].marks[0]) code = EXIT_INCONCLUSIVE;
    }
    return code;
}

/* Of a profile: where each row's time went. false: it was none, or left no such file, which is said. */
static bool read_breakdown(const struct run *run, struct sheet *ret, int *code)
{
    char why[700];
    int error = profile_read_breakdown(run->folder, ret, why, sizeof(why));
    if (!error || error == ENOENT) return !error;
    say("%s", why);
    if (*code == EXIT_OK) *code = EXIT_USAGE;
    return false;
}

int command_report(const struct cli *cli)
{
    int code = EXIT_OK;
    demand_runs(cli);
    for (int i = 0; i < cli->args.n; i++) {
        struct run run = open_run(cli->args.word[i]);
        struct report_options options = options_of(cli);
        options.folder = run.folder;
        struct sheet breakdown;
        if (read_breakdown(&run, &breakdown, &code)) options.breakdown = &breakdown;
        if (i) putchar('\n');
        report_all(stdout, run.machine_known ? &run.machine : NULL, &run.table, &options);
        if (options.breakdown) sheet_free(&breakdown);
        int its = cli->strict ? strict_code(&run.table) : EXIT_OK;
        if (code == EXIT_OK || its == EXIT_ROW_FAILED) code = its;
        table_free(&run.table);
    }
    return code;
}

int command_plot(const struct cli *cli)
{
    int code = EXIT_OK;
    demand_runs(cli);
    if (cli->out && cli->args.n > 1) die(EXIT_USAGE, "plot --out: one run at a time, or their plots would meet in one folder");
    for (int i = 0; i < cli->args.n; i++) {
        struct run run = open_run(cli->args.word[i]);
        const char *folder = cli->out ? cli->out : run.folder;
        if (cli->out && mkdir(cli->out, 0777) && errno != EEXIST)
            die(EXIT_ENVIRONMENT, "%s: can't be made: %s", cli->out, strerror(errno));
        struct plot_result result = plot_run(folder, &run.table);
        if (result.note[0]) say("%s", result.note);
        if (result.written) printf("%d plots in %s/plots\n", result.written, folder);
        if (result.refused && code == EXIT_OK) code = EXIT_USAGE;
        if (result.unfit) code = EXIT_ENVIRONMENT;
        table_free(&run.table);
    }
    return code;
}

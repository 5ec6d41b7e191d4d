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

/* Of a profile: where each row's time went; and what was counted, or why something is not known. Both are missing where it
 * was none; what else is missing, or no such file, is said. */
static void read_profile(const struct run *run, struct sheet *breakdown, struct sheet *counters, struct report_options *o,
    int *code)
{
    char why[2][700];
    const int error[] = {profile_read_breakdown(run->folder, breakdown, why[0], sizeof(why[0])),
        profile_read_lines(run->folder, counters, why[1], sizeof(why[1]))};
    if (!error[0]) o->breakdown = breakdown;
    if (!error[1]) o->counters = counters;
    for (int i = 0; i < COUNT(error); i++) {
        if (!error[i] || error[i] == ENOENT) continue;
        say("%s", why[i]);
        if (*code == EXIT_OK) *code = EXIT_USAGE;
    }
    if (error[1] == ENOENT && error[0] != ENOENT) say("%s; what was counted, or why a row has no tree, is not known", why[1]);
}

int command_report(const struct cli *cli)
{
    int code = EXIT_OK;
    demand_runs(cli);
    for (int i = 0; i < cli->args.n; i++) {
        struct run run = open_run(cli->args.word[i]);
        struct report_options options = options_of(cli);
        options.folder = run.folder;
        struct sheet breakdown, counters;
        read_profile(&run, &breakdown, &counters, &options, &code);
        if (i) putchar('\n');
        report_all(stdout, run.machine_known ? &run.machine : NULL, &run.table, &options);
        if (options.breakdown) sheet_free(&breakdown);
        if (options.counters) sheet_free(&counters);
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

/* gate FILE.ini [RUN]: holds a run against a gate file, for CI. Without RUN, the sweep that the file names is run first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "cli_help.h"
#include "commands.h"
#include "gate.h"
#include "runfolder.h"
#include "wanting.h"

static bool wants_rows(const struct gatefile *file)
{
    for (int i = 0; i < file->n; i++)
        if (!file->gate[i].is_static) return true;
    return false;
}

static void check_names(const struct gatefile *file, const struct registry *registry, const struct table *run)
{
    char error[1024];
    if (gatefile_names(file, registry, static_facts, run, error, sizeof error)) die(EXIT_USAGE, "%s", error);
}

/* A name stays one, a path is as seen from the gate file. */
static char *sweep_path(const struct gatefile *file)
{
    const char *word = file->sweep, *slash = strrchr(file->sweep_at.file, '/'), *ending = strrchr(word, '.');
    bool        name = !strchr(word, '/') && !(ending && !strcmp(ending, ".ini"));
    size_t      size = strlen(word) + strlen(file->sweep_at.file) + 2;
    char       *ret = must_alloc(size, 1);
    if (name || *word == '/' || !slash) return text(ret, size, "%s", word);
    return text(ret, size, "%.*s/%s", (int)(slash - file->sweep_at.file), file->sweep_at.file, word);
}

/* The rows' folder. A row that failed is the gate's business; anything else ends here. */
static const char *run_sweep(struct cli *cli, const struct gatefile *file, int *ret_code)
{
    if (!file->sweep)
        die(EXIT_USAGE, "%s: [global] names no sweep to run; add one, or name a finished run: gate %s RUN", cli->args.word[0],
            cli->args.word[0]);
    struct cli *sweep = must_alloc(1, sizeof *sweep);
    *sweep = *cli;
    sweep->command = "sweep";
    sweep->args = (struct list){.n = 1, .word = {sweep_path(file)}};
    sweep->no_plots = true, sweep->strict = false;
    *ret_code = command_sweep(sweep);
    if (*ret_code != EXIT_OK && *ret_code != EXIT_ROW_FAILED) exit(*ret_code);
    putchar('\n');
    return sweep->ran;
}

/* The folder of a run given as such or as its rows.csv; false: of a file of another name, which may be of any run. */
static bool folder_of(const char *run, char *ret, size_t size)
{
    struct stat st;
    const char *slash = strrchr(run, '/');
    if (stat(run, &st)) die(EXIT_USAGE, "%s: can't be read: %s; name a run folder or its rows.csv", run, strerror(errno));
    if (S_ISDIR(st.st_mode)) text(ret, size, "%s", run);
    else text(ret, size, "%.*s", slash ? (int)(slash - run) + (slash == run) : 1, slash ? run : ".");
    return S_ISDIR(st.st_mode) || !strcmp(slash ? slash + 1 : run, "rows.csv");
}

static void read_rows(const struct cli *cli, const char *run, struct table *ret)
{
    char        folder[600], path[640], plan[640], other[640], repeat[2500], error[1200], *words;
    struct stat st;
    bool        is_run = folder_of(run, folder, sizeof folder);
    text(path, sizeof path, !stat(run, &st) && S_ISDIR(st.st_mode) ? "%s/rows.csv" : "%s", run);
    if (table_read(path, ret, error, sizeof error)) die(EXIT_USAGE, "%s; name a run folder or its rows.csv", error);
    is_run = is_run && !access(text(plan, sizeof plan, "%s/plan.ini", folder), F_OK);
    bool profile = !access(text(other, sizeof other, "%s/counters.csv", folder), F_OK);
    text(repeat, sizeof repeat, "./kbench %s --resume %s", profile ? "profile" : "sweep", words = shell_word(folder));
    free(words);
    if (wanting_find(ret, path, is_run ? plan : NULL, repeat, error, sizeof error)) die(EXIT_USAGE, "%s", error);
    if (!is_run && !cli->quiet) say("%s: no plan.ini beside it, so nobody knows whether rows are missing", path);
}

/* Of the device that env.json names; a run without one has none, nor has a file that the run beside it may know nothing of. */
static void read_floors(const char *run, struct noise_floors *ret)
{
    char folder[600], path[640], error[800];
    struct machine machine;
    *ret = (struct noise_floors){.n = 0};
    if (!folder_of(run, folder, sizeof folder)) return;
    text(path, sizeof path, "%s/env.json", folder);
    if (access(path, F_OK)) return;
    if (env_read(path, &machine, error, sizeof error))
        die(EXIT_USAGE, "%s; so nobody knows which noise floors hold: put it back, or remove it for none", error);
    if (noise_floors_read(&machine, ret, error, sizeof error)) die(EXIT_USAGE, "%s", error);
}

static void write_junit(const struct cli *cli, const struct findings *all)
{
    FILE *f;
    if (!cli->junit) return;
    f = fopen(cli->junit, "w");
    if (!f) die(EXIT_ENVIRONMENT, "--junit %s: can't be written: %s", cli->junit, strerror(errno));
    gate_junit(f, all, cli->args.word[0]);
    int error = ferror(f);
    if (fclose(f) || error) die(EXIT_ENVIRONMENT, "--junit %s: can't be written whole: disk full?", cli->junit);
}

/* A finished run is judged as it is. What stands in the environment is meant for all that is called there. */
static void refuse_sweep_options(const struct cli *cli)
{
    static const char *const names[] = {"rounds", "out", "budget", "max-time", "noise", "timeout", "reference-s", "seed", "device",
        "no-lock"};
    for (int i = 0; i < COUNT(names); i++)
        if (cli->origin[cli_option_index(names[i])] == ORIGIN_COMMAND_LINE)
            die(EXIT_USAGE, "gate: --%s is for the sweep that a gate runs itself, and %s is a run; leave one of them out",
                names[i], cli->args.word[1]);
}

int command_gate(struct cli *cli)
{
    struct gatefile file = {0};
    struct table    run = {0};
    struct noise_floors floors = {.n = 0};
    const char     *folder = cli->args.n > 1 ? cli->args.word[1] : NULL;
    char            error[1200];
    int             code = EXIT_OK;
    if (cli->args.n < 1 || cli->args.n > 2) die(EXIT_USAGE, "gate: a gate file is wanted, and a run or none: gate FILE.ini [RUN]");
    if (folder) refuse_sweep_options(cli);
    if (gatefile_read(cli->args.word[0], &file, error, sizeof error)) die(EXIT_USAGE, "%s", error);
    if (cli->junit && !cli->force && !access(cli->junit, F_OK))
        die(EXIT_USAGE, "--junit %s: exists; name another file, or overwrite it with --force", cli->junit);
    struct registry registry = registry_open(0, NULL);
    if (!folder && wants_rows(&file)) {
        check_names(&file, &registry, NULL);
        folder = run_sweep(cli, &file, &code);
    }
    if (folder) read_rows(cli, folder, &run), read_floors(folder, &floors);
    check_names(&file, &registry, folder ? &run : NULL);
    struct findings all = gate_judge(&file, folder ? &run : NULL, &floors, static_facts, static_toolkit, cli->strict);
    gate_print(stdout, &all, cli->args.word[0], folder);
    write_junit(cli, &all);
    int verdict = findings_code(&all);
    findings_free(&all), noise_floors_free(&floors), gatefile_free(&file), table_free(&run);
    return verdict ? verdict : code;
}

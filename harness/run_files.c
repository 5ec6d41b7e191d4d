#include "run_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "crossover.h"
#include "sweep.h"

static void note_error(struct run_files *files, int error)
{
    if (!files->error) files->error = error;
}

/* The union of the dimensions of the plan's ops, in plan order. Names live in the ops. */
static int dims_of(const struct plan *plan, const char **ret, int most)
{
    int n = 0;
    for (int g = 0; g < plan->n; g++) {
        const struct op *op = op_find(plan->group[g].op);
        for (int d = 0; d < op_dims(op); d++) {
            int i = 0;
            while (i < n && strcmp(ret[i], op->dim[d].name)) i++;
            if (i == n && n < most) ret[n++] = op->dim[d].name;
        }
    }
    return n;
}

/* "default" from sweeps/default.ini; "row" or "adhoc" where no file was named. */
static const char *name_of(const struct cli *cli, char *ret, size_t size)
{
    const char *file = cli->args.n ? cli->args.word[0] : cli->row ? "row" : cli->kernels.n || cli->axes.n ? "adhoc" : "default";
    const char *slash = strrchr(file, '/');
    text(ret, size, "%s", slash ? slash + 1 : file);
    char *ending = strrchr(ret, '.');
    if (ending && ending > ret) *ending = 0;
    return ret;
}

static void write_or_die(const struct run_files *files, const char *name, char *content)
{
    int error = runfolder_write(files->folder.path, name, content);
    free(content);
    if (error) die(EXIT_ENVIRONMENT, "%s/%s: %s; choose another folder with --out", files->folder.path, name, strerror(error));
}

/* All kernels in the plan: evidence names the code that it measured. */
static void kernels_of(const struct plan *plan, const struct registry *registry, struct env *ret)
{
    struct entry *kernel = must_alloc((size_t)registry->n + 1, sizeof *kernel);
    int n = 0;
    for (int i = 0; i < registry->n; i++) {
        bool used = false;
        for (int g = 0; g < plan->n && !used; g++)
            for (int v = 0; v < plan->group[g].n && !used; v++) used = !strcmp(plan->group[g].variant[v].kernel,
                registry->entry[i].name);
        if (used) kernel[n++] = registry->entry[i];
    }
    ret->n_kernels = n, ret->kernel = kernel;
}

static void refuse_other_device(const struct cli *cli, const char *path, const struct machine *machine)
{
    struct machine was;
    char why[700];
    if (env_read(path, &was, why, sizeof why))
        die(EXIT_USAGE, "%s; so nobody knows of which device the rows beside it are: begin anew with another --out", why);
    if (!machine_same(&was, machine, why, sizeof why))
        die(EXIT_USAGE, "--resume %s: its rows are of another device, %s; finish it there (--device picks one), or begin anew "
            "with another --out", cli->resume, why);
}

void run_files_refuse_others(const struct cli *cli, const struct plan *plan, const struct registry *registry,
                             const struct machine *machine)
{
    char path[600], error[700];
    struct table rows = {0};
    struct env env = {0};
    if (!cli->resume || table_read(text(path, sizeof path, "%s/rows.csv", cli->resume), &rows, error, sizeof error)) return;
    kernels_of(plan, registry, &env);
    text(path, sizeof path, "%s/env.json", cli->resume);
    if (rows.n) refuse_other_device(cli, path, machine);
    int other = rows.n ? env_other_code(path, env.n_kernels, env.kernel) : -1;
    if (other >= 0)
        die(EXIT_USAGE, "--resume %s: its rows are of other machine code of %s; finish it with the build that began it, or begin "
            "anew with another --out", cli->resume, env.kernel[other].name);
    free((void *)env.kernel);
    table_free(&rows);
}

static char *environment(const struct cli *cli, const struct plan *plan, const struct registry *registry,
    const struct machine *machine)
{
    struct env env = {.command = cli->command_line, .seed = plan->n ? plan->group[0].seed : 0, .machine = machine};
    kernels_of(plan, registry, &env);
    char *ret = env_json(&env);
    free((void *)env.kernel);
    return ret;
}

void run_files_open(struct run_files *files, const struct cli *cli, const struct plan *plan, const struct registry *registry,
                    const struct machine *machine)
{
    const char *dims[64];
    char name[64];
    int n = dims_of(plan, dims, COUNT(dims));
    struct runfolder_options options = {.out = cli->resume ? cli->resume : cli->out, .name = name_of(cli, name, sizeof name),
                                        .force = cli->force, .resume = cli->resume, .n_dims = n, .dims = dims};
    *files = (struct run_files){.groups = 0};
    run_files_refuse_others(cli, plan, registry, machine);   /* again: a run waited for may have been in this folder */
    runfolder_open(&files->folder, &options);
    write_or_die(files, "env.json", environment(cli, plan, registry, machine));
    write_or_die(files, "plan.ini", plan_ini(plan, registry, cli));
    note_error(files, runfolder_log(&files->folder, "%s", cli->command_line));
}

int run_files_row(struct run_files *files, const struct row *row, int n, struct sample *sample)
{
    for (int i = 0; i < n; i++) sample[i].at_s -= files->folder.began_s;
    int error = runfolder_samples(&files->folder, row, n, sample);
    return error ? error : runfolder_row(&files->folder, row);   /* a row that stands has its samples */
}

void run_files_group(struct run_files *files, const char *what, const struct done *done)
{
    double untimed = done->total_s - done->timed_s;
    if (files->groups++) files->untimed_most_s = fmax(files->untimed_most_s, untimed);
    else files->untimed_first_s = untimed;
    note_error(files, runfolder_log(&files->folder,
        "%s: untimed %.3f s (inputs and references %.3f, of it references %.3f; checks %.3f; ring %.3f), timed %.3f s",
                  what, untimed, done->prepare_s, done->reference_s, done->check_s, done->ring_s, done->timed_s));
}

bool run_files_read(struct run_files *files, struct table *ret)
{
    char path[600], error[200];
    text(path, sizeof path, "%s/rows.csv", files->folder.path);
    if (!table_read(path, ret, error, sizeof error)) return true;
    say("%s: neither growth nor plots", error);
    return false;
}

/* A disk that is full now had room for the rows: they matter more than what can be made from them again. */
static void write_derived(struct run_files *files, const char *name, char *content)
{
    int error = runfolder_write(files->folder.path, name, content);
    free(content);
    if (error)
        say("%s/%s: can't be written: %s; make room, then --resume %s makes it", files->folder.path, name, strerror(error),
            files->folder.path);
    note_error(files, error);
}

void run_files_derive(struct run_files *files, const struct table *table, const struct scalings *scalings, bool plots)
{
    write_derived(files, "scaling.csv", scalings_csv(scalings, table));
    write_derived(files, "crossover.csv", crossover_csv(table));
    if (!plots) return;
    struct plot_result drawn = plot_run(files->folder.path, table);
    if (*drawn.note) say("%s", drawn.note);
    note_error(files, drawn.error);
}

void run_files_close(struct run_files *files)
{
    note_error(files, runfolder_log(&files->folder, "untimed work: first group %.3f s, at most %.3f s in a later one",
        files->untimed_first_s, files->untimed_most_s));
    if (files->error) say("%s: not all of its files could be written whole", files->folder.path);
    runfolder_close(&files->folder);
}

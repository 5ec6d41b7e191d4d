#include "floors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "cli.h"
#include "csv.h"
#include "floors_text.h"
#include "format.h"
#include "identity.h"
#include "noise_floors.h"
#include "quiet.h"

enum { ROOTS = 2 };   /* folders whose results/runs may hold the file */

/* What --floors has learnt so far. */
struct learnt {
    int           n;
    struct floor *floor;
    char          why[sizeof ((struct loaded *)NULL)->why];   /* why the tracer's cost isn't measured any more; "": it is */
};

/* The group with each variant in [from, to) so many times, side by side; seed: another order, other data. */
static struct job job_of(const struct supervisor *sv, const struct group *group, int from, int to, int copies, int seed)
{
    struct job job = {.group = *group, .ceilings = sv->hello.machine.ceilings, .timing = {.rounds = FLOOR_ROUNDS}, .check = true,
        .time = true, .timeout_s = 30, .reference_s = REFERENCE_S};
    job.group.n = 0;
    job.group.seed += (uint64_t)seed;
    for (int v = from; v < to; v++)
        for (int copy = 0; copy < copies; copy++) {
            job.group.variant[job.group.n] = group->variant[v];
            job.decided[job.group.n] = true;      /* right or wrong: not asked here */
            job.verdict[job.group.n++] = (struct verdict){.status = STATUS_OK, .err_rel = NAN, .checked_pct = NAN};
        }
    return job;
}

static void keep(struct floor *floor, const struct row *a, const struct row *b)
{
    if (!(a->t_med_ns > 0) || !(b->t_med_ns > 0)) return;
    int held = quiet_badness("throttled");
    floor->disturbed += quiet_badness(a->marks) >= held || quiet_badness(b->marks) >= held;
    double ratio = a->t_med_ns / b->t_med_ns;
    floor->ratio[floor->n++] = ratio;
    floor->pct = fmax(floor->pct, 100 * fabs(ratio - 1));
}

/* Each against its copy. False: interrupted. */
static bool measure(struct supervisor *sv, const struct group *group, int from, int to, struct floor *floor)
{
    struct outcome *outcome = must_alloc(MAX_VARIANTS, sizeof *outcome);
    bool all = true;
    for (int repeat = 0; repeat < FLOOR_REPEATS && all; repeat++) {
        struct job job = job_of(sv, group, from, to, 2, repeat);
        struct done done;
        all = supervisor_group(sv, &job, outcome, &done);
        for (int v = from; v < to; v++) keep(&floor[v - from], &outcome[2 * (v - from)].row, &outcome[2 * (v - from) + 1].row);
        for (int v = 0; v < job.group.n; v++) free(outcome[v].sample);
    }
    free(outcome);
    return all;
}

/* Each before, with and after the tracer, which stays in the process: the next group begins in another. The problem is that of the
 * last repeat, so that its references are there. */
static void measure_loaded(struct supervisor *sv, const struct group *group, int from, int to, struct floor *floor, char *ret_why,
    size_t size)
{
    struct outcome *outcome = must_alloc(MAX_VARIANTS, sizeof *outcome);
    struct job job = job_of(sv, group, from, to, 1, FLOOR_REPEATS - 1);
    struct done done;
    job.loaded = true;
    supervisor_group(sv, &job, outcome, &done);
    for (int v = 0; v < job.group.n; v++) {
        floor[v].loaded = outcome[v].loaded;
        if (!*ret_why) text(ret_why, size, "%s", outcome[v].loaded.why);
        free(outcome[v].sample);
    }
    free(outcome);
}

static void begin_floors(struct learnt *learnt, const struct group *group, int from, int to, const struct registry *registry,
    const struct cli *cli)
{
    learnt->floor = must_grow(learnt->floor, (size_t)(learnt->n + to - from), sizeof *learnt->floor);
    for (int v = from; v < to; v++) {
        struct floor *floor = &learnt->floor[learnt->n + v - from];
        *floor = (struct floor){.loaded = NOT_LOADED};
        row_clear(&floor->row);
        identify_row(&floor->row, group, v, registry, cli);
        bool whole = strlen(cli->command_line) < sizeof floor->row.repeat;
        text(floor->row.repeat, sizeof floor->row.repeat, "%s", whole ? cli->command_line : "");
    }
}

/* Beside where it stood, under a name that is free. False: it stays, and is not to be written over. */
static bool set_aside(const char *path, const char *why)
{
    char old[720];
    int n = 1;
    text(old, sizeof old, "%s.old", path);
    while (!access(old, F_OK) && n < 100) text(old, sizeof old, "%s.old%d", path, ++n);
    int error = n == 100 ? EEXIST : rename(path, old) ? errno : 0;
    if (error) say("%s: %s, and can't be renamed: %s; move it away, new floors are not written there", path, why, strerror(error));
    else say("%s: %s; kept as %s, a new file takes its place", path, why, old);
    return !error;
}

static const char *root_of(int i)
{
    return i ? "." : source_root();
}

/* The floors that the gate knows so far, by the order in which it looks; NULL: none. ret_held: a file there stays untouched. */
static char *earlier_floors(const struct machine *machine, const char *name, bool ret_held[ROOTS])
{
    for (int i = 0; i < ROOTS; i++) {
        char path[700], why[320], *json = NULL;
        size_t bytes;
        int error = file_read(text(path, sizeof path, "%s/results/runs/%s", root_of(i), name), &json, &bytes);
        if (error == ENOENT || error == ENOTDIR) continue;
        if (error) text(why, sizeof why, "can't be read: %s", strerror(error)), json = NULL;
        else if (floors_whole(json, machine, why, sizeof why)) return json;
        free(json);
        ret_held[i] = !set_aside(path, why);
    }
    return NULL;
}

/* Into results/runs of the source tree, where that can't be written of the current folder, beside the rows learnt before. False:
 * nowhere. */
static bool write_floors(FILE *out, const struct machine *machine, const struct learnt *learnt)
{
    char folder[600], name[96];
    bool held[ROOTS] = {false};
    noise_floors_file(machine, name, sizeof name);
    char *earlier = earlier_floors(machine, name, held);
    char *json = floors_json(machine, learnt->floor, learnt->n, learnt->why, earlier);
    int error = json ? EEXIST : ENOMEM;
    text(folder, sizeof folder, "results/runs");
    for (int i = 0; i < ROOTS && error && json; i++) {
        if (held[i]) continue;
        text(folder, sizeof folder, "%s/results", root_of(i));
        mkdir(folder, 0777);
        text(folder, sizeof folder, "%s/results/runs", root_of(i));
        mkdir(folder, 0777);
        error = runfolder_write(folder, name, json);
    }
    free(earlier);
    free(json);
    if (error) say("%s/%s: can't be written: %s; make that folder writable, or start in another", folder, name, strerror(error));
    else fprintf(out, "written: %s/%s\n", folder, name);
    return !error;
}

static int runs(struct supervisor *sv, const struct group *group, int from, int to, struct learnt *learnt, FILE *out)
{
    struct floor *floor = learnt->floor + learnt->n;
    bool all = measure(sv, group, from, to, floor);
    if (all && !*learnt->why) measure_loaded(sv, group, from, to, floor, learnt->why, sizeof learnt->why);
    for (int v = 0; v < to - from && *sv->interrupted; v++) floor[v].n = 0;   /* fewer repeats find less: no floor */
    for (int v = from; v < to; v++) floors_line(out, &floor[v - from], group);
    return to - from;
}

static void print_json(const char *env, const struct machine *machine, const struct learnt *learnt)
{
    char *json = floors_beside(env, machine, learnt->floor, learnt->n, learnt->why);
    if (!json) die(EXIT_ENVIRONMENT, "doctor: out of memory; choose fewer rows by -k");
    puts(json);
    free(json);
}

int floors_run(struct supervisor *sv, struct cli *cli, const struct registry *registry, const struct plan *plan, const char *env,
    const volatile sig_atomic_t *interrupted)
{
    struct learnt learnt = {.n = 0};
    FILE *out = env ? stderr : stdout;
    floors_head(out);
    for (int g = 0; g < plan->n && !*interrupted; g++)
        for (int from = 0, to; from < plan->group[g].n && !*interrupted; from = to) {
            to = from + MAX_VARIANTS / 2 < plan->group[g].n ? from + MAX_VARIANTS / 2 : plan->group[g].n;
            begin_floors(&learnt, &plan->group[g], from, to, registry, cli);
            learnt.n += runs(sv, &plan->group[g], from, to, &learnt, out);
        }
    floors_worst(out, learnt.floor, learnt.n, learnt.why);
    wrap_command(out, FLOORS_WIDTH, fprintf(out, "repeat: "), 2, cli->command_line);
    bool any = !*interrupted;
    for (int i = 0; i < learnt.n; i++) any |= learnt.floor[i].n > 0;
    bool written = any && write_floors(out, &sv->hello.machine, &learnt);
    if (env) print_json(env, &sv->hello.machine, &learnt);
    free(learnt.floor);
    return *interrupted ? 128 + *interrupted : written ? EXIT_OK : EXIT_ENVIRONMENT;
}

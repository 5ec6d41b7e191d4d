#include "floors.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base.h"
#include "cli.h"
#include "csv.h"
#include "format.h"
#include "identity.h"
#include "noise_floors.h"
#include "quiet.h"
#include "sweep.h"

enum { REPEATS = 3, ROUNDS = 60 };

struct floor {
    struct row row;                  /* who it is */
    int        n;
    double     ratio[REPEATS];       /* of the medians of the two copies */
    int        disturbed;            /* repeats in which other work was seen */
    double     pct;                  /* the largest of them */
};

/* The group with each variant in [from, to) twice, side by side. */
static struct job twice(const struct supervisor *sv, const struct group *group, int from, int to)
{
    struct job job = {.group = *group, .ceilings = sv->hello.machine.ceilings, .timing = {.rounds = ROUNDS}, .check = true,
        .time = true, .timeout_s = 30, .reference_s = REFERENCE_S};
    job.group.n = 0;
    for (int v = from; v < to; v++)
        for (int copy = 0; copy < 2; copy++) {
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

/* False: interrupted. */
static bool measure(struct supervisor *sv, const struct group *group, int from, int to, struct floor *floor)
{
    struct outcome *outcome = must_alloc(MAX_VARIANTS, sizeof *outcome);
    bool all = true;
    for (int repeat = 0; repeat < REPEATS && all; repeat++) {
        struct job job = twice(sv, group, from, to);
        struct done done;
        job.group.seed += (uint64_t)repeat;       /* another order, other data */
        all = supervisor_group(sv, &job, outcome, &done);
        for (int v = from; v < to; v++) keep(&floor[v - from], &outcome[2 * (v - from)].row, &outcome[2 * (v - from) + 1].row);
        for (int v = 0; v < job.group.n; v++) free(outcome[v].sample);
    }
    free(outcome);
    return all;
}

static void put_floor(cJSON *rows, const struct floor *floor)
{
    char digits[32];
    cJSON *row = cJSON_CreateObject(), *dims, *ratios;
    cJSON_AddStringToObject(row, "op", floor->row.op);
    cJSON_AddStringToObject(row, "kernel", floor->row.kernel);
    dims = cJSON_AddObjectToObject(row, "dims");
    for (int d = 0; d < floor->row.n_dims; d++)
        cJSON_AddRawToObject(dims, floor->row.dim[d].name, text(digits, sizeof digits, "%lld", (long long)floor->row.dim[d].value));
    cJSON_AddStringToObject(row, "tune", floor->row.tune);
    cJSON_AddStringToObject(row, "cache", floor->row.cache);
    cJSON_AddRawToObject(row, "floor_pct", real_text(floor->pct, digits));
    cJSON_AddNumberToObject(row, "disturbed", floor->disturbed);
    ratios = cJSON_AddArrayToObject(row, "ratios");
    for (int i = 0; i < floor->n; i++) cJSON_AddItemToArray(ratios, cJSON_CreateRaw(real_text(floor->ratio[i], digits)));
    cJSON_AddItemToArray(rows, row);
}

/* Into results/runs of the source tree, where that can't be written of the current folder. False: nowhere. */
static bool write_floors(const struct machine *machine, const struct floor *floor, int n)
{
    char folder[600], name[96];
    cJSON *root = cJSON_CreateObject(), *rows;
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "device", machine->name);
    cJSON_AddStringToObject(root, "uuid", machine->uuid);
    rows = cJSON_AddArrayToObject(root, "rows");
    for (int i = 0; i < n; i++)
        if (floor[i].n) put_floor(rows, &floor[i]);
    char *json = cJSON_Print(root);
    cJSON_Delete(root);
    noise_floors_file(machine, name, sizeof name);
    const char *const roots[] = {source_root(), "."};
    int error = ENOENT;
    for (int i = 0; i < COUNT(roots) && error && json; i++) {
        text(folder, sizeof folder, "%s/results", roots[i]);
        mkdir(folder, 0777);
        text(folder, sizeof folder, "%s/results/runs", roots[i]);
        mkdir(folder, 0777);
        error = runfolder_write(folder, name, json);
    }
    free(json);
    if (error) say("%s/%s: can't be written: %s", folder, name, strerror(error));
    else printf("written: %s/%s\n", folder, name);
    return !error;
}

static void show(const struct group *group, const struct floor *floor)
{
    char what[200], words[320];
    if (!floor->n) return;
    text(words, sizeof words, "%s  %s%s", floor->row.kernel, group_text(group, what, sizeof what),
        floor->disturbed ? "  (not quiet)" : "");
    int column = printf("  %6.3f %%  ", floor->pct);
    wrap_words(stdout, 80, column, column + 2, words);
    fflush(stdout);
}

int floors_run(struct supervisor *sv, struct cli *cli, const struct registry *registry, const volatile sig_atomic_t *interrupted)
{
    struct plan plan = sweep_plan(cli, registry, &sv->hello.machine);
    struct floor *floor = NULL;
    int n = 0, worst = 0;
    printf("noise floors: the same kernel twice in one group, largest difference of the\nmedians of %d x %d rounds\n", REPEATS,
           ROUNDS);
    for (int g = 0; g < plan.n && !*interrupted; g++)
        for (int from = 0, to; from < plan.group[g].n && !*interrupted; from = to) {
            to = from + MAX_VARIANTS / 2 < plan.group[g].n ? from + MAX_VARIANTS / 2 : plan.group[g].n;
            floor = must_grow(floor, (size_t)(n + to - from), sizeof *floor);
            for (int v = from; v < to; v++) {
                floor[n + v - from] = (struct floor){.n = 0};
                row_clear(&floor[n + v - from].row);
                identify_row(&floor[n + v - from].row, &plan.group[g], v, registry, cli);
            }
            measure(sv, &plan.group[g], from, to, floor + n);
            for (int v = from; v < to; v++, n++) {
                show(&plan.group[g], &floor[n]);
                if (floor[n].pct > floor[worst].pct) worst = n;
            }
        }
    if (n && floor[worst].n) printf("worst: %.3f %% (%s)\n", floor[worst].pct, floor[worst].row.kernel);
    bool written = !*interrupted && write_floors(&sv->hello.machine, floor, n);
    plan_free(&plan);
    free(floor);
    return *interrupted ? 128 + *interrupted : written ? EXIT_OK : EXIT_ENVIRONMENT;
}

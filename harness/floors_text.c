#include "floors_text.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "base.h"
#include "csv.h"
#include "format.h"
#include "identity.h"

enum { WIDTH = 80 };

static double longer_pct(double ns, double than_ns)
{
    return than_ns > 0 && ns > 0 ? 100 * (ns / than_ns - 1) : NAN;
}

double floor_loaded_pct(const struct floor *floor)
{
    return longer_pct(floor->loaded.ns[LOADED_OFF], floor->loaded.ns[LOADED_AGAIN]);
}

double floor_traced_pct(const struct floor *floor)
{
    return longer_pct(floor->loaded.ns[LOADED_TRACED], floor->loaded.ns[LOADED_AGAIN]);
}

double floor_again_pct(const struct floor *floor)
{
    return longer_pct(floor->loaded.ns[LOADED_AGAIN], floor->loaded.ns[LOADED_FIRST]);
}

void floors_head(FILE *out)
{
    fprintf(out, "noise floors: the same kernel twice in one group, largest difference of the\nmedians of %d x %d rounds\n",
        FLOOR_REPEATS, FLOOR_ROUNDS);
    fprintf(out, "of a process without a tracer, medians of %d rounds: again, how much longer the\n"
        "second such block is than the first; loaded, with the tracer's library there\n"
        "but off; traced, once the tracer has been on and is off again\n", FLOOR_ROUNDS);
    fprintf(out, "  %8s  %10s  %10s  %10s\n", "floor", "again", "loaded", "traced");
}

static int put_pct(FILE *out, double pct)
{
    return isnan(pct) ? fprintf(out, "%10s  ", "-") : fprintf(out, "%+8.3f %%  ", pct);
}

void floors_line(FILE *out, const struct floor *floor, const struct group *group)
{
    char what[200], words[320];
    if (!floor->n) return;
    text(words, sizeof words, "%s  %s%s", floor->row.kernel, group_text(group, what, sizeof what),
        floor->disturbed || floor->loaded.disturbed ? "  (not quiet)" : "");
    int column = fprintf(out, "  %6.3f %%  ", floor->pct);
    column += put_pct(out, floor_again_pct(floor));
    column += put_pct(out, floor_loaded_pct(floor));
    column += put_pct(out, floor_traced_pct(floor));
    wrap_words(out, WIDTH, column, column + 2, words);
    fflush(out);
}

/* The one that is farthest from 0 by `pct`; NULL: none has it. */
static const struct floor *farthest(const struct floor *floor, int n, double (*pct)(const struct floor *))
{
    const struct floor *ret = NULL;
    for (int i = 0; i < n; i++)
        if (!isnan(pct(&floor[i])) && (!ret || fabs(pct(&floor[i])) > fabs(pct(ret)))) ret = &floor[i];
    return ret;
}

static double floor_pct(const struct floor *floor)
{
    return floor->n ? floor->pct : NAN;
}

void floors_worst(FILE *out, const struct floor *floor, int n, const char *why)
{
    double (*const pct[])(const struct floor *) = {floor_again_pct, floor_loaded_pct, floor_traced_pct};
    const char *const name[] = {"again", "loaded", "traced"};
    const struct floor *worst = farthest(floor, n, floor_pct);
    char words[400];
    if (worst) fprintf(out, "worst: %.3f %% (%s)\n", worst->pct, worst->row.kernel);
    for (int i = 0; i < COUNT(pct); i++) {
        worst = farthest(floor, n, pct[i]);
        if (worst) fprintf(out, "worst %s: %+.3f %% (%s)\n", name[i], pct[i](worst), worst->row.kernel);
    }
    if (*why) wrap_words(out, WIDTH, 0, 2, text(words, sizeof words, "tracer: not measured%s: %s", worst ? " of all" : "", why));
}

static void put_real(cJSON *to, const char *key, double value)
{
    char digits[32];
    if (isnan(value)) cJSON_AddNullToObject(to, key);
    else cJSON_AddRawToObject(to, key, real_text(value, digits));
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
    put_real(row, "floor_pct", floor->pct);
    cJSON_AddNumberToObject(row, "disturbed", floor->disturbed);
    ratios = cJSON_AddArrayToObject(row, "ratios");
    for (int i = 0; i < floor->n; i++) cJSON_AddItemToArray(ratios, cJSON_CreateRaw(real_text(floor->ratio[i], digits)));
    put_real(row, "again_pct", floor_again_pct(floor));
    put_real(row, "loaded_pct", floor_loaded_pct(floor));
    put_real(row, "traced_pct", floor_traced_pct(floor));
    cJSON_AddNumberToObject(row, "loaded_disturbed", floor->loaded.disturbed);
    cJSON_AddItemToArray(rows, row);
}

char *floors_json(const struct machine *machine, const struct floor *floor, int n, const char *why)
{
    cJSON *root = cJSON_CreateObject(), *rows;
    cJSON_AddNumberToObject(root, "schema", FLOORS_SCHEMA);
    cJSON_AddStringToObject(root, "device", machine->name);
    cJSON_AddStringToObject(root, "uuid", machine->uuid);
    if (*why) cJSON_AddStringToObject(root, "loaded_why", why);
    else cJSON_AddNullToObject(root, "loaded_why");
    rows = cJSON_AddArrayToObject(root, "rows");
    for (int i = 0; i < n; i++)
        if (floor[i].n) put_floor(rows, &floor[i]);
    char *json = cJSON_Print(root);
    cJSON_Delete(root);
    return json;
}

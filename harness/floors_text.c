#include "floors_text.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "csv.h"
#include "format.h"
#include "identity.h"
#include "noise_floors.h"

static double longer_pct(double ns, double than_ns)
{
    return than_ns > 0 && ns > 0 ? 100 * (ns / than_ns - 1) : NAN;
}

double floor_loaded_pct(const struct floor *floor)
{
    return longer_pct(floor->loaded.ns[LOADED_OFF], floor->loaded.ns[LOADED_GONE]);
}

double floor_gone_pct(const struct floor *floor)
{
    return longer_pct(floor->loaded.ns[LOADED_GONE], floor->loaded.ns[LOADED_AGAIN]);
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
    fprintf(out, "how much longer, in a process of its own, medians of %d rounds: again, a second\n"
        "run than the first, without a tracer; loaded, rounds with its library there but\n"
        "off than rounds of the same run without; gone, these than the second run;\n"
        "traced, a run once the tracer has been on and is off again than the second run\n", FLOOR_ROUNDS);
    fprintf(out, "  %7s  %8s  %8s  %8s  %8s  (%%)\n", "floor", "again", "loaded", "gone", "traced");
}

static int put_pct(FILE *out, double pct)
{
    return isnan(pct) ? fprintf(out, "%8s  ", "-") : fprintf(out, "%+8.3f  ", pct);
}

void floors_line(FILE *out, const struct floor *floor, const struct group *group)
{
    char what[200], words[320];
    if (!floor->n) return;
    text(words, sizeof words, "%s  %s%s", floor->row.kernel, group_text(group, what, sizeof what),
        floor->disturbed || floor->loaded.disturbed ? "  (not quiet)" : "");
    int column = fprintf(out, "  %7.3f  ", floor->pct);
    column += put_pct(out, floor_again_pct(floor));
    column += put_pct(out, floor_loaded_pct(floor));
    column += put_pct(out, floor_gone_pct(floor));
    column += put_pct(out, floor_traced_pct(floor));
    wrap_words(out, FLOORS_WIDTH, column, column + 2, words);
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
    double (*const pct[])(const struct floor *) = {floor_again_pct, floor_loaded_pct, floor_gone_pct, floor_traced_pct};
    const char *const name[] = {"again", "loaded", "gone", "traced"};
    const struct floor *worst = farthest(floor, n, floor_pct);
    char words[400];
    if (worst) fprintf(out, "worst: %.3f %% (%s)\n", worst->pct, worst->row.kernel);
    for (int i = 0; i < COUNT(pct); i++) {
        worst = farthest(floor, n, pct[i]);
        if (worst) fprintf(out, "worst %s: %+.3f %% (%s)\n", name[i], pct[i](worst), worst->row.kernel);
    }
    if (!*why) return;
    text(words, sizeof words, "tracer: not measured%s: %s", worst ? " of all" : "", why);
    wrap_words(out, FLOORS_WIDTH, 0, 2, words);
}

static void put_real(cJSON *to, const char *key, double value)
{
    char digits[32];
    if (isnan(value)) cJSON_AddNullToObject(to, key);
    else cJSON_AddRawToObject(to, key, real_text(value, digits));
}

static cJSON *row_of(const struct floor *floor)
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
    put_real(row, "gone_pct", floor_gone_pct(floor));
    put_real(row, "traced_pct", floor_traced_pct(floor));
    cJSON_AddNumberToObject(row, "loaded_disturbed", floor->loaded.disturbed);
    cJSON_AddStringToObject(row, "command", floor->row.repeat);
    return row;
}

bool floors_whole(const char *json, const struct machine *machine, char *ret_why, size_t size)
{
    struct noise_floors floors = {.n = 0};
    bool malformed = noise_floors_parse(json, machine->name, &floors);
    locale_t before = c_numbers();
    cJSON *root = cJSON_Parse(json);
    uselocale(before);
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "device"));
    const char *uuid = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "uuid"));
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");
    char tame[2][120];
    text(ret_why, size, "%s", "");
    if (malformed || !name || !uuid || !cJSON_IsNumber(schema)) text(ret_why, size, "not what doctor --floors writes");
    else if (strcmp(name, machine->name) || strcmp(uuid, machine->uuid))
        text(ret_why, size, "floors of another device, %s (%s)", tame_text(name, tame[0], sizeof tame[0]),
            tame_text(uuid, tame[1], sizeof tame[1]));
    else if (schema->valuedouble != 1 && schema->valuedouble != FLOORS_SCHEMA)
        text(ret_why, size, "written as schema %g, known are 1 and %d", schema->valuedouble, FLOORS_SCHEMA);
    cJSON_Delete(root);
    noise_floors_free(&floors);
    return !*ret_why;
}

/* Numbers that were read print as they were: cJSON takes 1.0000000000000002 for 1. */
static void as_read(cJSON *item)
{
    char digits[32];
    cJSON *child;
    cJSON_ArrayForEach(child, item) as_read(child);
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) return;
    if ((item->valuestring = cJSON_malloc(sizeof digits)))
        item->type = cJSON_Raw | (item->type & ~0xff), real_text(item->valuedouble, item->valuestring);
}

/* In schema 1 loaded_pct was of a tracer that had been on and was off, which is traced_pct now, and again_pct what that was to be
 * held against: beside rows of today they would be read as something else. */
static void forget_loaded(cJSON *file)
{
    const char *const keys[] = {"again_pct", "loaded_pct", "traced_pct"};
    cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(file, "rows"))
        for (int i = 0; i < COUNT(keys); i++) {
            bool there = cJSON_GetObjectItemCaseSensitive(row, keys[i]), means_the_same = !strcmp(keys[i], "traced_pct");
            if (!there) cJSON_AddNullToObject(row, keys[i]);
            else if (!means_the_same) cJSON_ReplaceItemInObjectCaseSensitive(row, keys[i], cJSON_CreateNull());
        }
    if (cJSON_IsString(cJSON_GetObjectItemCaseSensitive(file, "loaded_why"))) return;
    cJSON_DeleteItemFromObjectCaseSensitive(file, "loaded_why");
    cJSON_AddStringToObject(file, "loaded_why", "rows of an earlier file: loaded_pct had another meaning");
}

static cJSON *file_of(const char *json)
{
    locale_t before = c_numbers();
    cJSON *file = cJSON_Parse(json);
    uselocale(before);
    if (cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(file, "schema")) < FLOORS_SCHEMA) forget_loaded(file);
    as_read(file);
    return file;
}

static int place(const struct noise_floors *in, const struct row *row)
{
    struct row key = *row;
    key.seed = INT64_MIN;      /* a file of floors has none: noise is not the data's */
    for (int i = 0; i < in->n; i++)
        if (row_same_key(&in->of[i].row, &key)) return i;
    return -1;
}

static cJSON *object_of(const struct machine *machine, const struct floor *floor, int n, const char *why, const char *earlier)
{
    struct noise_floors known = {.n = 0};
    if (earlier && noise_floors_parse(earlier, machine->name, &known)) earlier = NULL;
    cJSON *root = cJSON_CreateObject(), *file = earlier ? file_of(earlier) : NULL, *row;
    cJSON *rows = file ? cJSON_DetachItemFromObjectCaseSensitive(file, "rows") : cJSON_CreateArray();
    for (int i = 0; i < n; i++) {
        int at = place(&known, &floor[i].row);
        if (floor[i].n && at < 0) cJSON_AddItemToArray(rows, row_of(&floor[i]));
        else if (floor[i].n) cJSON_ReplaceItemInArray(rows, at, row_of(&floor[i]));
    }
    const char *was = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(file, "loaded_why"));
    cJSON_ArrayForEach(row, rows)      /* why an earlier row has none holds for as long as there is such a row */
        if (was && !*why && cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(row, "loaded_pct"))) why = was;
    cJSON_AddNumberToObject(root, "schema", FLOORS_SCHEMA);
    cJSON_AddStringToObject(root, "device", machine->name);
    cJSON_AddStringToObject(root, "uuid", machine->uuid);
    if (*why) cJSON_AddStringToObject(root, "loaded_why", why);
    else cJSON_AddNullToObject(root, "loaded_why");
    cJSON_AddItemToObject(root, "rows", rows);
    cJSON_Delete(file);
    noise_floors_free(&known);
    return root;
}

char *floors_json(const struct machine *machine, const struct floor *floor, int n, const char *why, const char *earlier)
{
    cJSON *root = object_of(machine, floor, n, why, earlier);
    char *json = cJSON_Print(root);
    cJSON_Delete(root);
    return json;
}

char *floors_beside(const char *env, const struct machine *machine, const struct floor *floor, int n, const char *why)
{
    double (*const pct[])(const struct floor *) = {floor_pct, floor_again_pct, floor_loaded_pct, floor_gone_pct, floor_traced_pct};
    const char *const key[] = {"floor_pct", "again_pct", "loaded_pct", "gone_pct", "traced_pct"};
    locale_t before = c_numbers();
    cJSON *root = cJSON_Parse(env);
    uselocale(before);
    as_read(root);
    cJSON *floors = object_of(machine, floor, n, why, NULL), *worst = cJSON_AddObjectToObject(floors, "worst");
    for (int i = 0; i < COUNT(pct); i++) {
        const struct floor *of = farthest(floor, n, pct[i]);
        put_real(worst, key[i], of ? pct[i](of) : NAN);
    }
    cJSON_AddItemToObject(root, "floors", floors);
    char *json = cJSON_Print(root);
    cJSON_Delete(root);
    return json;
}

#include "noise_floors.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "csv.h"

char *noise_floors_file(const struct machine *machine, char *ret, size_t size)
{
    return text(ret, size, "doctor-%s.json", machine->uuid);
}

static const char *word_of(const cJSON *from, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(from, key));
}

static int take_floor(const cJSON *from, struct noise_floor *ret)
{
    const cJSON *dims = cJSON_GetObjectItemCaseSensitive(from, "dims"), *pct = cJSON_GetObjectItemCaseSensitive(from, "floor_pct"),
        *dim;
    const char *words[] = {word_of(from, "op"), word_of(from, "kernel"), word_of(from, "tune"), word_of(from, "cache")};
    for (int i = 0; i < COUNT(words); i++)
        if (!words[i]) return 1;
    if (!cJSON_IsObject(dims) || !cJSON_IsNumber(pct) || !(pct->valuedouble >= 0) || !isfinite(pct->valuedouble)) return 1;
    row_clear(&ret->row);
    text(ret->row.op, sizeof ret->row.op, "%s", words[0]);
    text(ret->row.kernel, sizeof ret->row.kernel, "%s", words[1]);
    text(ret->row.tune, sizeof ret->row.tune, "%s", words[2]);
    text(ret->row.cache, sizeof ret->row.cache, "%s", words[3]);
    ret->pct = pct->valuedouble;
    cJSON_ArrayForEach(dim, dims) {
        if (!cJSON_IsNumber(dim) || !(fabs(dim->valuedouble) < 1e15) || ret->row.n_dims == MAX_DIMS) return 1;
        struct row_dim *to = &ret->row.dim[ret->row.n_dims++];
        text(to->name, sizeof to->name, "%s", dim->string);
        to->value = (int64_t)dim->valuedouble;
    }
    return 0;
}

int noise_floors_parse(const char *json, const char *device, struct noise_floors *ret)
{
    locale_t before = c_numbers();
    cJSON *root = cJSON_Parse(json), *row;
    uselocale(before);
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(root, "rows");
    const char *of = word_of(root, "device");
    int error = !of || !cJSON_IsArray(rows);
    if (!error && !strcmp(of, device))      /* a CPU's file may have come from elsewhere: it has no number of its own */
        cJSON_ArrayForEach(row, rows) {
            ret->of = must_grow(ret->of, (size_t)ret->n + 1, sizeof *ret->of);
            if ((error = take_floor(row, &ret->of[ret->n]))) break;
            ret->n++;
        }
    cJSON_Delete(root);
    if (error) noise_floors_free(ret);
    return error;
}

int noise_floors_read(const struct machine *machine, struct noise_floors *ret, char *ret_error, size_t size)
{
    const char *const roots[] = {source_root(), "."};
    char name[96], *json = NULL;
    size_t bytes;
    *ret = (struct noise_floors){.n = 0};
    noise_floors_file(machine, name, sizeof name);
    if (strchr(name, '/')) return 0;
    for (int i = 0; i < COUNT(roots) && !json; i++)
        if (file_read(text(ret->path, sizeof ret->path, "%s/results/runs/%s", roots[i], name), &json, &bytes)) json = NULL;
    int error = json ? noise_floors_parse(json, machine->name, ret) : 0;
    free(json);
    if (error) text(ret_error, size, "%s: not what doctor --floors writes; run that again, or remove it", ret->path);
    return error;
}

double noise_floor_pct(const struct noise_floors *floors, const struct row *row)
{
    for (int i = 0; floors && i < floors->n; i++) {
        const struct row *of = &floors->of[i].row;
        bool same = !strcmp(of->op, row->op) && !strcmp(of->kernel, row->kernel) && !strcmp(of->tune, row->tune) &&
            !strcmp(of->cache, row->cache);
        for (int d = 0; d < of->n_dims && same; d++) same = row_dim(row, of->dim[d].name) == of->dim[d].value;
        if (same) return floors->of[i].pct;
    }
    return NAN;
}

void noise_floors_free(struct noise_floors *floors)
{
    free(floors->of);
    floors->of = NULL, floors->n = 0;
}

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "code.h"
#include "csv.h"
#include "list.h"
#include "plugin.h"
#include "runfolder.h"

enum { DEPTH = 3, MAX_STALE = 64 };

enum freshness { FRESH, STALE, UNKNOWN };

struct result {
    char           path[512], written[32], why[512];   /* why: it can't be read; else empty */
    struct machine machine;
    int            rows, failed, n_stale;
    enum freshness freshness;
    char           plugin[64];                         /* one that it measured and that is not loaded here; else empty */
    char           stale[MAX_STALE][64];               /* kernels with other machine code */
};

struct results {
    int            n;
    struct result *result;
};

static bool builds_for(const struct registry *r, enum engine engine)
{
    for (int i = 0; i < r->n; i++)
        if (r->entry[i].kernel->engine == engine) return true;
    return false;
}

/* Other code is evidence of age only under the same toolkit; without this build's there's no telling, nor in a build without that
 * engine. */
static void compare_code(const cJSON *env, const struct registry *r, const struct toolkits *t, struct result *result)
{
    const char  *toolkit = builds_for(r, result->machine.engine) ? t->of[result->machine.engine] : "";
    const cJSON *kernel, *kernels = cJSON_GetObjectItemCaseSensitive(env, "kernels");
    bool         on_record = cJSON_GetArraySize(kernels) > 0;
    cJSON_ArrayForEach(kernel, kernels) {
        const struct entry *e = registry_find(r, kernel->string);
        bool hashed = cJSON_IsString(kernel) && *kernel->valuestring && (!e || *e->hash);
        bool plugin = hashed && !e && !strncmp(kernel->valuestring, PLUGIN_HASH, strlen(PLUGIN_HASH));
        if (plugin) text(result->plugin, sizeof result->plugin, "%s", kernel->string);
        hashed &= !plugin;
        on_record &= hashed;
        if (!hashed || (e && code_same(env, result->machine.facts.sm, e))) continue;
        if (result->n_stale < MAX_STALE) text(result->stale[result->n_stale++], sizeof result->stale[0], "%s", kernel->string);
    }
    if (result->n_stale) result->freshness = !*toolkit || strcmp(toolkit, result->machine.toolkit) ? UNKNOWN : STALE;
    else result->freshness = on_record ? FRESH : UNKNOWN;
}

static void read_env(const char *path, const struct registry *r, const struct toolkits *t, struct result *result)
{
    char  *content;
    size_t size;
    if (env_read(path, &result->machine, result->why, sizeof result->why)) return;
    if (file_read(path, &content, &size)) return;
    cJSON *env = cJSON_Parse(content);
    const cJSON *written = cJSON_GetObjectItemCaseSensitive(env, "written");
    if (cJSON_IsString(written)) text(result->written, sizeof result->written, "%s", written->valuestring);
    compare_code(env, r, t, result);
    cJSON_Delete(env);
    free(content);
}

static void add_result(const char *folder, const struct registry *r, const struct toolkits *t, struct results *all)
{
    char          path[600];
    struct table  table = {0};
    all->result = must_grow(all->result, (size_t)all->n + 1, sizeof *all->result);
    struct result *result = &all->result[all->n++];
    memset(result, 0, sizeof *result);
    result->freshness = UNKNOWN;
    text(result->path, sizeof result->path, "%s", folder);
    read_env(text(path, sizeof path, "%s/env.json", folder), r, t, result);
    if (table_read(text(path, sizeof path, "%s/rows.csv", folder), &table, result->why, sizeof result->why)) return;
    result->rows = table.n;
    for (int i = 0; i < table.n; i++) result->failed += row_failed(&table.row[i]) != 0;
    table_free(&table);
}

/* A folder with a rows.csv is a run; others are looked into. */
static void find_results(const char *folder, int depth, const struct registry *r, const struct toolkits *t, struct results *all)
{
    char           path[512];
    FILE          *rows = fopen(text(path, sizeof path, "%s/rows.csv", folder), "r");
    struct dirent *entry;
    if (rows) {
        fclose(rows);
        add_result(folder, r, t, all);
        return;
    }
    DIR *dir = depth ? opendir(folder) : NULL;
    while (dir && (entry = readdir(dir)))
        if (*entry->d_name != '.') find_results(text(path, sizeof path, "%s/%s", folder, entry->d_name), depth - 1, r, t, all);
    if (dir) closedir(dir);
}

static int newest_first(const void *a, const void *b)
{
    const struct result *x = a, *y = b;
    int order = strcmp(y->written, x->written);
    return order ? order : strcmp(x->path, y->path);
}

static struct results all_results(const struct registry *r, const struct toolkits *t)
{
    struct results all = {0};
    char           path[512];
    find_results(text(path, sizeof path, "%s/results", source_root()), DEPTH, r, t, &all);
    if (all.n) qsort(all.result, (size_t)all.n, sizeof *all.result, newest_first);
    return all;
}

void list_results(FILE *f, const struct registry *r, const struct toolkits *t)
{
    struct results all = all_results(r, t);
    if (!all.n) fprintf(f, "no run yet below %s/results; begin with: kbench sweep\n", source_root());
    for (int i = 0; i < all.n; i++) {
        const struct result *result = &all.result[i];
        char words[6000], failed[32] = "";
        fprintf(f, "%s\n", result->path);
        if (*result->why) {
            list_wrap(f, 0, 4, result->why);
            continue;
        }
        if (result->failed) text(failed, sizeof failed, ", %d failed", result->failed);
        list_wrap(f, 0, 4, text(words, sizeof words, "%s, %s, %d row%s%s", result->written, result->machine.name, result->rows,
            result->rows == 1 ? "" : "s", failed));
        if (result->freshness == FRESH) continue;
        if (!result->n_stale && *result->plugin)
            text(words, sizeof words, "of plug-in %s, which --plugin has to name here to compare its code", result->plugin);
        else if (!result->n_stale) text(words, sizeof words, "no hash of its kernels' machine code, in it or in this build");
        else if (result->freshness == STALE) text(words, sizeof words, "stale: this build has other machine code of");
        else
            text(words, sizeof words, "of another toolkit (%s) than this build, which has other machine code of",
                result->machine.toolkit);
        size_t n = strlen(words);
        for (int k = 0; k < result->n_stale; k++) n += strlen(text(words + n, sizeof words - n, " %s", result->stale[k]));
        list_wrap(f, 0, 4, words);
    }
    free(all.result);
}

cJSON *list_results_json(const struct registry *r, const struct toolkits *t)
{
    static const char *const names[] = {"fresh", "stale", "unknown"};
    struct results all = all_results(r, t);
    cJSON         *list = cJSON_CreateArray();
    for (int i = 0; i < all.n; i++) {
        const struct result *result = &all.result[i];
        cJSON *one = cJSON_CreateObject(), *stale;
        cJSON_AddStringToObject(one, "folder", result->path);
        if (*result->why) cJSON_AddStringToObject(one, "unreadable", result->why);
        cJSON_AddStringToObject(one, "written", result->written);
        cJSON_AddStringToObject(one, "device", result->machine.name);
        cJSON_AddNumberToObject(one, "rows", result->rows);
        cJSON_AddNumberToObject(one, "failed", result->failed);
        cJSON_AddStringToObject(one, "evidence", names[result->freshness]);
        stale = cJSON_AddArrayToObject(one, "other_code");
        for (int k = 0; k < result->n_stale; k++) cJSON_AddItemToArray(stale, cJSON_CreateString(result->stale[k]));
        cJSON_AddItemToArray(list, one);
    }
    free(all.result);
    return list;
}

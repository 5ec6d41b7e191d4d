#include "code.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "csv.h"
#include "runfolder.h"

static const char *string_of(const cJSON *object, const char *key)
{
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return found ? found : "";
}

/* What the run's device took; "" where the file has no hashes of architectures. */
static const char *taken_then(const cJSON *env, int device, const char *kernel)
{
    const cJSON *of;
    const char  *ret = "";
    int best = 0;
    cJSON_ArrayForEach(of, cJSON_GetObjectItemCaseSensitive(env, "kernels_of_sm"))
        if (*string_of(of, kernel) && registry_takes(of->string, device, &best)) ret = string_of(of, kernel);
    return ret;
}

/* What it would take of this build. */
static char *taken_now(const struct entry *e, int device, char ret[CODE_BYTES])
{
    char sm[SM_BYTES], hash[CODE_BYTES];
    int  best = 0;
    *ret = 0;
    for (int i = 0; registry_code(e, i, sm, hash); i++)
        if (registry_takes(sm, device, &best)) text(ret, CODE_BYTES, "%s", hash);
    return ret;
}

bool code_same(const cJSON *env, int device, const struct entry *e)
{
    char now[CODE_BYTES];
    const char *was = string_of(cJSON_GetObjectItemCaseSensitive(env, "kernels"), e->name);
    if (!strcmp(was, e->hash)) return true;
    was = taken_then(env, device, e->name);
    return *was && !strcmp(was, taken_now(e, device, now));
}

int env_other_code(const char *path, int n, const struct entry *kernel)
{
    char  *json;
    size_t bytes;
    int    ret = -1;
    if (file_read(path, &json, &bytes)) return -1;
    cJSON *env = cJSON_Parse(json);
    const cJSON *sm = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(env, "device"), "sm");
    const cJSON *hashes = cJSON_GetObjectItemCaseSensitive(env, "kernels");
    for (int i = 0; i < n && ret < 0; i++) {
        bool hashed = *string_of(hashes, kernel[i].name) && *kernel[i].hash;
        if (hashed && !code_same(env, cJSON_IsNumber(sm) ? sm->valueint : 0, &kernel[i])) ret = i;
    }
    cJSON_Delete(env);
    free(json);
    return ret;
}

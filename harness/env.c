/* env.json, by cJSON: what a run was measured on. null where a thing is unknown or was not measured; there is no NaN in JSON. */
#include "runfolder.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base.h"
#include "csv.h"
#include "version.h"

enum { ENV_SCHEMA = 1 };

/* Length of the UTF-8 sequence at s, or 0 where there is none (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF). */
static int utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    int n = s[0] >= 0xC2 && s[0] <= 0xDF ? 2 : (s[0] & 0xF0) == 0xE0 ? 3 : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4 : 0;
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF0 && s[1] < 0x90) ||
        (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return n;
}

/* A command line may hold any bytes, JSON may not. */
static void put_text(cJSON *to, const char *key, const char *value)
{
    char *valid = must_alloc(strlen(value) + 1, 1);
    strcpy(valid, value);
    for (char *s = valid; *s;) {
        int n = utf8_length((unsigned char *)s);
        if (!n)
            *s = '?';
        s += n ? n : 1;
    }
    cJSON_AddStringToObject(to, key, valid);
    free(valid);
}

/* As digits, since a double holds no 64-bit seed. `unknown` becomes null. */
static void put_whole(cJSON *to, const char *key, int64_t value, int64_t unknown)
{
    char digits[24];
    if (value == unknown)
        cJSON_AddNullToObject(to, key);
    else
        cJSON_AddRawToObject(to, key, text(digits, sizeof(digits), "%" PRId64, value));
}

static void put_measured(cJSON *to, const char *key, double value)
{
    char digits[32];
    if (isfinite(value) && value != 0)
        cJSON_AddRawToObject(to, key, real_text(value, digits));
    else
        cJSON_AddNullToObject(to, key);
}

static void put_device(cJSON *to, const struct machine *m)
{
    put_text(to, "engine", m->engine == CUDA ? "cuda" : "host");
    put_whole(to, "ordinal", m->ordinal, INT64_MIN);
    put_text(to, "name", m->name);
    put_text(to, "uuid", m->uuid);
    put_text(to, "driver", m->driver);
    put_text(to, "toolkit", m->toolkit);
    put_text(to, "features", m->features);
    put_text(to, "mig", m->mig);
    put_whole(to, "sm", m->facts.sm, INT64_MIN);
    put_whole(to, "sm_count", m->facts.sm_count, INT64_MIN);
    put_whole(to, "l2_bytes", m->facts.l2_bytes, INT64_MIN);
    put_whole(to, "smem_bytes", m->facts.smem_bytes, INT64_MIN);
    put_whole(to, "memory_bytes", m->facts.memory_bytes, INT64_MIN);
    put_whole(to, "sm_clock_MHz", m->sm_clock_MHz, -1);
    put_whole(to, "memory_clock_MHz", m->memory_clock_MHz, -1);
    put_whole(to, "power_W", m->power_W, -1);
    put_whole(to, "temperature_C", m->temperature_C, -1);
    cJSON *spins = cJSON_AddArrayToObject(to, "spin_us_1_2_5_10_50_read_ns");
    for (int i = 0; i < SPINS; i++) {
        char digits[32];
        cJSON_AddItemToArray(spins, m->spin_ns[i] != 0 ? cJSON_CreateRaw(real_text(m->spin_ns[i], digits)) : cJSON_CreateNull());
    }
}

static void put_ceilings(cJSON *to, const struct ceilings *c)
{
    put_measured(to, "read_GBps", c->read_GBps);
    put_measured(to, "copy_GBps", c->copy_GBps);
    put_measured(to, "matrix_GFLOPs", c->matrix_GFLOPs);
    put_measured(to, "latency_ns", c->latency_ns);
    put_measured(to, "floor_ns", c->floor_ns);
    put_measured(to, "event_ns", c->event_ns);
}

/* Over all architectures, and of each alone: another build may be for this device only. What an older one does not have. */
static void put_code(cJSON *root, int n, const struct entry *kernel)
{
    char sm[SM_BYTES], hash[CODE_BYTES];
    cJSON *whole = cJSON_AddObjectToObject(root, "kernels"), *alone = cJSON_AddObjectToObject(root, "kernels_of_sm");
    for (int i = 0; i < n; i++) {
        put_text(whole, kernel[i].name, kernel[i].hash);
        for (int k = 0; registry_code(&kernel[i], k, sm, hash); k++) {
            cJSON *of = cJSON_GetObjectItemCaseSensitive(alone, sm);
            put_text(of ? of : cJSON_AddObjectToObject(alone, sm), kernel[i].name, hash);
        }
    }
}

char *env_json(const struct env *env)
{
    char now[32], seed[24];
    time_t at = time(NULL);
    struct tm utc;
    strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &utc));

    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", ENV_SCHEMA);
    put_text(root, "kbench", KBENCH_VERSION);
    put_text(root, "written", now);
    put_text(root, "command", env->command ? env->command : "");
    cJSON_AddRawToObject(root, "seed", text(seed, sizeof(seed), "%" PRIu64, env->seed));
    put_device(cJSON_AddObjectToObject(root, "device"), env->machine);
    put_ceilings(cJSON_AddObjectToObject(root, "ceilings"), &env->machine->ceilings);
    put_code(root, env->n_kernels, env->kernel);

    locale_t before = c_numbers();
    char *json = cJSON_Print(root);
    uselocale(before);
    cJSON_Delete(root);
    if (!json)
        die(EXIT_ENVIRONMENT, "env.json: out of memory; run it again with less beside it");
    return json;
}

/* The cells of an object that have to be there but may be null: then `unknown`. A wrong type is counted in *errors. */
static double get_number(const cJSON *from, const char *key, double unknown, int *errors)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    if (cJSON_IsNumber(item))
        return item->valuedouble;
    *errors += item && !cJSON_IsNull(item);
    return unknown;
}

static int64_t get_whole(const cJSON *from, const char *key, int64_t unknown, int *errors)
{
    double value = get_number(from, key, (double)unknown, errors);
    if (value >= -9e18 && value <= 9e18)
        return (int64_t)value;
    ++*errors;
    return unknown;
}

static void get_text(const cJSON *from, const char *key, char *ret, size_t size, int *errors)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    text(ret, size, "%s", cJSON_IsString(item) ? item->valuestring : "");
    *errors += item && !cJSON_IsString(item);
}

/* What older files do not have. */
static void get_optional_text(const cJSON *from, const char *key, char *ret, size_t size)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    text(ret, size, "%s", cJSON_IsString(item) ? item->valuestring : "");
}

static void get_device(const cJSON *from, struct machine *m, int *errors)
{
    char engine[8];
    get_text(from, "engine", engine, sizeof(engine), errors);
    m->engine = strcmp(engine, "cuda") ? HOST : CUDA;
    *errors += strcmp(engine, "cuda") && strcmp(engine, "host");
    m->ordinal = (int32_t)get_whole(from, "ordinal", 0, errors);
    get_text(from, "name", m->name, sizeof(m->name), errors);
    get_text(from, "uuid", m->uuid, sizeof(m->uuid), errors);
    get_text(from, "driver", m->driver, sizeof(m->driver), errors);
    get_text(from, "toolkit", m->toolkit, sizeof(m->toolkit), errors);
    get_text(from, "features", m->features, sizeof(m->features), errors);
    get_optional_text(from, "mig", m->mig, sizeof(m->mig));
    m->facts.sm = (int32_t)get_whole(from, "sm", 0, errors);
    m->facts.sm_count = (int32_t)get_whole(from, "sm_count", 0, errors);
    m->facts.l2_bytes = get_whole(from, "l2_bytes", 0, errors);
    m->facts.smem_bytes = get_whole(from, "smem_bytes", 0, errors);
    m->facts.memory_bytes = get_whole(from, "memory_bytes", 0, errors);
    m->sm_clock_MHz = (int32_t)get_whole(from, "sm_clock_MHz", -1, errors);
    m->memory_clock_MHz = (int32_t)get_whole(from, "memory_clock_MHz", -1, errors);
    m->power_W = (int32_t)get_whole(from, "power_W", -1, errors);
    m->temperature_C = (int32_t)get_whole(from, "temperature_C", -1, errors);
}

static void get_ceilings(const cJSON *from, struct ceilings *c, int *errors)
{
    c->read_GBps = get_number(from, "read_GBps", 0, errors);
    c->copy_GBps = get_number(from, "copy_GBps", 0, errors);
    c->matrix_GFLOPs = get_number(from, "matrix_GFLOPs", 0, errors);
    c->latency_ns = get_number(from, "latency_ns", 0, errors);
    c->floor_ns = get_number(from, "floor_ns", 0, errors);
    c->event_ns = get_number(from, "event_ns", 0, errors);
}

/* cJSON reads numbers by strtod with the locale's decimal mark; both sides of it are the C locale's here. */
static cJSON *parse(const char *json)
{
    locale_t before = c_numbers();
    cJSON *root = cJSON_Parse(json);
    uselocale(before);
    return root;
}

int env_read(const char *path, struct machine *ret, char *ret_error, size_t size)
{
    struct machine machine = {0};
    char *json;
    size_t bytes;
    int errors = 0, error = file_read(path, &json, &bytes);
    if (error) {
        text(ret_error, size, "%s: can't be read: %s", path, strerror(error));
        return error;
    }
    cJSON *root = parse(json);
    free(json);
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(root, "device");
    const char *why = NULL;
    if (!root || !cJSON_IsObject(root) || !cJSON_IsObject(device)) {
        why = "not an env.json of kbench: no JSON object with a device";
    } else if (!cJSON_IsNumber(schema) || schema->valueint > ENV_SCHEMA) {
        why = "of a newer or unknown schema: read it with the version of kbench that wrote it";
    } else {
        get_device(device, &machine, &errors);
        get_ceilings(cJSON_GetObjectItemCaseSensitive(root, "ceilings"), &machine.ceilings, &errors);
        if (errors)
            why = "damaged: a value of its device or ceilings is of another type";
    }
    cJSON_Delete(root);
    if (why) {
        text(ret_error, size, "%s: %s", path, why);
        return -1;
    }
    *ret = machine;
    return 0;
}

/* "NVIDIA H200 (GPU-1b2c, MIG 1g.18gb)"; a CPU has no number of its own. */
static char *which_text(const struct machine *m, char *ret, size_t size)
{
    if (m->engine == HOST) return text(ret, size, "%s", m->name);
    return text(ret, size, "%s (%s%s%s)", m->name, *m->uuid ? m->uuid : "no UUID", *m->mig ? ", MIG " : "", m->mig);
}

bool machine_same(const struct machine *was, const struct machine *is, char *ret_why, size_t size)
{
    char before[240], now[240];
    if (was->engine == is->engine && !strcmp(was->name, is->name) && !strcmp(was->uuid, is->uuid) && !strcmp(was->mig, is->mig))
        return true;
    text(ret_why, size, "%s, and this is %s", which_text(was, before, sizeof before), which_text(is, now, sizeof now));
    return false;
}

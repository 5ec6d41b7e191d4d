#include "registry.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "nearest.h"
#include "plugin.h"

struct registry registry_open(int n_plugins, char *const *plugins)
{
    struct registry r = {0};
    while (builtin_kernels[r.n].kernel) r.n++;
    r.entry = must_alloc((size_t)r.n + (size_t)n_plugins, sizeof *r.entry);
    memcpy(r.entry, builtin_kernels, (size_t)r.n * sizeof *r.entry);
    for (int i = 0; i < n_plugins; i++) {
        char why[512];
        if (plugin_open(plugins[i], &r, &r.entry[r.n], why, sizeof why)) die(EXIT_USAGE, "%s", why);
        r.n++;
    }
    return r;
}

const struct entry *registry_find(const struct registry *r, const char *name)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->entry[i].name, name)) return &r->entry[i];
    return NULL;
}

const struct op *op_find(const char *name)
{
    for (int i = 0; ops[i]; i++)
        if (!strcmp(ops[i]->name, name)) return ops[i];
    return NULL;
}

int op_dims(const struct op *op)
{
    int n = 0;
    while (n < MAX_DIMS && op->dim[n].name) n++;
    return n;
}

int op_tensors(const struct op *op)
{
    int n = 0;
    while (n < MAX_TENSORS && op->tensor[n].name) n++;
    return n;
}

int op_dim(const struct op *op, const char *name)
{
    for (int i = 0; i < op_dims(op); i++)
        if (!strcmp(op->dim[i].name, name)) return i;
    return -1;
}

int kernel_tunables(const struct kernel *k)
{
    int n = 0;
    while (n < MAX_TUNABLES && k->tunable[n].name) n++;
    return n;
}

static uint64_t add_byte(uint64_t hash, unsigned byte)
{
    return (hash ^ (byte & 0xff)) * 0x100000001b3u;
}

static uint64_t add_name(uint64_t hash, const char *name)
{
    while (*name) hash = add_byte(hash, (unsigned char)*name++);
    return add_byte(hash, 0);
}

/* Dims: name, 0. Then a 1. Tensors: name, 0, dtype, role. FNV-1a, 64 bits. */
uint64_t layout_hash(const struct op *op)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < op_dims(op); i++) hash = add_name(hash, op->dim[i].name);
    hash = add_byte(hash, 1);
    for (int i = 0; i < op_tensors(op); i++) {
        hash = add_name(hash, op->tensor[i].name);
        hash = add_byte(hash, op->tensor[i].dtype);
        hash = add_byte(hash, op->tensor[i].role);
    }
    return hash;
}

/* "90a" runs on 9.0 alone, "100f" and "80" on their major version from that minor on. */
static bool runs_on(const char *sm, int device)
{
    char *end;
    long  built = strtol(sm, &end, 10);
    if (*end == 'a') return built == device;
    return built / 10 == device / 10 && built % 10 <= device % 10;
}

const char *registry_no_code(const struct entry *e, const struct device *d, char *ret_why, size_t size)
{
    if (e->kernel->engine == HOST || !e->sms || !*e->sms) return NULL;   /* a plug-in doesn't say: the launch will */
    for (const char *sm = e->sms; sm; sm = strchr(sm, ',')) {
        sm += *sm == ',';
        if (runs_on(sm, d->sm)) return NULL;
    }
    return text(ret_why, size, "built for sm %s; this device is sm_%d", e->sms, (int)d->sm);
}

bool registry_code(const struct entry *e, int i, char ret_sm[SM_BYTES], char ret_hash[CODE_BYTES])
{
    const char *at = e->hashes ? e->hashes : "";
    for (; i > 0 && *at; i--) at += strcspn(at, ","), at += *at == ',';
    size_t sm = strcspn(at, ":"), both = strcspn(at, ",");
    if (sm >= both) return false;
    text(ret_sm, SM_BYTES, "%.*s", (int)sm, at);
    text(ret_hash, CODE_BYTES, "%.*s", (int)(both - sm - 1), at + sm + 1);
    return true;
}

bool registry_takes(const char *sm, int device, int *best)
{
    int built = (int)strtol(sm, NULL, 10);
    if (!runs_on(sm, device) || built <= *best) return false;
    *best = built;
    return true;
}

struct problem problem_for_kernel(const struct problem *p)
{
    struct problem seen = *p;
    for (int i = 0; i < op_dims(p->op); i++)
        if (p->op->dim[i].live) seen.dim[i] = p->op->dim[i].max;
    return seen;
}

char *value_text(int64_t value, char *ret, size_t size)
{
    if (value && value % (1 << 20) == 0) return text(ret, size, "%lldM", (long long)(value / (1 << 20)));
    if (value && value % (1 << 10) == 0) return text(ret, size, "%lldK", (long long)(value / (1 << 10)));
    return text(ret, size, "%lld", (long long)value);
}

const char *const *dim_names(const char *dim)
{
    for (int i = 0; ops[i]; i++) {
        int d = op_dim(ops[i], dim);
        if (d >= 0 && ops[i]->dim[d].names) return ops[i]->dim[d].names;
    }
    return NULL;
}

const char *dim_word(const char *dim, int64_t value)
{
    const char *const *names = dim_names(dim);
    for (int64_t i = 0; names && names[i]; i++)
        if (i == value) return names[i];
    return NULL;
}

char *dim_text(const char *dim, int64_t value, char *ret, size_t size)
{
    const char *word = dim_word(dim, value);
    return word ? text(ret, size, "%s", word) : value_text(value, ret, size);
}

char *dim_choices(const char *dim, char *ret, size_t size)
{
    const char *const *names = dim_names(dim);
    size_t at = 0;
    if (size) *ret = 0;
    for (int i = 0; names && names[i] && at < size; i++) {
        text(ret + at, size - at, "%s%s", !i ? "" : names[i + 1] ? ", " : " or ", names[i]);
        at += strlen(ret + at);
    }
    return ret;
}

int dim_read_word(const char *dim, const char **at, int64_t *ret, char *ret_why, size_t size)
{
    const char *const *names = dim_names(dim);
    char   word[32], choices[160], hint[96];
    size_t length = 0;
    int    n = 0;
    while (isalnum((unsigned char)(*at)[length]) || (*at)[length] == '_' || (*at)[length] == '-') length++;
    text(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1, *at);
    for (; names && names[n]; n++)
        if (strlen(names[n]) == length && !strcmp(names[n], word)) return *ret = n, *at += length, 0;
    text(ret_why, size, "is none of %s%s", dim_choices(dim, choices, sizeof choices),
        did_you_mean(word, names, n, hint, sizeof hint));
    return 1;
}

char *problem_text(const struct problem *p, bool all, char *ret, size_t size)
{
    size_t at = 0;
    if (size) *ret = 0;
    for (int i = 0; i < op_dims(p->op); i++) {
        if (!all && p->dim[i] == p->op->dim[i].dflt) continue;
        char value[24];
        if (at < size)
            text(ret + at, size - at, "%s%s=%s", at ? "," : "", p->op->dim[i].name,
                dim_text(p->op->dim[i].name, p->dim[i], value, sizeof value));
        if (at < size) at += strlen(ret + at);
    }
    return ret;
}

char *tune_text(const struct kernel *k, const int32_t *tune, char *ret, size_t size)
{
    size_t at = 0;
    if (size) *ret = 0;
    for (int i = 0; i < kernel_tunables(k); i++) {
        if (at < size) text(ret + at, size - at, "%s%s=%d", at ? ";" : "", k->tunable[i].name, (int)tune[i]);
        if (at < size) at += strlen(ret + at);
    }
    return ret;
}

char *kernel_declared_text(const struct kernel *k, char *ret, size_t size)
{
    size_t at = 0;
    if (size) *ret = 0;
    for (int i = 0; i < MAX_DIMS && k->growth[i].dim && at < size; i++) {
        text(ret + at, size - at, "%s%s^%g", at ? ";" : "", k->growth[i].dim, k->growth[i].exponent);
        at += strlen(ret + at);
    }
    return ret;
}

char *kernel_growth_text(const struct op *op, const struct kernel *k, char *ret, size_t size)
{
    size_t at = 0;
    if (size) *ret = 0;
    for (int i = 0; i < MAX_DIMS && k->growth[i].dim; i++) {
        int dim = op_dim(op, k->growth[i].dim);
        if (dim < 0 || !(k->growth[i].exponent > op->dim[dim].ideal)) continue;
        char power[24] = "";
        if (k->growth[i].exponent != 1) text(power, sizeof power, "^%g", k->growth[i].exponent);
        if (at < size) text(ret + at, size - at, "%sO(%s%s)", at ? " " : "", k->growth[i].dim, power);
        if (at < size) at += strlen(ret + at);
    }
    return ret;
}

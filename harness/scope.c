#include "scope.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

int fail(struct trouble *trouble, struct place at, const char *format, ...)
{
    size_t n = strlen(text(trouble->text, sizeof trouble->text, at.line ? "%s:%d: " : "%s ", at.file, at.line));
    if (!at.line && (!at.file || !*at.file)) n = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(trouble->text + n, sizeof trouble->text - n, format, args);
    va_end(args);
    return 1;
}

/* One more element at the end of an array of a scope. */
#define ADD(array, n)                                                                                                      \
    (array = must_grow(array, (size_t)(n) + 1, sizeof *(array)), memset(&(array)[n], 0, sizeof *(array)), &(array)[(n)++])

/* The words that a section may use, beside dimensions and tune.NAME. */
static const char *const section_keys[] = {"kernels", "skip-kernels", "first", "zip", "skip", "cache", "seed", "variant",
    "device"};
static const char *const global_keys[] = {"budget", "noise", "max-time", "rounds", "timeout", "include"};

static bool one_of(const char *word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(word, words[i])) return true;
    return false;
}

static bool is_dimension(const char *name)
{
    for (int i = 0; ops[i]; i++)
        if (op_dim(ops[i], name) >= 0) return true;
    return false;
}

/* Every dimension of every op, and with `keys` the words of job files. */
static int known_words(const char **ret, int room, bool keys)
{
    int n = 0;
    for (int i = 0; ops[i]; i++)
        for (int d = 0; d < op_dims(ops[i]) && n < room; d++)
            if (!one_of(ops[i]->dim[d].name, ret, n)) ret[n++] = ops[i]->dim[d].name;
    for (int i = 0; keys && i < COUNT(section_keys) && n < room; i++) ret[n++] = section_keys[i];
    for (int i = 0; keys && i < COUNT(global_keys) && n < room; i++) ret[n++] = global_keys[i];
    return n;
}

static int unknown(struct trouble *trouble, struct place at, const char *name, bool keys)
{
    const char *words[256];
    char        hint[128];
    int         n = known_words(words, COUNT(words), keys);
    return fail(trouble, at, "%.60s: no op has a dimension of that name%s%s", name, keys ? ", and it is no key" : "",
        did_you_mean(name, words, n, hint, sizeof hint));
}

static int add_axis(struct scope *scope, bool tune, const char *words, struct place at, struct trouble *trouble)
{
    char        why[256];
    struct axis axis;
    if (axis_parse(words, &axis, why, sizeof why)) return fail(trouble, at, "%s", why);
    const struct setting *all = tune ? scope->tune : scope->axis;
    for (int i = 0; i < (tune ? scope->n_tunes : scope->n_axes); i++)
        if (!strcmp(all[i].axis.name, axis.name)) {
            int error = fail(trouble, at, "%s: is there twice; give one list", axis.name);
            axis_free(&axis);
            return error;
        }
    if (!tune && !is_dimension(axis.name)) {
        int error = unknown(trouble, at, axis.name, false);
        axis_free(&axis);
        return error;
    }
    *(tune ? ADD(scope->tune, scope->n_tunes) : ADD(scope->axis, scope->n_axes)) = (struct setting){at, axis, false};
    return 0;
}

/* The next word of a comma list, blanks around it removed; false at the end. */
static int next_word(const char **at, char *ret, size_t size, struct place place, struct trouble *trouble)
{
    const char *p = *at + strspn(*at, " \t");
    size_t      n = strcspn(p, ",");
    const char *behind = p + n;
    while (n && isspace((unsigned char)p[n - 1])) n--;
    if (!n) return fail(trouble, place, "%.60s: an empty word; remove the comma", *at);
    if (n >= size) return fail(trouble, place, "%.60s: a word is longer than %d characters", p, (int)size - 1);
    text(ret, size, "%.*s", (int)n, p);
    *at = *behind == ',' ? behind + 1 : behind;
    if (*behind == ',' && !**at) return fail(trouble, place, "%.60s: an empty word; remove the comma", p);
    return 0;
}

static int add_globs(struct glob **globs, int *n, const char *words, struct place at, struct trouble *trouble)
{
    for (const char *p = words; *p || p == words;) {
        struct glob glob = {.at = at};
        TRY(next_word(&p, glob.word, sizeof glob.word, at, trouble));
        *ADD(*globs, *n) = glob;
    }
    return 0;
}

static int add_zip(struct scope *scope, const char *words, struct place at, struct trouble *trouble)
{
    struct zip zip = {.at = at};
    for (const char *p = words; *p || p == words;) {
        if (zip.n == MAX_DIMS) return fail(trouble, at, "%.60s: more than %d dimensions", words, MAX_DIMS);
        TRY(next_word(&p, zip.name[zip.n], sizeof zip.name[0], at, trouble));
        for (int i = 0; i < zip.n; i++)
            if (!strcmp(zip.name[i], zip.name[zip.n])) return fail(trouble, at, "%.60s: %s is there twice", words, zip.name[i]);
        if (!is_dimension(zip.name[zip.n])) return unknown(trouble, at, zip.name[zip.n], false);
        zip.n++;
    }
    if (zip.n < 2) return fail(trouble, at, "%s: two dimensions at least are walked together, as in batch,ctx", words);
    *ADD(scope->zip, scope->n_zips) = zip;
    return 0;
}

static int read_relation(const char **at, enum relation *ret)
{
    static const struct { const char *sign; enum relation relation; } signs[] = {
        {"<=", LESS_EQUAL}, {">=", GREATER_EQUAL}, {"!=", UNEQUAL}, {"==", EQUAL}, {"<", LESS}, {">", GREATER}, {"=", EQUAL}};
    for (int i = 0; i < COUNT(signs); i++)
        if (!strncmp(*at, signs[i].sign, strlen(signs[i].sign))) {
            *ret = signs[i].relation;
            *at += strlen(signs[i].sign);
            return 0;
        }
    return 1;
}

/* "batch>64 ctx>=128K": all of them must hold. */
static int add_condition(struct scope *scope, const char *words, struct place at, struct trouble *trouble)
{
    struct condition condition = {.at = at};
    const char      *p = words + strspn(words, " \t");
    char             why[320];
    while (*p) {
        struct comparison *c = &condition.comparison[condition.n];
        if (condition.n == COUNT(condition.comparison)) return fail(trouble, at, "skip %.60s: more than 8 comparisons", words);
        size_t n = 0;
        while (isalnum((unsigned char)p[n]) || p[n] == '_') n++;
        if (!n || n >= sizeof c->name)
            return fail(trouble, at, "skip %.60s: DIM<VALUE is expected at '%.20s', as in batch>64 ctx>=128K", words, p);
        text(c->name, sizeof c->name, "%.*s", (int)n, p);
        p += n;
        p += strspn(p, " \t");
        if (read_relation(&p, &c->relation))
            return fail(trouble, at, "skip %.60s: <, <=, >, >=, = or != is expected behind %s", words, c->name);
        p += strspn(p, " \t");
        if (axis_value(c->name, &p, &c->value, why, sizeof why))
            return fail(trouble, at, "skip %.60s: behind %s, %s", words, c->name, why);
        if (*p && *p != ' ' && *p != '\t') return fail(trouble, at, "skip %.60s: unexpected '%.20s' behind a number", words, p);
        if (!is_dimension(c->name)) return unknown(trouble, at, c->name, false);
        p += strspn(p, " \t");
        condition.n++;
    }
    *ADD(scope->skip, scope->n_skips) = condition;
    return 0;
}

/* "attn/splitk splits=4,stages=2" */
static int add_fixed(struct scope *scope, const char *words, struct place at, struct trouble *trouble)
{
    struct fixed fixed = {.at = at};
    size_t       n = strcspn(words, " \t");
    if (n >= sizeof fixed.kernel) return fail(trouble, at, "variant %.60s: no kernel has so long a name", words);
    text(fixed.kernel, sizeof fixed.kernel, "%.*s", (int)n, words);
    const char *p = words + n + strspn(words + n, " \t");
    while (*p) {
        char        word[64];
        const char *equals, *value, *why;
        int64_t     number;
        TRY(next_word(&p, word, sizeof word, at, trouble));
        equals = strchr(word, '=');
        value = equals ? equals + 1 : word;
        if (!equals || equals == word || equals - word >= 32 || fixed.n == MAX_TUNABLES)
            return fail(trouble, at, "variant %.60s: up to %d NAME=VALUE of tunables are expected behind the kernel", words,
                MAX_TUNABLES);
        if (axis_number(&value, &number, &why) || *value || number != (int32_t)number)
            return fail(trouble, at, "variant %.60s: %s is no value of a tunable", words, equals + 1);
        text(fixed.tune[fixed.n].name, sizeof fixed.tune[0].name, "%.*s", (int)(equals - word), word);
        fixed.tune[fixed.n++].value = (int32_t)number;
    }
    *ADD(scope->fixed, scope->n_fixed) = fixed;
    return 0;
}

static int set_cache(struct scope *scope, const char *word, struct place at, struct trouble *trouble)
{
    static const char *const names[] = {"cold", "hot", "both"};
    for (int i = 0; i < COUNT(names); i++)
        if (!strcmp(word, names[i])) return scope->has_cache = true, scope->cache = (enum cache_choice)i, 0;
    return fail(trouble, at, "cache = %.60s: is not one of cold, hot, both", word);
}

/* A section that one engine alone runs: sizes for a CPU are none for a GPU. */
static int set_device(struct scope *scope, const char *word, bool global, struct place at, struct trouble *trouble)
{
    if (global) return fail(trouble, at, "device: says which engine a section is for; for a whole run give --device");
    scope->has_device = true;
    if (!strcmp(word, "host")) return scope->device = HOST, 0;
    if (!strcmp(word, "cuda")) return scope->device = CUDA, 0;
    return fail(trouble, at, "device = %.60s: is not one of host, cuda", word);
}

static int set_seed(struct scope *scope, const char *word, struct place at, struct trouble *trouble)
{
    char *end;
    errno = 0;
    scope->seed = strtoull(word, &end, 10);
    scope->has_seed = true;
    if (!isdigit((unsigned char)*word) || *end || errno || scope->seed > INT64_MAX)
        return fail(trouble, at, "seed = %.60s: is not a whole number from 0 to 2^63-1", word);
    return 0;
}

static int take_key(const struct job_key *key, bool global, struct scope *scope, struct trouble *trouble)
{
    struct place at = {key->file, key->line};
    const char  *name = key->name, *value = key->value;
    char         words[320];
    if (!strcmp(name, "kernels")) return add_globs(&scope->kernel, &scope->n_kernels, value, at, trouble);
    if (!strcmp(name, "skip-kernels")) return add_globs(&scope->skip_kernel, &scope->n_skip_kernels, value, at, trouble);
    if (!strcmp(name, "first")) return add_globs(&scope->first, &scope->n_first, value, at, trouble);
    if (!strcmp(name, "zip")) return add_zip(scope, value, at, trouble);
    if (!strcmp(name, "skip")) return add_condition(scope, value, at, trouble);
    if (!strcmp(name, "variant")) return add_fixed(scope, value, at, trouble);
    if (!strcmp(name, "device")) return set_device(scope, value, global, at, trouble);
    if (!strcmp(name, "cache")) return set_cache(scope, value, at, trouble);
    if (!strcmp(name, "seed")) return set_seed(scope, value, at, trouble);
    if (one_of(name, global_keys, COUNT(global_keys)))
        return global ? 0 : fail(trouble, at, "%s: holds for the whole run; put it into [global]", name);
    bool tune = !strncmp(name, "tune.", 5);
    if (!tune && !is_dimension(name)) return unknown(trouble, at, name, true);
    text(words, sizeof words, "%s=%s", tune ? name + 5 : name, value);
    return add_axis(scope, tune, words, at, trouble);
}

/* [global]: of a name that stands twice (an included file, and this one), the later counts; keys that add up all do. */
static bool overridden(const struct job_section *section, int key)
{
    const char *name = section->key[key].name;
    if (!strcmp(name, "skip") || !strcmp(name, "zip") || !strcmp(name, "variant")) return false;
    return job_find(section, name) != &section->key[key];
}

int scope_of_section(const struct job_section *section, bool global, struct scope *scope, struct trouble *trouble)
{
    for (int i = 0; i < section->n; i++)
        if (!overridden(section, i)) TRY(take_key(&section->key[i], global, scope, trouble));
    if (scope->n_fixed && scope->n_kernels)
        return fail(trouble, scope->fixed[0].at, "variant: stands beside kernels; a section has one or the other");
    return 0;
}

int scope_of_cli(const struct cli *cli, struct scope *scope, struct trouble *trouble)
{
    for (int i = 0; i < cli->kernels.n; i++)
        TRY(add_globs(&scope->kernel, &scope->n_kernels, cli->kernels.word[i], (struct place){"-k", 0}, trouble));
    for (int i = 0; i < cli->skip_kernels.n; i++)
        TRY(add_globs(
            &scope->skip_kernel, &scope->n_skip_kernels, cli->skip_kernels.word[i], (struct place){"--skip", 0}, trouble));
    for (int i = 0; i < cli->first.n; i++)
        TRY(add_globs(&scope->first, &scope->n_first, cli->first.word[i], (struct place){"--first", 0}, trouble));
    for (int i = 0; i < cli->axes.n; i++) TRY(add_axis(scope, false, cli->axes.word[i], (struct place){"-a", 0}, trouble));
    for (int i = 0; i < cli->tunes.n; i++) TRY(add_axis(scope, true, cli->tunes.word[i], (struct place){"-t", 0}, trouble));
    for (int i = 0; i < cli->zips.n; i++) TRY(add_zip(scope, cli->zips.word[i], (struct place){"--zip", 0}, trouble));
    scope->has_cache = cli->cache_given, scope->cache = cli->cache;
    scope->has_seed = cli->seed_given, scope->seed = cli->seed;
    return 0;
}

void scope_free(struct scope *scope)
{
    for (int i = 0; i < scope->n_axes; i++) axis_free(&scope->axis[i].axis);
    for (int i = 0; i < scope->n_tunes; i++) axis_free(&scope->tune[i].axis);
    free(scope->axis), free(scope->tune);
    free(scope->kernel), free(scope->skip_kernel), free(scope->first);
    free(scope->zip), free(scope->skip), free(scope->fixed);
    *scope = (struct scope){0};
}

static bool holds(const struct comparison *c, int64_t value)
{
    switch (c->relation) {
    case LESS: return value < c->value;
    case LESS_EQUAL: return value <= c->value;
    case GREATER: return value > c->value;
    case GREATER_EQUAL: return value >= c->value;
    case EQUAL: return value == c->value;
    case UNEQUAL: return value != c->value;
    }
    return false;
}

bool condition_holds(const struct condition *condition, const struct op *op, const int64_t *dim)
{
    for (int i = 0; i < condition->n; i++) {
        int d = op_dim(op, condition->comparison[i].name);
        if (d < 0 || !holds(&condition->comparison[i], dim[d])) return false;
    }
    return condition->n > 0;
}

const struct setting *scope_axis(const struct scope *scope, const char *name)
{
    for (int i = 0; i < scope->n_axes; i++)
        if (!strcmp(scope->axis[i].axis.name, name)) return &scope->axis[i];
    return NULL;
}

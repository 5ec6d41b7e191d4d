#include "scope.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

/* One more element at the end of an array of a scope. */
#define ADD(array, n)                                                                                                      \
    (array = must_grow(array, (size_t)(n) + 1, sizeof *(array)), memset(&(array)[n], 0, sizeof *(array)), &(array)[(n)++])

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
    if (!tune && !word_is_dimension(axis.name)) {
        int error = word_unknown(trouble, at, axis.name, false);
        axis_free(&axis);
        return error;
    }
    *(tune ? ADD(scope->tune, scope->n_tunes) : ADD(scope->axis, scope->n_axes)) = (struct setting){at, axis, false};
    return 0;
}

static int add_globs(struct glob **globs, int *n, const char *words, struct place at, struct trouble *trouble)
{
    for (const char *p = words; *p || p == words;) {
        struct glob glob = {.at = at};
        TRY(word_next(&p, glob.word, sizeof glob.word, at, trouble));
        *ADD(*globs, *n) = glob;
    }
    return 0;
}

static int add_zip(struct scope *scope, const char *words, struct place at, struct trouble *trouble)
{
    struct zip zip = {.at = at};
    for (const char *p = words; *p || p == words;) {
        if (zip.n == MAX_DIMS) return fail(trouble, at, "%.60s: more than %d dimensions", words, MAX_DIMS);
        TRY(word_next(&p, zip.name[zip.n], sizeof zip.name[0], at, trouble));
        for (int i = 0; i < zip.n; i++)
            if (!strcmp(zip.name[i], zip.name[zip.n])) return fail(trouble, at, "%.60s: %s is there twice", words, zip.name[i]);
        if (!word_is_dimension(zip.name[zip.n])) return word_unknown(trouble, at, zip.name[zip.n], false);
        zip.n++;
    }
    if (zip.n < 2) return fail(trouble, at, "%s: two dimensions at least are walked together, as in batch,ctx", words);
    *ADD(scope->zip, scope->n_zips) = zip;
    return 0;
}

static int add_condition(struct scope *scope, const char *words, struct place at, struct trouble *trouble)
{
    struct condition condition;
    TRY(condition_parse(words, at, &condition, trouble));
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
        TRY(word_next(&p, word, sizeof word, at, trouble));
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
    if (word_is_global_key(name))
        return global ? 0 : fail(trouble, at, "%s: holds for the whole run; put it into [global]", name);
    bool tune = !strncmp(name, "tune.", 5);
    if (!tune && !word_is_dimension(name)) return word_unknown(trouble, at, name, true);
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

const struct setting *scope_axis(const struct scope *scope, const char *name)
{
    for (int i = 0; i < scope->n_axes; i++)
        if (!strcmp(scope->axis[i].axis.name, name)) return &scope->axis[i];
    return NULL;
}

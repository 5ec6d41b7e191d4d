#include "words.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "nearest.h"
#include "registry.h"

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

/* The words that a section may use, beside dimensions and tune.NAME. */
static const char *const section_keys[] = {"kernels", "skip-kernels", "first", "zip", "skip", "cache", "seed", "variant",
    "device"};
static const char *const global_keys[] = {"budget", "noise", "max-time", "rounds", "timeout", "reference-s", "include"};

static bool one_of(const char *word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(word, words[i])) return true;
    return false;
}

bool word_is_dimension(const char *name)
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

int word_unknown(struct trouble *trouble, struct place at, const char *name, bool keys)
{
    const char *words[256];
    char        hint[128];
    int         n = known_words(words, COUNT(words), keys);
    return fail(trouble, at, "%.60s: no op has a dimension of that name%s%s", name, keys ? ", and it is no key" : "",
        did_you_mean(name, words, n, hint, sizeof hint));
}

int word_next(const char **at, char *ret, size_t size, struct place place, struct trouble *trouble)
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

bool word_is_global_key(const char *name)
{
    return one_of(name, global_keys, COUNT(global_keys));
}

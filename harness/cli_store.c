/* A value's words into its place in struct cli, or why they are none. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "cli_help.h"

int cli_seconds(const char *word, double *ret)
{
    static const struct {
        const char *unit;
        double s;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char  *end;
    double value = strtod(word, &end);
    if (end == word || !(isdigit((unsigned char)*word) || *word == '.') || strpbrk(word, "xXpP")) return 1;
    for (int i = 0; i < COUNT(units); i++)
        if (!strcmp(end, units[i].unit) && value * units[i].s > 0 && value * units[i].s < 1e7) return *ret = value * units[i].s, 0;
    return 1;
}

static int whole(const char *word, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(word, &end, 10);
    if (!isdigit((unsigned char)*word) || *end || errno) return 1;
    *ret = value;
    return 0;
}

static bool device_word(const char *word)
{
    uint64_t n;
    if (!strncmp(word, "GPU-", 4) || !strncmp(word, "MIG-", 4)) return !word[4 + strspn(word + 4, "0123456789abcdefGPU-/")];
    if (!strncmp(word, "cuda:", 5)) return !whole(word + 5, &n) && n < 1024;
    return !strcmp(word, "auto") || !strcmp(word, "host") || !strcmp(word, "cuda");
}

int cli_choice(const char *word, const char *const *words, int n)
{
    int i = 0;
    while (i < n && strcmp(words[i], word)) i++;
    return i;
}

/* Adds the words of a comma list (or the word as it is) to an option's list. */
const char *cli_add_words(struct list *list, const char *value, bool split)
{
    for (const char *p = value; *p || p == value;) {
        size_t n = split ? strcspn(p, ",") : strlen(p);
        if (!n) return "an empty word; remove the comma";
        if (list->n == MAX_LIST) return "more than 64 words; use a glob or a job file";
        list->word[list->n++] = text(must_alloc(n + 1, 1), n + 1, "%.*s", (int)n, p);
        p += n;
        if (*p == ',' && !*++p) return "an empty word; remove the comma";
    }
    return NULL;
}

static const char *store_words(const char **at, const char *value, bool fits, const char *why_not)
{
    if (!fits) return why_not;
    *at = value;
    return NULL;
}

static const char *store_cache(enum cache_choice *at, const char *value)
{
    static const char *const caches[] = {"cold", "hot", "both"};
    int choice = cli_choice(value, caches, COUNT(caches));
    if (choice == COUNT(caches)) return "is not one of cold, hot, both";
    *at = (enum cache_choice)choice;
    return NULL;
}

static const char *store_u64(uint64_t *at, const char *value)
{
    uint64_t n;
    if (whole(value, &n) || n > INT64_MAX) return "is not a whole number from 0 to 2^63-1";   /* a cell of rows.csv holds it */
    *at = n;
    return NULL;
}

static const char *store_count(int *at, const char *value)
{
    uint64_t n;
    if (whole(value, &n) || n < 1 || n > 1000000) return "is not a whole number from 1 to 1000000";
    *at = (int)n;
    return NULL;
}

/* 0, however it is written, or a time. */
static const char *store_duration(double *at, const char *value)
{
    char  *end;
    double x = strtod(value, &end);
    bool   zero = end != value && !*end && x == 0;
    if (!zero && cli_seconds(value, &x)) return "is not 0 or a time, as in 0.5, 30s or 500ms";
    *at = x;
    return NULL;
}

static const char *store_percent(double *at, const char *value)
{
    char  *end;
    double x = strtod(value, &end);
    if (*end == '%') end++;
    if (end == value || *end || !(x > 0 && x <= 100)) return "is not a percentage above 0 and up to 100";
    *at = x;
    return NULL;
}

/* NULL, or why the value is none for this option. */
const char *cli_store(struct cli *cli, const struct cli_option *o, const char *value)
{
    static const char *const colours[] = {"auto", "always", "never"};
    const char *why = NULL;
    void *at = (char *)cli + o->offset;
    switch (o->kind) {
    case OPT_FLAG: *(bool *)at = true; break;
    case OPT_MORE: ++*(int *)at; break;
    case OPT_TEXT: why = store_words(at, value, *value, "is empty"); break;
    case OPT_LIST: return cli_add_words(at, value, o->offset != offsetof(struct cli, plugins));
    case OPT_AXIS: return cli_add_words(at, value, false);
    case OPT_CACHE: why = store_cache(at, value); break;
    case OPT_COLOUR:
        why = store_words(at, value, cli_choice(value, colours, COUNT(colours)) < COUNT(colours),
            "is not one of auto, always, never");
        break;
    case OPT_DEVICE:
        why = store_words(at, value, device_word(value), "is not one of auto, host, cuda, cuda:N, GPU-UUID, MIG-UUID");
        break;
    case OPT_U64: why = store_u64(at, value); break;
    case OPT_COUNT: why = store_count(at, value); break;
    case OPT_SECONDS: why = cli_seconds(value, at) ? "is not a time above 0, as in 30s, 2m or 500ms" : NULL; break;
    case OPT_DURATION: why = store_duration(at, value); break;
    case OPT_PERCENT: why = store_percent(at, value); break;
    }
    if (!why && o->given) *(bool *)((char *)cli + o->given) = true;
    return why;
}

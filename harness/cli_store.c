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

/* NULL, or why the value is none for this option. */
const char *cli_store(struct cli *cli, const struct cli_option *o, const char *value)
{
    static const char *const caches[] = {"cold", "hot", "both"}, *const colours[] = {"auto", "always", "never"};
    void    *at = (char *)cli + o->offset;
    uint64_t n;
    double   x;
    char    *end;
    switch (o->kind) {
    case OPT_FLAG: *(bool *)at = true; break;
    case OPT_MORE: ++*(int *)at; break;
    case OPT_TEXT:
        if (!*value) return "is empty";
        *(const char **)at = value;
        break;
    case OPT_LIST: return cli_add_words(at, value, o->offset != offsetof(struct cli, plugins));
    case OPT_AXIS: return cli_add_words(at, value, false);
    case OPT_CACHE:
        if (cli_choice(value, caches, COUNT(caches)) == COUNT(caches)) return "is not one of cold, hot, both";
        *(enum cache_choice *)at = (enum cache_choice)cli_choice(value, caches, COUNT(caches));
        break;
    case OPT_COLOUR:
        if (cli_choice(value, colours, COUNT(colours)) == COUNT(colours)) return "is not one of auto, always, never";
        *(const char **)at = value;
        break;
    case OPT_DEVICE:
        if (!device_word(value)) return "is not one of auto, host, cuda, cuda:N, GPU-UUID, MIG-UUID";
        *(const char **)at = value;
        break;
    case OPT_U64:
        if (whole(value, &n) || n > INT64_MAX) return "is not a whole number from 0 to 2^63-1";   /* a cell of rows.csv holds it */
        *(uint64_t *)at = n;
        break;
    case OPT_COUNT:
        if (whole(value, &n) || n < 1 || n > 1000000) return "is not a whole number from 1 to 1000000";
        *(int *)at = (int)n;
        break;
    case OPT_SECONDS:
        if (cli_seconds(value, &x)) return "is not a time above 0, as in 30s, 2m or 500ms";
        *(double *)at = x;
        break;
    case OPT_DURATION:
        x = strtod(value, &end);
        if (end == value || *end || x != 0) {   /* 0, however it is written, or a time */
            if (cli_seconds(value, &x)) return "is not 0 or a time, as in 0.5, 30s or 500ms";
        }
        *(double *)at = x;
        break;
    case OPT_PERCENT:
        x = strtod(value, &end);
        if (*end == '%') end++;
        if (end == value || *end || !(x > 0 && x <= 100)) return "is not a percentage above 0 and up to 100";
        *(double *)at = x;
        break;
    }
    if (o->given) *(bool *)((char *)cli + o->given) = true;
    return NULL;
}

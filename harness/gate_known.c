#include "gate_known.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "nearest.h"

/* What -Dsm may be; "auto" makes of a device one of these. First what a forgotten "a" most likely meant. */
static const char *const builds[] = {"90a", "120a", "100a", "103a", "121a", "80", "86", "87", "88", "89", "110"};

struct known {
    int         n;
    const char *word[128];
    char        text[128][32];
};

static void add(struct known *known, const char *word, int length)
{
    if (known->n == COUNT(known->word)) return;
    known->word[known->n] = text(known->text[known->n], sizeof known->text[0], "%.*s", length, word);
    known->n++;
}

/* Of tests/golden/static-<arch>-<toolkit>.csv. */
static void add_golden(struct known *known, bool toolkits)
{
    char           path[4096];
    DIR           *folder = opendir(text(path, sizeof path, "%s/tests/golden", source_root()));
    struct dirent *file;
    while (folder && (file = readdir(folder))) {
        const char *arch = file->d_name + strlen("static-"), *dash = strncmp(file->d_name, "static-", strlen("static-")) ? NULL
            : strchr(arch, '-'), *ending = strrchr(file->d_name, '.');
        if (!dash || !ending || ending < dash || strcmp(ending, ".csv")) continue;
        if (toolkits) add(known, dash + 1, (int)(ending - dash) - 1);
        else add(known, arch, (int)(dash - arch));
    }
    if (folder) closedir(folder);
}

int known_arch(const char *sm, struct place at, const struct static_fact *facts, struct trouble *trouble)
{
    struct known known = {.n = 0};
    char         hint[128];
    for (int i = 0; i < COUNT(builds); i++) add(&known, builds[i], 32);
    for (const struct static_fact *f = facts; f->kernel; f++) {
        if (!strcmp(f->sm, sm)) return 0;
    }
    add_golden(&known, false);
    for (int i = 0; i < known.n; i++)
        if (!strcmp(known.word[i], sm)) return 0;
    return fail(trouble, at, "arch = %.40s: no build has such an architecture, as 90a or 120a%s", sm,
        did_you_mean(sm, known.word, known.n, hint, sizeof hint));
}

bool same_toolkit(const char *wanted, const char *have)
{
    size_t n = strlen(wanted);
    return !n || (!strncmp(wanted, have, n) && (!have[n] || have[n] == '.'));
}

int known_toolkit(const char *toolkit, const char *built_by, struct place at, struct trouble *trouble)
{
    struct known known = {.n = 0};
    char         words[200] = "";
    add_golden(&known, true);
    if (*built_by) add(&known, built_by, 32);
    for (int i = 0; i < known.n; i++) {
        size_t n = strlen(words);
        if (same_toolkit(toolkit, known.word[i])) return 0;
        if (!i || strcmp(known.word[i], known.word[i - 1]))
            text(words + n, sizeof words - n, "%s%s", i ? ", " : "", known.word[i]);
    }
    if (!known.n) return 0;
    return fail(trouble, at, "toolkit = %.40s: neither this build nor a file in tests/golden is of it; those are of %s", toolkit,
        words);
}

#include "sweep_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "expand.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int sweep_names(char ***ret)
{
    char           path[4096];
    DIR           *folder = opendir(text(path, sizeof path, "%s/sweeps", source_root()));
    struct dirent *file;
    int            n = 0;
    *ret = NULL;
    while (folder && (file = readdir(folder))) {
        size_t length = strlen(file->d_name);
        if (length <= 4 || *file->d_name == '.' || strcmp(file->d_name + length - 4, ".ini")) continue;
        *ret = must_grow(*ret, (size_t)n + 1, sizeof **ret);
        (*ret)[n++] = text(must_alloc(length, 1), length, "%.*s", (int)length - 4, file->d_name);
    }
    if (folder) closedir(folder);
    if (n) qsort(*ret, (size_t)n, sizeof **ret, by_name);
    return n;
}

static int no_file(const char *word, char *ret_error, size_t size)
{
    char **names, hint[128];
    int    n = sweep_names(&names);
    did_you_mean(word, (const char *const *)names, n, hint, sizeof hint);
    bool ini = strlen(word) > 4 && !strcmp(word + strlen(word) - 4, ".ini");
    text(ret_error, size, "%s: no such job file, neither here nor as %s/sweeps/%s%s%s", word, source_root(), word,
        ini ? "" : ".ini", hint);
    for (int i = 0; i < n; i++) free(names[i]);
    free(names);
    return 1;
}

/* A path as it is; a bare name in sweeps/ of the source tree. */
static int read_named(const char *word, struct jobfile *job, char *ret_error, size_t size)
{
    size_t n = strlen(word);
    bool   ini = n > 4 && !strcmp(word + n - 4, ".ini");
    char   path[4096];
    if (strchr(word, '/') || (ini && !access(word, F_OK))) return jobfile_read(word, job, ret_error, size);
    text(path, sizeof path, "%s/sweeps/%s%s", source_root(), word, ini ? "" : ".ini");
    if (access(path, F_OK)) return no_file(word, ret_error, size);
    return jobfile_read(path, job, ret_error, size);
}

int sweep_files(const struct cli *cli, struct jobfile *job, char *ret_error, size_t size)
{
    bool own = cli->kernels.n || cli->axes.n || cli->row;
    char path[4096];
    if (cli->row && (cli->args.n || cli->kernels.n || cli->axes.n || cli->tunes.n)) {
        text(ret_error, size, "--row %s: names all of one row; it stands without job files, -k, -a and -t", cli->row);
        return 1;
    }
    for (int i = 0; i < cli->args.n; i++) {
        TRY(read_named(cli->args.word[i], job, ret_error, size));
        if (job->n) continue;
        text(ret_error, size, "%s: no section in it besides [global]; add one, as in [decode]", cli->args.word[i]);
        return 1;
    }
    if (!cli->args.n && cli->resume && !own)
        return jobfile_read(text(path, sizeof path, "%s/plan.ini", cli->resume), job, ret_error, size);
    if (!cli->args.n && !own) return read_named("default", job, ret_error, size);
    return 0;
}

const struct entry *row_kernel(const struct registry *r, const char *name, struct place at, struct trouble *trouble)
{
    const struct entry *e = registry_find(r, name);
    if (e && !(e->kernel->promises & ORACLE)) return e;
    if (e) return fail(trouble, at, "%s: is the reference of large problems, which the check runs by itself", name), NULL;
    const char **names = must_alloc((size_t)r->n, sizeof *names);
    char         hint[128];
    for (int i = 0; i < r->n; i++) names[i] = r->entry[i].name;
    fail(trouble, at, "%.60s: no such kernel%s", name, did_you_mean(name, names, r->n, hint, sizeof hint));
    free(names);
    return NULL;
}

int row_word(const struct op *op, const struct kernel *k, const char *word, struct place at, struct group *g, struct fixed *fixed,
             struct trouble *trouble)
{
    const char *names[MAX_DIMS + MAX_TUNABLES], *equals = strchr(word, '='), *p = equals ? equals + 1 : "";
    char        name[32], hint[128], why[320] = "";
    int64_t     value;
    int         n = 0;
    text(name, sizeof name, "%.*s", equals ? (int)(equals - word) : 0, word);
    bool good = equals && !axis_value(name, &p, &value, why, sizeof why) && !*p;
    if (!good && equals && *why && dim_names(name)) return fail(trouble, at, "%.40s: %s", word, why);
    if (!good)
        return fail(trouble, at, "%.40s: NAME=VALUE is expected%s%s", word, equals && *why ? "; " : "", equals ? why : "");
    int d = op_dim(op, name);
    if (d >= 0) {
        g->dim[d] = value;
        return dim_check(op, d, value, at, trouble);
    }
    for (int t = 0; t < kernel_tunables(k); t++) {
        if (strcmp(k->tunable[t].name, name)) continue;
        if (fixed->n == MAX_TUNABLES || value != (int32_t)value)
            return fail(trouble, at, "%.40s: too many tunables, or too large a value", word);
        text(fixed->tune[fixed->n].name, sizeof fixed->tune[0].name, "%s", name);
        fixed->tune[fixed->n++].value = (int32_t)value;
        return 0;
    }
    for (int i = 0; i < op_dims(op); i++) names[n++] = op->dim[i].name;
    for (int t = 0; t < kernel_tunables(k); t++) names[n++] = k->tunable[t].name;
    return fail(trouble, at, "%s: neither a dimension of op %s nor a tunable of that kernel%s", name, op->name,
        did_you_mean(name, names, n, hint, sizeof hint));
}

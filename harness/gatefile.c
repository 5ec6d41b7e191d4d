#include "gatefile.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "gate_known.h"
#include "table.h"

/* What a section may say beside dimensions and limits. */
static const char *const keys[] = {"kernel", "over", "at-least", "device", "kernels", "arch", "toolkit"};
/* A limit is an upper one; more tensor instructions or wide loads are no fault. */
static const enum static_number limited[] = {STATIC_REGISTERS, STATIC_STACK, STATIC_SHARED, STATIC_LOCAL, STATIC_INSTRUCTIONS};

static struct place place_of(const struct job_key *key)
{
    return (struct place){key->file, key->line};
}

static int unknown_key(const struct job_key *key, struct trouble *trouble)
{
    const char *words[256];
    char        hint[128];
    int         n = 0;
    for (int i = 0; i < COUNT(keys); i++) words[n++] = keys[i];
    for (int i = 0; i < COUNT(limited); i++) words[n++] = static_columns[limited[i]].name;
    for (int i = 0; ops[i]; i++)
        for (int d = 0; d < op_dims(ops[i]) && n < COUNT(words); d++) words[n++] = ops[i]->dim[d].name;
    return fail(trouble, place_of(key), "%.60s: neither a key of gates nor a limit, and no op has such a dimension%s", key->name,
        did_you_mean(key->name, words, n, hint, sizeof hint));
}

static int take_name(const struct job_key *key, char *ret, size_t size, struct trouble *trouble)
{
    if (strlen(key->value) >= size)
        return fail(trouble, place_of(key), "%s = %.60s: no kernel has so long a name", key->name, key->value);
    if (strpbrk(key->value, "*?[, \t"))
        return fail(trouble, place_of(key), "%s = %.60s: one kernel is compared with one other", key->name, key->value);
    text(ret, size, "%s", key->value);
    return 0;
}

static int take_ratio(const struct job_key *key, double *ret, struct trouble *trouble)
{
    char    *end;
    locale_t before = c_numbers();
    *ret = strtod(key->value, &end);
    uselocale(before);
    bool number = isdigit((unsigned char)*key->value) && !strpbrk(key->value, "xXpP") && !*end;
    if (number && *ret > 0 && *ret <= 1e9) return 0;
    return fail(trouble, place_of(key), "at-least = %.60s: is not a ratio above 0, as in 10 or 0.95", key->value);
}

static int take_limit(const struct job_key *key, int32_t *ret, struct trouble *trouble)
{
    const char *p = key->value, *why;
    int64_t     value;
    if (axis_number(&p, &value, &why) || *p || value < 0 || value > INT32_MAX)
        return fail(trouble, place_of(key), "%s = %.60s: is not a whole number from 0 on", key->name, key->value);
    *ret = (int32_t)value;
    return 0;
}

static int take_globs(const struct job_key *key, struct gate *gate, struct trouble *trouble)
{
    for (const char *p = key->value;; p++) {
        struct glob glob = {.at = place_of(key)};
        p += strspn(p, " \t");
        size_t n = strcspn(p, ","), length = n;
        while (length && isspace((unsigned char)p[length - 1])) length--;
        if (!length || length >= sizeof glob.word)
            return fail(trouble, glob.at, "kernels = %.60s: a word is empty or too long", key->value);
        text(glob.word, sizeof glob.word, "%.*s", (int)length, p);
        gate->glob = must_grow(gate->glob, (size_t)gate->n_globs + 1, sizeof *gate->glob);
        gate->glob[gate->n_globs++] = glob;
        p += n;
        if (!*p) return 0;
    }
}

static int take_axis(const struct job_key *key, struct gate *gate, struct trouble *trouble)
{
    char words[640], why[256];
    bool known = false;
    for (int i = 0; ops[i]; i++) known |= op_dim(ops[i], key->name) >= 0;
    if (!known) return unknown_key(key, trouble);
    if (gate->n_axes == MAX_DIMS) return fail(trouble, place_of(key), "%s: more than %d dimensions", key->name, MAX_DIMS);
    text(words, sizeof words, "%s=%s", key->name, key->value);
    if (axis_parse(words, &gate->axis[gate->n_axes], why, sizeof why)) return fail(trouble, place_of(key), "%s", why);
    int64_t problems = 1;
    for (int i = 0; i <= gate->n_axes; i++) problems *= gate->axis[i].n;
    gate->n_axes++;
    return problems > MAX_GATE_PROBLEMS
        ? fail(trouble, place_of(key), "%s: more than %d problems in this section", key->name, MAX_GATE_PROBLEMS) : 0;
}

static int take_key(const struct job_key *key, struct gate *gate, struct trouble *trouble)
{
    const char *name = key->name;
    if (!strcmp(name, "kernel")) return gate->kernel_at = place_of(key), take_name(key, gate->kernel, sizeof gate->kernel, trouble);
    if (!strcmp(name, "over")) return gate->over_at = place_of(key), take_name(key, gate->over, sizeof gate->over, trouble);
    if (!strcmp(name, "at-least")) return take_ratio(key, &gate->at_least, trouble);
    if (!strcmp(name, "kernels")) return take_globs(key, gate, trouble);
    if (!strcmp(name, "arch")) {
        gate->sm_at = place_of(key);
        text(gate->sm, sizeof gate->sm, "%s", key->value);
        return 0;
    }
    if (!strcmp(name, "toolkit")) {
        gate->toolkit_at = place_of(key);
        text(gate->toolkit, sizeof gate->toolkit, "%s", key->value);
        return 0;
    }
    if (!strcmp(name, "device")) {
        gate->has_device = true;
        gate->device = strcmp(key->value, "cuda") ? HOST : CUDA;
        if (!strcmp(key->value, "cuda") || !strcmp(key->value, "host")) return 0;
        return fail(trouble, place_of(key), "device = %.60s: is not one of host, cuda", key->value);
    }
    for (int i = 0; i < COUNT(limited); i++)
        if (!strcmp(name, static_columns[limited[i]].name)) return take_limit(key, &gate->most[limited[i]], trouble);
    return take_axis(key, gate, trouble);
}

/* The kernel's op has the dimensions, and the other kernel the same op. A plug-in's op is not known here. */
static int check_op(const struct gate *gate, const struct job_section *section, struct trouble *trouble)
{
    char        name[64], hint[128];
    const char *dims[MAX_DIMS];
    text(name, sizeof name, "%.*s", (int)strcspn(gate->kernel, "/"), gate->kernel);
    const struct op *op = op_find(name);
    size_t           n = strlen(name);
    if (!op) return 0;
    text(name, sizeof name, "%.*s", (int)strcspn(gate->over, "/"), gate->over);
    if (op_find(name) && (strlen(name) != n || strncmp(gate->kernel, name, n)))
        return fail(trouble, gate->over_at, "%s and %s: kernels of two ops never compete", gate->kernel, gate->over);
    for (int i = 0; i < op_dims(op); i++) dims[i] = op->dim[i].name;
    for (int i = 0; i < gate->n_axes; i++)
        if (op_dim(op, gate->axis[i].name) < 0)
            return fail(trouble, place_of(job_find(section, gate->axis[i].name)), "%s: op %s has no dimension of that name%s",
                gate->axis[i].name, op->name, did_you_mean(gate->axis[i].name, dims, op_dims(op), hint, sizeof hint));
    return 0;
}

static int check_ratio(const struct gate *gate, const struct job_section *section, struct trouble *trouble)
{
    const char *odd = gate->n_globs ? "kernels" : *gate->sm ? "arch" : *gate->toolkit ? "toolkit" : NULL;
    for (int i = 0; i < STATIC_NUMBERS; i++)
        if (gate->most[i] >= 0) odd = static_columns[i].name;
    if (odd)
        return fail(trouble, place_of(job_find(section, odd)),
            "%s: is of static limits, kernel = and over = of a ratio; make two sections", odd);
    const char *missing = !*gate->kernel ? "kernel" : !*gate->over ? "over" : !(gate->at_least > 0) ? "at-least" : NULL;
    if (missing) return fail(trouble, gate->at, "[%s]: %s is missing; a ratio has kernel, over and at-least", gate->name, missing);
    if (!strcmp(gate->kernel, gate->over))
        return fail(trouble, gate->over_at, "over = %s: is the kernel itself, whose ratio is always 1", gate->over);
    return check_op(gate, section, trouble);
}

static int check_static(const struct gate *gate, const struct job_section *section, struct trouble *trouble)
{
    bool any = false;
    for (int i = 0; i < STATIC_NUMBERS; i++) any |= gate->most[i] >= 0;
    if (!gate->n_globs) return fail(trouble, gate->at, "[%s]: kernels is missing; static limits are of kernels", gate->name);
    if (!any) return fail(trouble, gate->at, "[%s]: no limit; say registers, stack, shared, local or instructions", gate->name);
    if (gate->n_axes || gate->has_device) {
        const char *odd = gate->n_axes ? gate->axis[0].name : "device";
        return fail(trouble, place_of(job_find(section, odd)), "%s: code is the same for every run; remove it", odd);
    }
    return 0;
}

static int take_section(const struct job_section *section, struct gatefile *file, struct trouble *trouble)
{
    file->gate = must_grow(file->gate, (size_t)file->n + 1, sizeof *file->gate);
    struct gate *gate = &file->gate[file->n++];
    *gate = (struct gate){.name = section->name, .at = {section->file, section->line}};
    for (int i = 0; i < STATIC_NUMBERS; i++) gate->most[i] = -1;
    for (int i = 0; i < section->n; i++) TRY(take_key(&section->key[i], gate, trouble));
    bool limits = gate->n_globs > 0 || *gate->sm || *gate->toolkit;
    for (int i = 0; i < STATIC_NUMBERS; i++) limits |= gate->most[i] >= 0;
    gate->is_static = limits && !*gate->kernel && !*gate->over && !(gate->at_least > 0);
    return gate->is_static ? check_static(gate, section, trouble) : check_ratio(gate, section, trouble);
}

static int take_job(const char *path, struct gatefile *file, struct trouble *trouble)
{
    for (int i = 0; i < file->job.global.n; i++) {
        const struct job_key *key = &file->job.global.key[i];
        char                  hint[128];
        const char *const     known[] = {"sweep", "include"};
        if (strcmp(key->name, "sweep"))
            return fail(trouble, place_of(key), "%.60s: [global] of a gate file holds sweep and include alone%s", key->name,
                did_you_mean(key->name, known, COUNT(known), hint, sizeof hint));
        file->sweep = key->value, file->sweep_at = place_of(key);
    }
    for (int i = 0; i < file->job.n; i++) TRY(take_section(&file->job.section[i], file, trouble));
    if (!file->n) return fail(trouble, (struct place){0}, "%s: no section in it besides [global]; say what has to hold", path);
    return 0;
}

int gatefile_parse(const char *path, const char *content, size_t length, struct gatefile *file, char *ret_error, size_t size)
{
    struct trouble trouble = {{0}};
    TRY(jobfile_parse(path, content, length, &file->job, ret_error, size));
    if (!take_job(path, file, &trouble)) return 0;
    text(ret_error, size, "%s", trouble.text);
    return 1;
}

int gatefile_read(const char *path, struct gatefile *file, char *ret_error, size_t size)
{
    struct trouble trouble = {{0}};
    TRY(jobfile_read(path, &file->job, ret_error, size));
    if (!take_job(path, file, &trouble)) return 0;
    text(ret_error, size, "%s", trouble.text);
    return 1;
}

void gatefile_free(struct gatefile *file)
{
    for (int i = 0; i < file->n; i++) {
        for (int a = 0; a < file->gate[i].n_axes; a++) axis_free(&file->gate[i].axis[a]);
        free(file->gate[i].glob);
    }
    free(file->gate);
    jobfile_free(&file->job);
    *file = (struct gatefile){0};
}

static int known_kernel(const char *name, struct place at, const struct registry *r, const struct table *run,
                        struct trouble *trouble)
{
    char hint[128];
    if (registry_find(r, name)) return 0;
    for (int i = 0; run && i < run->n; i++)
        if (!strcmp(run->row[i].kernel, name)) return 0;
    const char **names = must_alloc((size_t)r->n, sizeof *names);
    for (int i = 0; i < r->n; i++) names[i] = r->entry[i].name;
    fail(trouble, at, "%s: no such kernel%s%s", name, run ? ", neither in this build nor in the run" : " in this build",
        did_you_mean(name, names, r->n, hint, sizeof hint));
    free(names);
    return 1;
}

static int known_glob(const struct glob *glob, const struct static_fact *facts, struct trouble *trouble)
{
    const char **names = NULL;
    char         hint[128];
    int          n = 0;
    bool         found = false;
    for (const struct static_fact *f = facts; f->kernel; f++, n++) {
        names = must_grow(names, (size_t)n + 1, sizeof *names);
        names[n] = f->kernel;
        found |= !fnmatch(glob->word, f->kernel, 0);
    }
    if (!found)
        fail(trouble, glob->at, "%s: no CUDA kernel of this build%s", glob->word,
            did_you_mean(glob->word, names, n, hint, sizeof hint));
    free(names);
    return !found;
}

int gatefile_names(const struct gatefile *file, const struct registry *r, const struct static_fact *facts, const struct table *run,
                   char *ret_error, size_t size)
{
    struct trouble trouble = {{0}};
    int            error = 0;
    bool           cuda = false;
    for (int i = 0; i < r->n; i++) cuda |= r->entry[i].kernel->engine == CUDA;
    for (int i = 0; i < file->n && !error; i++) {
        const struct gate *gate = &file->gate[i];
        if (gate->is_static) {
            if (*gate->sm) error = known_arch(gate->sm, gate->sm_at, facts, &trouble);
            if (*gate->toolkit && !error) error = known_toolkit(gate->toolkit, static_toolkit, gate->toolkit_at, &trouble);
            for (int g = 0; g < gate->n_globs && facts->kernel && !error; g++) error = known_glob(&gate->glob[g], facts, &trouble);
        } else if (cuda || !gate->has_device || gate->device == HOST) {
            error = known_kernel(gate->kernel, gate->kernel_at, r, run, &trouble);
            if (!error) error = known_kernel(gate->over, gate->over_at, r, run, &trouble);
        }
    }
    if (error) text(ret_error, size, "%s", trouble.text);
    return error;
}

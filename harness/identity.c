#include "identity.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"

static struct problem problem_of(const struct group *group)
{
    struct problem ret = {.op = op_find(group->op), .seed = group->seed};
    memcpy(ret.dim, group->dim, sizeof ret.dim);
    return ret;
}

char *group_text(const struct group *group, char *ret, size_t size)
{
    struct problem problem = problem_of(group);
    char dims[160];
    problem_text(&problem, false, dims, sizeof dims);
    return text(ret, size, "%s %s%s", group->op, *dims ? dims : "at its defaults", group->cache == HOT ? " (hot)" : "");
}

/* ./kbench sweep --row 'attn/mma batch=64,ctx=128K,splits=4' --seed 31 [--cache hot] [--device host] [--plugin ./mine.so] */
static void repeat_text(struct row *row, const struct group *group, const struct variant *variant, const struct kernel *kernel,
                        const struct cli *cli, const char *own_plugin)
{
    struct problem problem = problem_of(group);
    char dims[200], tune[96];
    problem_text(&problem, false, dims, sizeof dims);
    tune_text(kernel, variant->tune, tune, sizeof tune);
    for (char *c = tune; *c; c++)
        if (*c == ';') *c = ',';
    text(row->repeat, sizeof row->repeat, "./kbench %s --row '%s%s%s%s%s' --seed %llu%s%s%s", cli->command, variant->kernel,
         *dims || *tune ? " " : "", dims, *dims && *tune ? "," : "", tune, (unsigned long long)group->seed,
         group->cache == HOT ? " --cache hot" : "", strcmp(cli->device, "auto") ? " --device " : "",
         strcmp(cli->device, "auto") ? cli->device : "");
    if (!own_plugin) return;
    char *words = shell_word(own_plugin);
    size_t used = strlen(row->repeat), needed = strlen(" --plugin ") + strlen(words);
    if (used + needed < sizeof row->repeat) text(row->repeat + used, sizeof row->repeat - used, " --plugin %s", words);
    else *row->repeat = 0;      /* rather than half a line, which runs something else */
    free(words);
}

/* The file that the kernel is from; NULL: it is the build's own. Plug-ins stand last in the registry, in their order. */
static const char *plugin_of(const struct entry *entry, const struct registry *registry, const struct cli *cli)
{
    ptrdiff_t i = entry - registry->entry - (registry->n - cli->plugins.n);
    return i < 0 ? NULL : cli->plugins.word[i];
}

void identify_row(struct row *row, const struct group *group, int v, const struct registry *registry, const struct cli *cli)
{
    const struct variant *variant = &group->variant[v];
    const struct entry *entry = registry_find(registry, variant->kernel);
    const struct kernel *kernel = entry->kernel;
    const struct op *op = op_find(group->op);
    text(row->op, sizeof row->op, "%s", group->op);
    text(row->kernel, sizeof row->kernel, "%s", variant->kernel);
    text(row->engine, sizeof row->engine, "%s", kernel->engine == CUDA ? "cuda" : "host");
    text(row->cache, sizeof row->cache, "%s", group->cache == HOT ? "hot" : "cold");
    tune_text(kernel, variant->tune, row->tune, sizeof row->tune);
    kernel_declared_text(kernel, row->declared, sizeof row->declared);
    row->seed = (int64_t)group->seed;
    row->n_dims = op_dims(op);
    for (int d = 0; d < row->n_dims; d++) {
        text(row->dim[d].name, sizeof row->dim[d].name, "%s", op->dim[d].name);
        row->dim[d].value = group->dim[d];
    }
    repeat_text(row, group, variant, kernel, cli, plugin_of(entry, registry, cli));
}

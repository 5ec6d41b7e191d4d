#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base.h"
#include "csv.h"
#include "nearest.h"

/* plugin/<file without .so>: a plug-in is compiled without a name of its own. */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    size_t      n = strlen(file);
    if (n > 3 && !strcmp(file + n - 3, ".so")) n -= 3;
    size_t size = n + sizeof "plugin/";
    return text(must_alloc(size, 1), size, "plugin/%.*s", (int)n, file);
}

static int unknown_op(const char *path, const char *name, char *ret_error, size_t size)
{
    const char *names[256];
    char        hint[128];
    int         n = 0;
    while (n < COUNT(names) && ops[n]) names[n] = ops[n]->name, n++;
    text(ret_error, size, "%s: no op '%s' in this build%s", path, name, did_you_mean(name, names, n, hint, sizeof hint));
    return 1;
}

int plugin_check(const char *path, const struct kernel *k, const struct registry *known, struct entry *ret, char *ret_error,
    size_t size)
{
    /* abi and size come first in every version of the struct; nothing else may be read before they agree. */
    if (k->abi != KBENCH_ABI) {
        text(ret_error, size, "%s: built for kernel ABI %u, this kbench has %u; compile it again with this kernels/kernel.h", path,
            k->abi, (unsigned)KBENCH_ABI);
        return 1;
    }
    if (k->size != sizeof *k) {
        text(ret_error, size,
            "%s: its struct kernel has %u bytes, this kbench's has %zu; compile it again with this kernels/kernel.h", path,
            k->size, sizeof *k);
        return 1;
    }
    const struct op *op = k->op ? op_find(k->op) : NULL;
    if (!op) return unknown_op(path, k->op ? k->op : "", ret_error, size);
    if (k->layout != layout_hash(op)) {
        text(ret_error, size,
            "%s: compiled against other dims or tensors of op '%s' (layout %016llx, here %016llx); compile it again "
            "with this reference/%s.h",
            path, op->name, (unsigned long long)k->layout, (unsigned long long)layout_hash(op), op->name);
        return 1;
    }
    if (!k->launch || (k->engine != HOST && k->engine != CUDA)) {
        text(ret_error, size, "%s: the kernel has no %s; set .launch and .engine", path, k->launch ? "known engine" : "launch");
        return 1;
    }
    char *name = k->name ? text(must_alloc(strlen(k->name) + 1, 1), strlen(k->name) + 1, "%s", k->name) : name_of(path);
    const char *why = strlen(name) >= 64 ? "is longer than 63 characters" : registry_find(known, name) ? "is taken" : NULL;
    if (!why && strpbrk(name, " \t\r\n,;'\"\\*?["))
        why = "has a blank, comma, quote or glob in it, and -k, --row and plan.ini could not name it";
    if (why) {
        text(ret_error, size, "%s: the kernel's name '%.80s' %s; rename the file or set .name", path, name, why);
        free(name);
        return 1;
    }
    *ret = (struct entry){.kernel = k, .name = name, .sms = "", .hash = ""};
    return 0;
}

/* All of the file: what else is in it than machine code changes with the code, or hardly ever. "" where it can't be read. */
static char *hash_of(const char *path, char *ret)
{
    char    *bytes;
    size_t   size;
    uint64_t hash = 0xcbf29ce484222325u;
    *ret = 0;
    if (file_read(path, &bytes, &size)) return ret;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    free(bytes);
    return text(ret, PLUGIN_HASH_BYTES, PLUGIN_HASH "%016llx", (unsigned long long)hash);
}

bool plugins_same(const struct registry *r, int n, const char *const *path, char (*hash)[PLUGIN_HASH_BYTES], char *ret_why,
    size_t size)
{
    char now[PLUGIN_HASH_BYTES];
    for (int i = 0; i < n; i++) {
        const char *began = r->entry[r->n - n + i].hash;
        if (!*began || !strcmp(began, hash ? hash[i] : hash_of(path[i], now))) continue;
        text(ret_why, size, "--plugin %s: replaced since this run began, and what follows would be of other code; rows measured "
            "before stay: begin anew, or put the old file back and finish with --resume", path[i]);
        return false;
    }
    return true;
}

int plugin_open(const char *path, const struct registry *known, struct entry *ret, char *ret_error, size_t size)
{
    char  here[4096], before[PLUGIN_HASH_BYTES], *hash = must_alloc(PLUGIN_HASH_BYTES, 1);
    hash_of(path, before);
    void *object = dlopen(strchr(path, '/') ? path : text(here, sizeof here, "./%s", path), RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        const char *why = dlerror();
        size_t      prefix = strlen(path);
        if (!strncmp(why, path, prefix) && why[prefix] == ':') why += prefix + 1 + (why[prefix + 1] == ' ');
        text(ret_error, size, "%s: can't be opened as a plug-in: %s", path, why);
        return 1;
    }
    const struct kernel *k = dlsym(object, "kbench_plugin");
    if (!k) {
        text(ret_error, size, "%s: no kernel in it (symbol kbench_plugin); end the source with KERNEL = {FOR_OP(...), ...}", path);
        dlclose(object);
        return 1;
    }
    int error = plugin_check(path, k, known, ret, ret_error, size);
    if (!error && strcmp(before, hash_of(path, hash))) {
        text(ret_error, size, "%s: changed while it was opened; run it again once the file is built", path);
        error = 1;
    }
    if (error) dlclose(object);
    else ret->hash = hash;
    return error;
}

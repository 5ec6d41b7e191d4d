/* Out-of-tree kernels: shared objects made from kernels/kernel.h. */
#ifndef KBENCH_PLUGIN_H
#define KBENCH_PLUGIN_H

#include <stdbool.h>
#include "registry.h"

#define PLUGIN_HASH "so:"   /* how the hash of a plug-in's file begins: another build of kbench has no such kernel */
enum { PLUGIN_HASH_BYTES = 24 };

/* Opens a shared object and fills an entry that stays valid to the end of the program. 0, or non-zero with "path: why; what to
 * do" in ret_error: not to be opened, no kernel in it, other ABI, size, op or layout, or a name that is taken in `known`. The hash
 * is of the very file that was opened: one that changes meanwhile is refused. */
int plugin_open(const char *path, const struct registry *known, struct entry *ret, char *ret_error, size_t size);

/* The same checks on a struct kernel that came from anywhere. */
int plugin_check(const char *path, const struct kernel *, const struct registry *known, struct entry *ret, char *ret_error,
                 size_t size);

/* Whether the plug-ins, which are the last n of the registry, are those with the hashes; hash NULL: the files as they are now.
 * False with "what: why; what to do" in ret_why. */
bool plugins_same(const struct registry *, int n, const char *const *path, char (*hash)[PLUGIN_HASH_BYTES], char *ret_why,
                  size_t size);

#endif

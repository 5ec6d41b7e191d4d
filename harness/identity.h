/* Who a row is: op, kernel, dims, tunables, cache, seed and the command that repeats it. */
#ifndef KBENCH_IDENTITY_H
#define KBENCH_IDENTITY_H

#include "cli.h"
#include "registry.h"
#include "row.h"

/* Sets those cells of the row, leaves the others. */
void  identify_row(struct row *, const struct group *, int variant, const struct registry *, const struct cli *);
/* "attn batch=64,ctx=128K", the cold regime unsaid. */
char *group_text(const struct group *, char *ret, size_t size);

#endif

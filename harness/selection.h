/* Which kernels a family of row groups runs, in order. A family is one section of a job file, or the command line alone; what it
 * doesn't say itself, [global] says; the command line overrides both. */
#ifndef KBENCH_SELECTION_H
#define KBENCH_SELECTION_H

#include "scope.h"

struct family {
    const char   *name;                       /* "[decode]", or "this selection" */
    struct place  at;
    struct scope *cli, *section, *global;     /* strongest first; never NULL */
};

struct chosen {
    const struct entry *entry;
    const struct op    *op;
    const struct fixed *fixed;                /* its tunables as written, or NULL */
};

struct selection {
    int                 n, n_ops;
    struct chosen      *kernel;               /* of the machine's engine; probes last */
    const struct op   **op;                   /* of all kernels asked for, of the other engine too */
    int                 other_engine;         /* kernels that were left out */
    const struct entry *other;                /* one of them */
};

bool is_probe(const struct entry *);

/* 0, or non-zero with `trouble` set: a word that names nothing. An empty selection is none. */
int  select_kernels(const struct family *, const struct registry *, enum engine, struct selection *ret, struct trouble *);
void selection_free(struct selection *);

/* Words of a scope that mean something to the selection, kernels of the other engine included; select_kernels calls it. */
void selection_mark_used(struct scope *, const struct selection *);
/* Non-zero where a word meant nothing to any selection. */
int  selection_unused(const struct scope *, const struct op *const *ops_, int n_ops, const struct registry *, struct trouble *);

/* The family's axis of a dimension, or NULL: the default. */
const struct setting *family_axis(const struct family *, const char *name);

#endif

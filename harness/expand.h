/* Families of problems to row groups: the product of axes, the product of tunables, and one group a problem. */
#ifndef KBENCH_EXPAND_H
#define KBENCH_EXPAND_H

#include "selection.h"

/* A plan that grows. Equal problems are one group, found by hash. */
struct builder {
    struct plan  plan;
    int32_t     *n_probes;     /* by group: they stay last */
    int32_t     *slot;         /* open addressing; group + 1, 0 empty */
    int32_t      n_slots;
};

/* Why problems were left out, to be told once a family. */
struct left_out {
    int  skipped, invalid;
    char why[320];             /* of the first invalid one */
};

enum { MAX_GROUPS = 16384, MAX_PROBLEMS = 1 << 20 };   /* the second counts those that are left out, too */

/* NULL, or why the variant has no room. */
const char *builder_add(struct builder *, const struct group *problem, const struct variant *, bool probe);
void        builder_free(struct builder *);    /* all but the plan */

int family_expand(const struct family *, const struct selection *, struct builder *, struct left_out *, struct trouble *);

/* Values of a kernel's tunables from words; unknown names and values out of range are refused. */
int variant_resolve(const struct fixed *, const struct kernel *, struct variant *ret, struct trouble *);

/* Non-zero with the bounds in words where the dimension can't have that value. */
int dim_check(const struct op *, int dim, int64_t value, struct place, struct trouble *);

#endif

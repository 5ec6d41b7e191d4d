/* One variant of a group after its group, in the parent: from what the worker said of it, or from how the worker ended. */
#ifndef KBENCH_OUTCOME_H
#define KBENCH_OUTCOME_H

#include "channel.h"
#include "profile.h"

/* Its row, and its samples in order. */
struct outcome {
    struct row     row;
    struct profile *profile;   /* malloc'ed; NULL: none */
    struct loaded  loaded;     /* of a job that asks for it; ns are NaN else */
    int32_t        n_samples;
    struct sample *sample;
};

/* Messages of the worker, each to the outcome that it names; ret has room for group->n. */
void outcome_row(const struct group *, const void *body, size_t size, struct outcome *ret);
void outcome_samples(const struct group *, const void *body, size_t size, struct outcome *ret);
void outcome_profile(const struct group *, const void *body, size_t size, struct outcome *ret);
void outcome_loaded(const struct group *, const void *body, size_t size, struct outcome *ret);
/* What nobody has said anything of yet. */
void outcome_clear(struct outcome *ret);

/* The verdict for the variant on which a worker ended; words from how it ended. */
struct verdict verdict_of_death(const struct board *, int status, bool timed_out, double timeout_s);

#endif

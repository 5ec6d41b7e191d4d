#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "expand.h"

static uint32_t problem_hash(const struct group *g)
{
    uint64_t hash = 0xcbf29ce484222325u ^ g->seed ^ (uint64_t)g->cache << 60;
    for (const char *c = g->op; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    for (int i = 0; i < MAX_DIMS; i++) hash = (hash ^ (uint64_t)g->dim[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
    return (uint32_t)(hash ^ hash >> 32);
}

static bool same_problem(const struct group *a, const struct group *b)
{
    return a->seed == b->seed && a->cache == b->cache && !strcmp(a->op, b->op) && !memcmp(a->dim, b->dim, sizeof a->dim);
}

/* Its slot: with the group in it, or the empty one where it belongs. */
static int32_t *find_slot(const struct builder *b, const struct group *problem)
{
    uint32_t mask = (uint32_t)b->n_slots - 1, at = problem_hash(problem) & mask;
    while (b->slot[at] && !same_problem(&b->plan.group[b->slot[at] - 1], problem)) at = (at + 1) & mask;
    return &b->slot[at];
}

static void make_room(struct builder *b)
{
    if (b->plan.n * 2 < b->n_slots) return;
    b->n_slots = b->n_slots ? b->n_slots * 2 : 128;
    free(b->slot);
    b->slot = must_alloc((size_t)b->n_slots, sizeof *b->slot);
    for (int i = 0; i < b->plan.n; i++) *find_slot(b, &b->plan.group[i]) = i + 1;
    b->plan.group = must_grow(b->plan.group, (size_t)b->n_slots / 2 + 1, sizeof *b->plan.group);
    b->n_probes = must_grow(b->n_probes, (size_t)b->n_slots / 2 + 1, sizeof *b->n_probes);
}

static int find_group(struct builder *b, const struct group *problem)
{
    make_room(b);
    int32_t *slot = find_slot(b, problem);
    if (*slot) return *slot - 1;
    if (b->plan.n == MAX_GROUPS) return -1;
    struct group *g = &b->plan.group[b->plan.n];
    *g = *problem;
    g->index = b->plan.n;
    g->n = 0;
    b->n_probes[b->plan.n] = 0;
    *slot = ++b->plan.n;
    return *slot - 1;
}

const char *builder_add(struct builder *b, const struct group *problem, const struct variant *v, bool probe)
{
    int index = find_group(b, problem);
    if (index < 0) return "more than 16384 row groups; take fewer values or larger steps";
    struct group *g = &b->plan.group[index];
    for (int i = 0; i < g->n; i++)
        if (!strcmp(g->variant[i].kernel, v->kernel) && !memcmp(g->variant[i].tune, v->tune, sizeof v->tune)) return NULL;
    if (g->n == MAX_VARIANTS) return "more than 64 kernels and tunable values compete on one problem; take fewer values of -t";
    int at = probe ? g->n : g->n - b->n_probes[index];
    memmove(&g->variant[at + 1], &g->variant[at], (size_t)(g->n - at) * sizeof *v);
    g->variant[at] = *v;
    g->n++;
    b->n_probes[index] += probe;
    return NULL;
}

void builder_free(struct builder *b)
{
    free(b->n_probes);
    free(b->slot);
    b->n_probes = b->slot = NULL;
    b->n_slots = 0;
}

void plan_free(struct plan *plan)
{
    free(plan->group);
    *plan = (struct plan){0};
}

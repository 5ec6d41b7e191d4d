/* Which of the products a launch takes: the best that this processor has, or what the tunable `path` asks for. */
#ifndef KBENCH_ATTN_HOST_PATHS_H
#define KBENCH_ATTN_HOST_PATHS_H

#include <errno.h>
#include <stdlib.h>

#include "attn/host_products.h"
#include "kernel.h"

/* A kernel's state: found out once, since asking takes longer than a small launch. */
struct paths {
    enum path best;
    bool      has[PATHS];
};

static inline bool path_takes_pairs(enum path path) { return path == AMX || path == AVX512_BF16; }

/* pairs: operands are bf16, which some paths take as pairs. */
static inline int paths_open_for(bool pairs, void **state)
{
    struct paths *ret = calloc(1, sizeof *ret);
    if (!ret) return ENOMEM;
    for (enum path path = PORTABLE; path < PATHS; path++) ret->has[path] = mma_has(path) && (pairs || !path_takes_pairs(path));
    ret->best = ret->has[AMX] ? AMX : ret->has[AVX512_BF16] && mma_prefers_pairs() ? AVX512_BF16 : PORTABLE;
    *state = ret;
    return 0;
}

static inline int paths_open(const struct problem *p, const struct device *device, void **state)
{
    (void)p, (void)device;
    return paths_open_for(true, state);
}

static inline void paths_close(void *state) { free(state); }

/* ENOTSUP where tunable `path`, the first, asks for instructions that this processor, or this format, lacks. */
static inline int paths_choose(const struct call *c, enum path *ret)
{
    const struct paths *machine = c->state;
    *ret = c->tune[0] == AUTO ? machine->best : (enum path)c->tune[0];
    return machine->has[*ret] ? 0 : ENOTSUP;
}

#endif

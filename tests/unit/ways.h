/* The host kernels of attention and the ways to run them, for tests: every path of every kernel, of either op. */
#ifndef KBENCH_TEST_WAYS_H
#define KBENCH_TEST_WAYS_H

#include <errno.h>
#include "attn_fp8.h"
#include "bind.h"

extern const struct op op_attn, op_attn_fp8;
extern const struct kernel kernel_attn_host_perhead, kernel_attn_host_mma, kernel_attn_host_splitk, kernel_attn_fp8_host_perhead,
    kernel_attn_fp8_host_mma;

/* Values of the tunable `path`. */
enum { AUTO = 1, PORTABLE, AVX512_BF16, AMX, AVX2, ANY };

struct way {
    const char          *name;
    const struct kernel *kernel;
    int32_t              tune[MAX_TUNABLES];
};

static const struct way ways[] = {
    {"attn/host_perhead", &kernel_attn_host_perhead, {0}},
    {"attn/host_mma", &kernel_attn_host_mma, {AUTO}},
    {"attn/host_mma path=2", &kernel_attn_host_mma, {PORTABLE}},
    {"attn/host_mma path=3", &kernel_attn_host_mma, {AVX512_BF16}},
    {"attn/host_mma path=4", &kernel_attn_host_mma, {AMX}},
    {"attn/host_mma path=5", &kernel_attn_host_mma, {AVX2}},
    {"attn/host_mma path=6", &kernel_attn_host_mma, {ANY}},
    {"attn/host_splitk", &kernel_attn_host_splitk, {AUTO, 0}},
    {"attn/host_splitk splits=1", &kernel_attn_host_splitk, {AUTO, 1}},
    {"attn/host_splitk splits=5", &kernel_attn_host_splitk, {AUTO, 5}},
    {"attn/host_splitk path=2,splits=64", &kernel_attn_host_splitk, {PORTABLE, 64}},
    {"attn_fp8/host_perhead", &kernel_attn_fp8_host_perhead, {0}},
    {"attn_fp8/host_mma", &kernel_attn_fp8_host_mma, {AUTO}},
    {"attn_fp8/host_mma path=2", &kernel_attn_fp8_host_mma, {PORTABLE}},
    {"attn_fp8/host_mma path=3", &kernel_attn_fp8_host_mma, {AVX512_BF16}},
    {"attn_fp8/host_mma path=4", &kernel_attn_fp8_host_mma, {AMX}},
    {"attn_fp8/host_mma path=5", &kernel_attn_fp8_host_mma, {AVX2}},
    {"attn_fp8/host_mma path=6", &kernel_attn_fp8_host_mma, {ANY}},
};
enum { WAYS = sizeof ways / sizeof *ways };

static inline bool way_is_for(const struct way *way, const struct op *op) { return !strcmp(way->kernel->op, op->name); }

static inline struct device device_of(int32_t threads) { return (struct device){.sm_count = threads, .l2_bytes = 32 << 20}; }

/* Launches into fresh outputs; false where this processor lacks the path. */
static inline bool way_runs(const struct way *way, struct bound *b, int32_t threads)
{
    struct device device = device_of(threads);
    int code = bind_launch(b, way->kernel, &device, way->tune);
    if (code == ENOTSUP && way->tune[0] > PORTABLE) return false;
    if (code) fail_msg("%s: code %d", way->name, code);
    return true;
}

/* Every way that its op has against the reference, with 3 threads; those that choose for themselves with 1 and 16 too. */
static inline void check_ways(struct bound *b, const char *what)
{
    const int32_t threads[] = {3, 1, 16};
    for (int i = 0; i < WAYS; i++)
        for (int j = 0; j < (ways[i].tune[0] <= AUTO ? 3 : 1) && way_is_for(&ways[i], b->p.op); j++) {
            bind_spread(b);
            if (!way_runs(&ways[i], b, threads[j])) break;
            if (!(bind_error(b, ATTN_OUT) + bind_error(b, ATTN_LSE) < INFINITY))
                fail_msg("%s, %s, %d threads: beyond the tolerance", ways[i].name, what, threads[j]);
        }
}

/* A problem of attn; then the same of attn_fp8, with pages that turn with the set. */
static inline void check_both(const struct problem *attn, uint32_t set, int64_t pad)
{
    const int64_t pages[][2] = {{64, 64}, {256, 64}, {64, 2}, {64, 256}, {256, 2}, {2, 256}};
    for (int fp8 = 0; fp8 < 2; fp8++) {
        struct problem p = *attn;
        char   what[200];
        if (fp8) {
            p.op = &op_attn_fp8;
            memcpy(p.dim + ATTN_FP8_WINDOW_PAGE, pages[set % 6], sizeof *pages);
        }
        int n = 0;
        for (int i = 0; p.op->dim[i].name; i++)
            n += snprintf(what + n, sizeof what - (size_t)n, "%s=%d,", p.op->dim[i].name, (int)p.dim[i]);
        struct bound b = bind_problem(&p, set, pad);
        check_ways(&b, what);
        bind_free(&b);
    }
}

#endif

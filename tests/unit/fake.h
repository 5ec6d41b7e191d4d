/* Two made-up ops and their kernels in place of the built ones, so that tests of words and plans know every name. Included by one
 * file of a program: it defines ops[] and builtin_kernels[]. */
#ifndef KBENCH_TEST_FAKE_H
#define KBENCH_TEST_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "registry.h"

static int64_t fake_rows(const struct problem *p) { return p->dim[0]; }
static int64_t fake_row_bytes(const struct problem *p) { (void)p; return 1024; }
static int64_t fake_slots(const struct problem *p) { return p->dim[0] * p->dim[1]; }

static int64_t fake_touched(const struct problem *p, void *const *t, int64_t *ret_rows)
{
    (void)t, (void)ret_rows;
    return p->dim[0] * p->dim[2];
}

static const char *fake_invalid(const struct problem *p)
{
    return p->dim[2] % 8 ? "topk must be a multiple of 8" : NULL;
}

static const struct op fake_mix = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "mix", .note = "attention-like",
    .dim = {
        {"batch", "requests", 16, 1, 4096, .ideal = 1},
        {"ctx", "tokens", 8192, 0, 1 << 20, .live = true, .ideal = 0},
        {"topk", "entries", 512, 0, 4096, .ideal = 1},
        {"ragged", "0|1", 0, 0, 1, .label = true},
    },
    .tensor = {
        {"q", "[batch, 512]", BF16, IN, .rows = fake_rows, .row_bytes = fake_row_bytes},
        {"kv", "[slots, 512]", BF16, IN, .rows = fake_slots, .row_bytes = fake_row_bytes, .touched = fake_touched},
        {"out", "[batch, 512]", BF16, OUT, .rows = fake_rows, .row_bytes = fake_row_bytes},
    },
    .invalid = fake_invalid,
};

static const char *const fake_tails[] = {"page0", "unique", "minus1", NULL};

static const struct op fake_scan = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "scan", .note = "indexer-like",
    .dim = {{"batch", "requests", 1, 1, 512, .ideal = 1}, {"max_ctx", "tokens", 1 << 20, 1024, 1 << 20, .ideal = 0},
        {"tail", "", 0, 0, 2, .label = true, .names = fake_tails}},
    .tensor = {{"key", "[batch]", BF16, IN, .rows = fake_rows, .row_bytes = fake_row_bytes}},
};

const struct op *const ops[] = {&fake_mix, &fake_scan, NULL};

static int fake_launch(const struct call *c) { (void)c; return 0; }

#define FAKE(symbol_, name_, op_, engine_, ...)                                                                        \
    static const struct kernel symbol_ = {.abi = KBENCH_ABI, .size = sizeof(struct kernel), .name = name_, .op = op_,  \
        .note = "fake", .engine = engine_, .launch = fake_launch, __VA_ARGS__}

FAKE(fake_mix_cuda, "mix/cuda", "mix", CUDA, .promises = 0);
FAKE(fake_mix_gather, "mix/gather", "mix", CUDA, .promises = PROBE);
FAKE(fake_mix_host_gather, "mix/host_gather", "mix", HOST, .promises = PROBE);
FAKE(fake_mix_host_mma, "mix/host_mma", "mix", HOST, .promises = 0);
FAKE(fake_mix_host_oracle, "mix/host_oracle", "mix", HOST, .promises = ORACLE);
FAKE(fake_mix_host_split, "mix/host_split", "mix", HOST, .tunable = {{"splits", {4, 1, 8}, 1, 64}, {"stages", {2, 3}, 1, 4}});
FAKE(fake_scan_cuda, "scan/early", "scan", CUDA, .promises = 0);
FAKE(fake_scan_full, "scan/host_full", "scan", HOST, .growth = {{"batch", 1}, {"max_ctx", 1}});
FAKE(fake_scan_live, "scan/host_live", "scan", HOST, .growth = {{"batch", 1}, {"max_ctx", 0}});

const struct entry builtin_kernels[] = {
    {&fake_mix_cuda, "mix/cuda", "80,90a", "01"}, {&fake_mix_gather, "mix/gather", "80,90a", "02"},
    {&fake_mix_host_gather, "mix/host_gather", "", "03"}, {&fake_mix_host_mma, "mix/host_mma", "", "04"},
    {&fake_mix_host_oracle, "mix/host_oracle", "", "05"}, {&fake_mix_host_split, "mix/host_split", "", "06"},
    {&fake_scan_cuda, "scan/early", "90a,120a", "07"}, {&fake_scan_full, "scan/host_full", "", "08"},
    {&fake_scan_live, "scan/host_live", "", "09"}, {NULL, NULL, NULL, NULL},
};

/* Runs f(arg) in a child: what it wrote to stdout and stderr together, and its exit code (0 where it returned). */
static inline int caught(void (*f)(void *), void *arg, char *ret, size_t size)
{
    int   end[2], status;
    pid_t child;
    fflush(NULL);
    if (pipe(end) || (child = fork()) < 0) abort();
    if (!child) {
        dup2(end[1], 1), dup2(end[1], 2);
        close(end[0]), close(end[1]);
        f(arg);
        fflush(NULL);
        _exit(0);
    }
    close(end[1]);
    size_t  n = 0;
    ssize_t got;
    char    rest[256];
    while ((got = n + 1 < size ? read(end[0], ret + n, size - n - 1) : read(end[0], rest, sizeof rest)) > 0)
        if (n + 1 < size) n += (size_t)got;
    ret[n] = 0;
    close(end[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif

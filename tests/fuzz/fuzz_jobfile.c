/* Job files, from text to a plan on made-up ops: never a crash, hang or leak, always words with a place on refusal, and plan.ini of
 * any plan plans the same again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/fake.h"
#include "base.h"
#include "fuzz.h"
#include "jobfile.h"
#include "sweep.h"

const char *const fuzz_words[] = {
    "\n",
    "[global]\n",
    "[a]\n",
    "[b]\n",
    "kernels = ",
    "mix/*",
    "scan/*",
    "mix/host_mma",
    "mix/host_split",
    "mix/host_oracle",
    "skip-kernels = ",
    "first = ",
    "skip = ",
    "zip = ",
    "seed = ",
    "cache = ",
    "both",
    "hot",
    "cold",
    "variant = ",
    "variant = mix/host_split splits=2\n",
    "budget = 30s\n",
    "noise = 2%\n",
    "max-time = 1m\n",
    "rounds = 9\n",
    "timeout = 3\n",
    "tune.splits = ",
    "tune.stages = ",
    "batch",
    "ctx",
    "topk",
    "max_ctx",
    "ragged",
    "=",
    " = ",
    ",",
    ":",
    "<",
    ">=",
    "!=",
    "1",
    "8",
    "8K",
    "1M",
    "1:64:*2",
    "64:512:+64",
    "#",
    ";",
    " ; ",
    "\t",
    "\r\n",
    "\xef\xbb\xbf",
    "include = fuzz.ini\n",
    "18446744073709551615",
    NULL,
};

static const struct machine machine = {.engine = HOST, .facts = {.l2_bytes = 32 << 20, .memory_bytes = 64LL << 30}};

static int plan_text(const char *path, const char *content, size_t length, struct plan *ret, struct cli *cli)
{
    const struct registry registry = {COUNT(builtin_kernels) - 1, (struct entry *)builtin_kernels};
    struct jobfile job = {0};
    char           why[1024] = "";
    int error = jobfile_parse(path, content, length, &job, why, sizeof why);
    if (!error) error = sweep_build(cli, &registry, &machine, &job, ret, why, sizeof why);
    FUZZ_REQUIRE(!error == !*why);
    jobfile_free(&job);
    return error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct registry registry = {COUNT(builtin_kernels) - 1, (struct entry *)builtin_kernels};
    struct cli            first = {.command = "sweep", .seed = 1, .quiet = true, .command_line = "kbench sweep"}, second = first;
    struct plan           plan, again;
    if (plan_text("fuzz.ini", (const char *)data, size, &plan, &first)) return 0;
    FUZZ_REQUIRE(plan.n > 0);
    for (int i = 0; i < plan.n; i++)
        FUZZ_REQUIRE(plan.group[i].n >= 1 && plan.group[i].n <= MAX_VARIANTS && plan.group[i].index == i);
    char *content = plan_ini(&plan, &registry, &first);
    FUZZ_REQUIRE(!plan_text("plan.ini", content, strlen(content), &again, &second));
    FUZZ_REQUIRE(again.n == plan.n && !memcmp(again.group, plan.group, (size_t)plan.n * sizeof *plan.group));
    plan_free(&plan), plan_free(&again);
    free(content);
    return 0;
}

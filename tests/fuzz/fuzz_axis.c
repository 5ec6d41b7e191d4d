/* Axis syntax: never a crash or overflow, always words on refusal, and the values written as a list read back as the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/fake.h"
#include "base.h"
#include "fuzz.h"
#include "sweep.h"

const char *const fuzz_words[] = {
    "=",
    ",",
    ":",
    ":*2",
    ":+64",
    ":*",
    ":+",
    "K",
    "M",
    "-",
    "batch",
    "0",
    "1",
    "4096",
    "4097",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1:4096:+1",
    "1:1M:*2",
    "8K:128K:*2",
    " ",
    "\t",
    "1.5",
    "0x10",
    NULL,
};

static void read_again(const struct axis *axis)
{
    char       *list = NULL, why[256];
    size_t      size = 0;
    FILE       *f = open_memstream(&list, &size);
    struct axis again;
    fprintf(f, "%s=", axis->name);
    for (int i = 0; i < axis->n; i++) fprintf(f, "%s%lld", i ? "," : "", (long long)axis->value[i]);
    fclose(f);
    FUZZ_REQUIRE(!axis_parse(list, &again, why, sizeof why));
    FUZZ_REQUIRE(again.n == axis->n && !strcmp(again.name, axis->name));
    FUZZ_REQUIRE(!memcmp(again.value, axis->value, (size_t)axis->n * sizeof *axis->value));
    axis_free(&again);
    free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"batch", "ctx", "max_ctx", "topk", "mix/host_mma", "--budget"};
    char       *words = malloc(size + 1), why[256] = "", hint[64];
    struct axis axis;
    memcpy(words, data, size);
    words[size] = 0;
    if (axis_parse(words, &axis, why, sizeof why)) {
        FUZZ_REQUIRE(*why && !axis.value && !axis.n);
    } else {
        FUZZ_REQUIRE(axis.n >= 1 && axis.n <= 4096 && *axis.name);
        read_again(&axis);
    }
    axis_free(&axis);
    did_you_mean(words, names, COUNT(names), hint, sizeof hint);
    free(words);
    return 0;
}

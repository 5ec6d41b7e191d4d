/* Gate files, from text to verdicts on made-up rows: never a crash, hang or leak, always words on refusal, and a code that its
 * findings bear out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/fake.h"
#include "base.h"
#include "fuzz.h"
#include "gate.h"

const char *const fuzz_words[] = {
    "\n",
    "[global]\n",
    "sweep = small\n",
    "[a]\n",
    "[b]\n",
    "kernel = ",
    "over = ",
    "at-least = ",
    "kernels = ",
    "registers = ",
    "stack = ",
    "shared = ",
    "local = ",
    "instructions = ",
    "arch = ",
    "toolkit = ",
    "device = ",
    "cuda",
    "host",
    "90a",
    "13.0",
    "scan/host_full",
    "scan/host_live",
    "scan/early",
    "mix/*",
    "max_ctx = ",
    "batch = ",
    "tail = ",
    "unique",
    "=",
    ",",
    "1",
    "0.5",
    "10",
    "48K",
    "1M",
    "1:64:*2",
    "1:4096:+1",
    "#",
    ";",
    "\t",
    "\r\n",
    "\xef\xbb\xbf",
    "\xff",
    "18446744073709551615",
    NULL,
};

static const struct static_fact facts[] = {
    {"mix/cuda", "90a", "mix_run<2>", {168, 0, 1024, 900, 32, 8, 0, 0}},
    {"scan/early", "90a", "scan_early", {64, 32, 0, 300, 0, 0, 0, 11}},
    {0},
};

enum { ROWS = 4 };

static struct table made_up(struct row *row)
{
    for (int i = 0; i < ROWS; i++) {
        row_clear(&row[i]);
        strcpy(row[i].op, "scan"), strcpy(row[i].engine, "host"), strcpy(row[i].status, "ok"), strcpy(row[i].cache, "cold");
        strcpy(row[i].kernel, i % 2 ? "scan/host_full" : "scan/host_live");
        row[i].n_dims = 2;
        strcpy(row[i].dim[0].name, "max_ctx"), row[i].dim[0].value = i < 2 ? 1 << 20 : 1024;
        strcpy(row[i].dim[1].name, "tail"), row[i].dim[1].value = 1;
        row[i].t_med_ns = i % 2 ? 1000 : 100, row[i].t_lo_ns = row[i].t_med_ns * 0.9, row[i].t_hi_ns = row[i].t_med_ns * 1.1;
    }
    strcpy(row[2].marks, "noisy");
    return (struct table){.n = ROWS, .row = row};
}

static void print_all(const struct findings *all)
{
    char  *words = NULL;
    size_t size = 0;
    FILE  *f = open_memstream(&words, &size);
    gate_print(f, all, "fuzz.ini", "run");
    gate_junit(f, all, "fuzz.ini");
    fclose(f);
    for (size_t i = 0; i < size; i++) FUZZ_REQUIRE(words[i] == '\n' || (unsigned char)words[i] >= 0x20);
    free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct registry registry = {COUNT(builtin_kernels) - 1, (struct entry *)builtin_kernels};
    struct row            row[ROWS];
    struct table          run = made_up(row);
    struct gatefile       file = {0};
    char                  why[1200] = "";
    int error = gatefile_parse("fuzz.ini", (const char *)data, size, &file, why, sizeof why);
    FUZZ_REQUIRE(!error == !*why);
    FUZZ_REQUIRE(error || file.n > 0);
    if (!error && !gatefile_names(&file, &registry, facts, &run, why, sizeof why)) {
        struct findings all = gate_judge(&file, &run, NULL, facts, "13.0.88", false);
        int             code = findings_code(&all);
        FUZZ_REQUIRE(all.n >= file.n);                /* every section has a verdict */
        FUZZ_REQUIRE((code == EXIT_REGRESSION) == (all.count[GATE_BROKEN] > 0));
        FUZZ_REQUIRE(code != EXIT_OK || (all.count[GATE_HOLDS] && !all.count[GATE_OPEN]));
        print_all(&all);
        findings_free(&all);
    }
    gatefile_free(&file);
    return 0;
}

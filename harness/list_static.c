/* kbench list kernels --static: what the assembler settled, for people and for programs. */
#include <string.h>

#include "base.h"
#include "list.h"
#include "static_facts.h"

const struct static_column static_columns[STATIC_NUMBERS] = {
    [STATIC_REGISTERS] = {"registers", "regs", "registers of a thread"},
    [STATIC_STACK] = {"stack", "stack", "bytes of local memory of a thread: spills, and arrays that have no registers"},
    [STATIC_SHARED] = {"shared", "shared", "bytes of shared memory of a block, without what a launch adds"},
    [STATIC_INSTRUCTIONS] = {"instructions", "instr.", "machine instructions"},
    [STATIC_TENSOR] = {"tensor", "tensor", "of these, matrix products on tensor cores"},
    [STATIC_LOADS] = {"loads16", "16 B", "loads of 16 bytes a thread from global memory"},
    [STATIC_BULK] = {"bulk", "bulk", "copies by the copy engine (TMA)"},
    [STATIC_LOCAL] = {"local", "local", "loads and stores of local memory"},
};

enum { FIRST = 12, CELL = 8 };   /* columns: the architecture, a number */

static void head(FILE *f)
{
    for (int i = 0; i < STATIC_NUMBERS; i++) {
        char words[128];
        list_wrap(f, fprintf(f, "%s", static_columns[i].head), FIRST, text(words, sizeof words, "%s", static_columns[i].help));
    }
    fprintf(f, "\n%*s", FIRST, "");
    for (int i = 0; i < STATIC_NUMBERS; i++) fprintf(f, "%*s", CELL, static_columns[i].head);
    fputc('\n', f);
}

/* 80 columns at most: what is longer loses its end. */
static void function_line(FILE *f, const char *name)
{
    enum { ROOM = 80 - 2 };
    int n = (int)strlen(name);
    if (n <= ROOM) fprintf(f, "  %s\n", name);
    else fprintf(f, "  %.*s...\n", ROOM - 3, name);
}

void list_static(FILE *f)
{
    if (!static_facts->kernel) {
        fprintf(f, "no CUDA kernels in this build; it was made without the cuda engine\n");
        return;
    }
    fprintf(f, "by the assembler of CUDA %s, for each function of each CUDA kernel\n\n", static_toolkit);
    head(f);
    for (const struct static_fact *fact = static_facts; fact->kernel; fact++) {
        bool new_kernel = fact == static_facts || strcmp(fact->kernel, fact[-1].kernel);
        if (new_kernel) fprintf(f, "%s\n", fact->kernel);
        if (new_kernel || strcmp(fact->function, fact[-1].function)) function_line(f, fact->function);
        fprintf(f, "    %-*s", FIRST - 4, fact->sm);
        for (int i = 0; i < STATIC_NUMBERS; i++) fprintf(f, "%*d", CELL, (int)fact->number[i]);
        fputc('\n', f);
    }
}

cJSON *list_static_json(void)
{
    cJSON *all = cJSON_CreateObject(), *facts;
    cJSON_AddStringToObject(all, "toolkit", static_toolkit);
    facts = cJSON_AddArrayToObject(all, "functions");
    for (const struct static_fact *fact = static_facts; fact->kernel; fact++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "kernel", fact->kernel);
        cJSON_AddStringToObject(one, "sm", fact->sm);
        cJSON_AddStringToObject(one, "function", fact->function);
        for (int i = 0; i < STATIC_NUMBERS; i++) cJSON_AddNumberToObject(one, static_columns[i].name, fact->number[i]);
        cJSON_AddItemToArray(facts, one);
    }
    return all;
}

/* What the assembler settled for each function of each CUDA kernel, known without a GPU. The table is generated at build time from
 * the objects; it is empty in a build without the cuda engine. Spills show as stack and as loads and stores of local memory. */
#ifndef KBENCH_STATIC_FACTS_H
#define KBENCH_STATIC_FACTS_H

#include <stdint.h>

enum static_number {
    STATIC_REGISTERS, STATIC_STACK, STATIC_SHARED, STATIC_INSTRUCTIONS, STATIC_TENSOR, STATIC_LOADS, STATIC_BULK, STATIC_LOCAL,
    STATIC_NUMBERS,
};

struct static_fact {
    const char *kernel, *sm;   /* "attn/mma", "90a" */
    const char *function;      /* "attn_mma<mma_shape<2, 32, 2, 2>>" */
    int32_t     number[STATIC_NUMBERS];
};

/* A number's name in JSON and gate files, its head in the terminal, and what it is. */
struct static_column {
    const char *name, *head, *help;
};

extern const struct static_fact   static_facts[];    /* by kernel, function and architecture; ended by a NULL kernel */
extern const char                 static_toolkit[];  /* "13.0.88"; "" without the cuda engine */
extern const struct static_column static_columns[STATIC_NUMBERS];

#endif

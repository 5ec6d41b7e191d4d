/* Libraries that may be missing, by dlopen, so that one build starts anywhere. */
#ifndef KBENCH_LIBRARY_H
#define KBENCH_LIBRARY_H

#include <stdbool.h>

/* Where CUPTI may lie: what `kbench profile` opens is what `kbench doctor` looks for. */
#define CUPTI_LIBRARIES "libcupti.so.13", "libcupti.so.12", "libcupti.so", "/usr/local/cuda/lib64/libcupti.so.13", \
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"

/* The first of n names that can be opened, or NULL. */
void *library_open(int n, const char *const *names);
/* A function's address into the pointer at ret_function: dlsym gives void *, ISO C wants it copied. False where the library lacks
 * it. */
bool  library_find(void *library, const char *name, void *ret_function);

#endif

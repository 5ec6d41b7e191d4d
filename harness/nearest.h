/* "did you mean": the nearest of some names. */
#ifndef KBENCH_NEAREST_H
#define KBENCH_NEAREST_H

#include <stddef.h>

/* Nearest of the names by edit distance, or NULL where none is near. */
const char *nearest(const char *word, const char *const *names, int n);

/* "; did you mean 'x'?", or "" where none is near. */
char *did_you_mean(const char *word, const char *const *names, int n, char *ret, size_t size);

#endif

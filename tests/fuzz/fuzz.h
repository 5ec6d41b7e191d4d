/* A fuzz target defines LLVMFuzzerTestOneInput and the words it is fond of. With -DFUZZ_LIBFUZZER libFuzzer drives it; otherwise
 * fuzz_main.c mutates a corpus for some seconds, so that any compiler with AddressSanitizer will do:
 *     fuzz_axis [-seconds=N] [-seed=N] FOLDER|FILE...           a file given alone is run once, as it is */
#ifndef KBENCH_FUZZ_H
#define KBENCH_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program with the input at hand on stderr. */
#define FUZZ_REQUIRE(condition)                                                                       \
    do {                                                                                              \
        if (!(condition)) {                                                                           \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                   \
            abort();                                                                                  \
        }                                                                                             \
    } while (0)

extern const char *const fuzz_words[];   /* NULL ends them */

#endif

/* Words of options and job files: where one stands, whether it means a dimension or a key, and what to say where it does not. */
#ifndef KBENCH_WORDS_H
#define KBENCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* "sweeps/a.ini:12: ", or an option in place of the file ("-a ") with line 0. */
struct place {
    const char *file;
    int         line;
};

struct trouble {
    char text[1024];
};

/* Says where and what in `trouble` and returns 1. */
int fail(struct trouble *, struct place, const char *format, ...) __attribute__((format(printf, 3, 4)));

bool word_is_dimension(const char *name);      /* of some op */
bool word_is_global_key(const char *name);     /* holds for a whole run: stands in [global] alone */
/* fail() on a name that is no dimension, with the nearest one. keys: it might have been a key. */
int  word_unknown(struct trouble *, struct place, const char *name, bool keys);
/* The next word of a comma list without the blanks around it; *at moves behind it. 0, or non-zero: it is empty or too long. */
int  word_next(const char **at, char *ret, size_t size, struct place, struct trouble *);

#endif

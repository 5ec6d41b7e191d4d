/* Which problems are left out: "batch>64 ctx>=128K", of which all must hold. */
#ifndef KBENCH_CONDITION_H
#define KBENCH_CONDITION_H

#include <stdint.h>
#include "op.h"
#include "words.h"

enum relation { LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, UNEQUAL };

struct comparison {
    char          name[32];
    enum relation relation;
    int64_t       value;
};

struct condition {          /* all of them */
    struct place      at;
    bool              used;
    int               n;
    struct comparison comparison[8];
};

int  condition_parse(const char *words, struct place, struct condition *ret, struct trouble *);
bool condition_holds(const struct condition *, const struct op *, const int64_t *dim);

#endif

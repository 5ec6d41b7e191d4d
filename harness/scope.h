/* What one source of words asks for: the command line, [global], or a section of a job file. Parsed, with the place of each word
 * for messages, but not yet held against a selection of kernels. */
#ifndef KBENCH_SCOPE_H
#define KBENCH_SCOPE_H

#include <stdbool.h>
#include "condition.h"
#include "jobfile.h"
#include "sweep.h"

struct setting {            /* an axis of a dimension, or of a tunable */
    struct place at;
    struct axis  axis;
    bool         used;      /* some selected op or kernel has it */
};

struct glob {
    struct place at;
    char         word[80];
    bool         used;
};

struct zip {
    struct place at;
    bool         used;
    int          n;
    char         name[MAX_DIMS][32];
};

struct fixed {              /* variant = attn/splitk splits=4 */
    struct place at;
    char         kernel[64];
    int          n;
    struct { char name[32]; int32_t value; } tune[MAX_TUNABLES];
};

struct scope {
    int               n_axes, n_tunes, n_kernels, n_skip_kernels, n_first, n_zips, n_skips, n_fixed;
    struct setting   *axis, *tune;
    struct glob      *kernel, *skip_kernel, *first;
    struct zip       *zip;
    struct condition *skip;
    struct fixed     *fixed;
    bool              has_cache, has_seed, has_device;
    enum cache_choice cache;
    enum engine       device;      /* of a section: runs on that engine alone */
    uint64_t          seed;
};

int  scope_of_section(const struct job_section *, bool global, struct scope *, struct trouble *);
int  scope_of_cli(const struct cli *, struct scope *, struct trouble *);
void scope_free(struct scope *);

const struct setting *scope_axis(const struct scope *, const char *name);

#endif

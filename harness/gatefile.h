/* Gate files: what has to hold in a run and of the code, in words that need neither a GPU nor an absolute time. The grammar is that
 * of job files.
 *
 *   [global]
 *   sweep = gate                    run where no run is given: a name in sweeps/, or a path from here
 *   [live beats the maximum]        a ratio between kernels of one run, on each problem that both have
 *   kernel = indexer/host_live
 *   over = indexer/host_full
 *   at-least = 10                   times as fast
 *   max_ctx = 512K                  on these problems alone; every combination of values has to be there
 *   device = host                   left out for runs on the other engine
 *   [registers]                     limits of what the assembler settled, for each function of each kernel
 *   kernels = attn/mma*,attn/splitk
 *   registers = 168                 at most; also stack, shared, local, instructions
 *   arch = 90a
 *   toolkit = 13.0                  left out under another one
 */
#ifndef KBENCH_GATEFILE_H
#define KBENCH_GATEFILE_H

#include "jobfile.h"
#include "scope.h"
#include "static_facts.h"

enum { MAX_GATE_PROBLEMS = 4096 };      /* combinations of a section's values */

struct gate {                           /* a section */
    const char   *name;
    struct place  at;
    bool          is_static;

    struct place  kernel_at, over_at;   /* of a ratio */
    char          kernel[64], over[64];
    double        at_least;
    bool          has_device;
    enum engine   device;
    int           n_axes;
    struct axis   axis[MAX_DIMS];

    int           n_globs;              /* of static limits */
    struct glob  *glob;
    struct place  sm_at, toolkit_at;
    char          sm[16], toolkit[32];
    int32_t       most[STATIC_NUMBERS]; /* -1: no limit */
};

struct gatefile {
    struct jobfile job;                 /* owns the names */
    const char    *sweep;               /* NULL: none */
    struct place   sweep_at;
    int            n;
    struct gate   *gate;
};

/* 0, or non-zero with "file:line: what: why" in ret_error; either way gatefile_free. */
int  gatefile_read(const char *path, struct gatefile *, char *ret_error, size_t size);
int  gatefile_parse(const char *path, const char *content, size_t length, struct gatefile *, char *ret_error, size_t size);
void gatefile_free(struct gatefile *);

/* Names of kernels held against this build, and against the rows of the run where there is one (it may be of another build).
 * 0, or non-zero with ret_error. What this build cannot know, sections for its missing engine, passes. */
struct table;
int  gatefile_names(const struct gatefile *, const struct registry *, const struct static_fact *, const struct table *,
                    char *ret_error, size_t size);

#endif

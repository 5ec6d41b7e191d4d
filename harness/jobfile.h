/* Job files as written: sections of keys with file and line. Knows the grammar and include, and no op, kernel or dimension.
 *
 *   [global]                      defaults of all sections
 *   include = common.ini          at this place; relative to this file
 *   [decode]                      a family of row groups
 *   kernels = attn/mma,attn/gather  ; comment   # comment
 *   batch = 1:64:*2
 *   skip = batch>16 ctx>=128K
 *   device = cuda                 this section is for that engine alone, on the other it is left out
 */
#ifndef KBENCH_JOBFILE_H
#define KBENCH_JOBFILE_H

#include <stddef.h>

struct job_key {
    char       *name, *value;
    const char *file;      /* as the user would type it */
    int         line;
};

struct job_section {
    char           *name;
    const char     *file;
    int             line;
    int             n;
    struct job_key *key;   /* in the order written; skip may stand there more than once */
};

struct jobfile {
    int                 n_files;
    char              **file;
    struct job_section  global;    /* of all files; where a name stands twice, the later one counts */
    int                 n;
    struct job_section *section;   /* in the order written, included ones at their include's place */
};

/* Adds what a file says, with its includes. 0, or non-zero with "file:line: what: why" in ret_error.
 * May be called for one file after the other. */
int  jobfile_read(const char *path, struct jobfile *, char *ret_error, size_t size);
/* The same from memory: `path` stands in messages, and includes are relative to its folder. */
int  jobfile_parse(const char *path, const char *content, size_t length, struct jobfile *, char *ret_error, size_t size);
void jobfile_free(struct jobfile *);

/* The last key of that name, or NULL. */
const struct job_key *job_find(const struct job_section *, const char *name);

#endif

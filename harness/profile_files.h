/* What a profile leaves in its run folder beside rows.csv: breakdown.csv (a line a part of a call) and counters.csv (a line a
 * row), under the names that say which row they belong to. */
#ifndef KBENCH_PROFILE_FILES_H
#define KBENCH_PROFILE_FILES_H

#include <stdio.h>
#include "profile.h"
#include "runfolder.h"

struct profile_files {
    FILE       *breakdown, *counters;
    int         n_dims;
    const char *const *dims;
};

/* Appends where a run is resumed, else begins anew. 0 or errno. */
int  profile_files_open(struct profile_files *, const struct runfolder *, bool resume);
/* Of the rows that stand in a resumed run, those that were timed and have no line in counters.csv, or no lines of the breakdown
 * that it speaks of: how many, and the first of them or NULL. *ret_failed: how many have a breakdown that does not hold. */
const struct row *profile_files_lack(const struct runfolder *, int *ret_n, int *ret_failed);
int  profile_files_write(struct profile_files *, const struct row *, const struct profile *, const struct machine *);
/* How long counters.csv is: where the lines of a group will begin. */
int64_t profile_files_at(const struct profile_files *);
/* The lines from there on once more, now that other measurements of n rows stand for them. */
struct profiled {
    struct row      row;
    struct profile *profile;
};
int  profile_files_again(struct profile_files *, int64_t at, int n, const struct profiled *, const struct machine *);
void profile_files_close(struct profile_files *);

#endif

/* What a profile has left in its run folder, read again: breakdown.csv and counters.csv as sheets that can be believed. */
#ifndef KBENCH_PROFILE_READ_H
#define KBENCH_PROFILE_READ_H

#include "profile.h"
#include "row.h"
#include "sheet.h"

/* 0; ENOENT where the run was not profiled; another errno, or -1 where it is no such file, is cut short or holds no numbers where
 * it should, and why in ret_error: "FILE:LINE: ..". */
int  profile_read_breakdown(const char *folder, struct sheet *ret, char *ret_error, size_t size);
int  profile_read_counters(const char *folder, struct sheet *ret, char *ret_error, size_t size);

/* counters.csv likewise, for profile_read_line alone. */
int  profile_read_lines(const char *folder, struct sheet *ret, char *ret_error, size_t size);

/* Lines a and b belong to one row of rows.csv, and to the same pass. */
bool profile_same_row(const struct sheet *breakdown, int a, int b);
bool profile_same_pass(const struct sheet *breakdown, int a, int b);

/* A row's replays. false: the sheet has none. */
bool profile_read_row(const struct sheet *breakdown, const struct row *, struct breakdown *ret);
/* What a row's line of counters.csv says: all that report_profile shows of a profile but the tree. Derived figures are as they
 * were written. false: no line, or counters is NULL, and nothing is known. */
bool profile_read_line(const struct sheet *counters, const struct row *, struct profile *ret, struct derived *ret_derived);

/* What parts of the cell `why` of counters.csv begin with, in this order and behind "; "; before them stands why there is no
 * trace. The last one is all that profile_doubt says. */
#define WHY_EAGER    "launch outside of a graph: "
#define WHY_COUNTERS "counters: "
#define WHY_DRAM     "dram_reread: "
#define WHY_DOUBT    "not quiet"

#endif

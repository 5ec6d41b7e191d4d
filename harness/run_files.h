/* What a sweep writes while it runs: its folder with rows, samples, environment, plan and log, complete after every group. */
#ifndef KBENCH_RUN_FILES_H
#define KBENCH_RUN_FILES_H

#include "channel.h"
#include "cli.h"
#include "plot.h"
#include "registry.h"
#include "runfolder.h"
#include "scaling.h"

struct run_files {
    struct runfolder folder;
    int              groups;
    int              error;          /* errno of the first file beside the rows that could not be written whole; 0 none */
    double           untimed_first_s, untimed_most_s;   /* of the first group; of any later one */
};

/* A run is of one code on one device: rows that stand already would pass for those of now. Dies with EXIT_USAGE where --resume
 * names a run of another one; looks at files alone, so that nobody waits for a device to be told so. */
void run_files_refuse_others(const struct cli *, const struct plan *, const struct registry *, const struct machine *);
/* The folder with env.json and plan.ini in it. Dies where it can't be written. */
void run_files_open(struct run_files *, const struct cli *, const struct plan *, const struct registry *, const struct machine *);
/* A finished row with its samples; at_s becomes time since the run began. 0 or errno. */
int  run_files_row(struct run_files *, const struct row *, int n, struct sample *);
/* One line in log.txt: where a group's time went. */
void run_files_group(struct run_files *, const char *what, const struct done *);
/* All rows of the folder, those of a resumed run too. False: nothing could be read back. */
bool run_files_read(struct run_files *, struct table *ret);
/* What follows from the rows: scaling.csv and crossover.csv, and plots where wanted. What can't be written is said, and `error`. */
void run_files_derive(struct run_files *, const struct table *, const struct scalings *, bool plots);
void run_files_close(struct run_files *);

#endif

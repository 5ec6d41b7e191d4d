/* `kbench report RUN... [--markdown]` and `kbench plot RUN...`: from run folders or rows.csv files, long after the run. */
#ifndef KBENCH_COMMANDS_REPORT_H
#define KBENCH_COMMANDS_REPORT_H

#include "cli.h"

/* Each returns the exit code, and dies with EXIT_USAGE where a run can't be read. A report of failed rows is a good report: only
 * with --strict does it end like the run (1 a row failed, 4 a row is marked). Plots: EXIT_ENVIRONMENT where gnuplot or the folder
 * stood in the way; --out DIR draws into DIR/plots. */
int command_report(const struct cli *);
int command_plot(const struct cli *);

#endif

/* `kbench report RUN [--markdown]` and `kbench plot RUN`: from a run folder or a rows.csv, long after the run. */
#ifndef KBENCH_COMMANDS_REPORT_H
#define KBENCH_COMMANDS_REPORT_H

#include "cli.h"

/* Each returns the exit code. */
int command_report(const struct cli *);
int command_plot(const struct cli *);

#endif

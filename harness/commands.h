/* The commands of the command line, one file each: harness/command_<name>.c. All return the exit code. */
#ifndef KBENCH_COMMANDS_H
#define KBENCH_COMMANDS_H

#include "cli.h"
#include "machine.h"
#include "registry.h"

/* check, sweep and profile. */
int command_sweep(struct cli *);
int command_doctor(struct cli *);
int command_precision(struct cli *);
int command_gate(struct cli *);

/* list: finds the devices, then calls command_list. */
int command_list_all(struct cli *);

/* The topics of `kbench list`. machine[i]: a device that was found, or one that could not be had, with why_not[i] set. */
int command_list(const struct cli *, const struct registry *, int n_machines, const struct machine *, const char *const *why_not);

#endif

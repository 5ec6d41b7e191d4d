/* References of the check sets: the op's double-precision code on the CPU, and where that takes too long an oracle kernel on the
 * device, believed only after it agreed with the CPU on the items that both did. */
#ifndef KBENCH_REFERENCE_RUN_H
#define KBENCH_REFERENCE_RUN_H

#include "workload.h"

/* Fills ref, checked and head->checked_pct of all check sets. Needs the check buffers where oracle is given. 0 or a device
 * error. */
int reference_run(struct workload *, const struct kernel *oracle, double budget_s);

#endif

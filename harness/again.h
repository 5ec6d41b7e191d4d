/* Rows that are measured again because the machine was not quiet. All stand in rows.csv; who reads them takes one of each. */
#ifndef KBENCH_AGAIN_H
#define KBENCH_AGAIN_H

#include "table.h"

/* How the reason of such a row begins. */
#define ONCE_MORE "measured again: the machine was not quiet"

/* Of rows[from..] that are the same measurement, where one says ONCE_MORE, the quietest stays, in the first one's place: fewest and
 * lightest marks, then the narrowest interval. Returns how many went. tools/figures.py has the same rule;
 * tests/golden/again.csv holds both to it. */
int again_settle(struct table *, int from);

#endif

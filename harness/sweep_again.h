/* What a run measures once more: rows of a busy machine, and growths that are to be confirmed. */
#ifndef KBENCH_SWEEP_AGAIN_H
#define KBENCH_SWEEP_AGAIN_H

#include "sweep_run.h"

/* Rows that other work or held clocks have marked get two more tries, beside all that was timed with them; all samples are kept.
 * Not where the number of rounds was given, nor beyond the budget, nor on a machine that stays busy. */
void sweep_measure_marked(struct sweep_run *, const struct job *done, int first_row);

/* A growth above its declaration must come back: both ends are measured again, in turns, since a machine that changed its speed
 * between them looks just like it. All times of a size count, so that what passes once is no failure. */
void sweep_confirm_growth(struct sweep_run *);

#endif

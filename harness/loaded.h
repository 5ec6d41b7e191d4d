/* What a tracer costs that is off: the same kernels in the same process, before it is loaded, with it there and after it was on. */
#ifndef KBENCH_LOADED_H
#define KBENCH_LOADED_H

#include "timer.h"

/* Four runs of the timer over the ring as it lies, all cut alike and with graphs of their own: two before the tracer, whose ratio
 * is what another run alone changes; one of twice as many rounds, by turns without its library and with it there, but off; then
 * each lane is traced and the tracer let go, as for a profile; and one after. timing.rounds says how many rounds.
 * Without a tracer ret->why has words and the last ones, or all, are not timed; so where it has been in this process before.
 * ret: one a lane. 0 or a device error; *ret_lane says whose. Lanes are left as by the last run. */
int loaded_run(struct timer *, int *ret_lane, struct loaded *ret);

#endif

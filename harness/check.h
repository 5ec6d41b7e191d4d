/* Right or wrong: one kernel against the references of the check sets, eagerly, again, and captured with other inputs. Knows no
 * clock but the deadline that the caller keeps. */
#ifndef KBENCH_CHECK_H
#define KBENCH_CHECK_H

#include "bound.h"

/* The step that is about to run, for the board: "captured replay". */
typedef void step_fn(void *arg, const char *what);

struct verdict check_kernel(struct bound *, step_fn *, void *arg);
/* One launch on set 0, compared where there is a reference: under --wrap. */
struct verdict check_once(struct bound *, step_fn *, void *arg);
/* Outputs of the ring's set 0 as they are now against its reference. */
struct verdict check_ring_set(struct bound *);

#endif

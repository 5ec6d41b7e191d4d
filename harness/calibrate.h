/* Does the timer tell the truth? Work of a known length, timed as rows are. */
#ifndef KBENCH_CALIBRATE_H
#define KBENCH_CALIBRATE_H

#include "device.h"

extern const double spin_asked_ns[SPINS];

/* What spins of those lengths read, less an empty kernel timed the same way. 0 or a device error. */
int  calibrate(struct dev *, double *ret_ns);
/* Whether a reading is within 5 % or 0.1 us. */
bool spin_right(double asked_ns, double read_ns);
/* How many of the SPINS readings are not. */
int  spins_wrong(const double *read_ns);

#endif

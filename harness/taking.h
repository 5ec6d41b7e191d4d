/* Does a kernel take device memory in its launch? Free memory is everybody's, so that less of it says nothing yet: another process
 * may have taken it in that moment. Pure functions of figures. */
#ifndef KBENCH_TAKING_H
#define KBENCH_TAKING_H

#include <stdint.h>

struct memory {
    int64_t free_bytes;   /* of the device, for all its processes */
    int64_t own_bytes;    /* that this process holds, as the driver counts them; -1 unknown */
};

/* Figures around some launches, and some time before them with no launch in between. */
struct taking {
    struct memory still, before, after;
};

enum { MOST_TAKINGS = 8 };

enum taken { TAKEN_NOT, TAKEN_OPEN, TAKEN };   /* TAKEN_OPEN: launch again, and look again */

/* Of n takings, the newest last. What this process holds clears the kernel at once, and blames it at once where free memory fell,
 * too. Else the kernel is to blame where memory went with each of four takings, apart from those in which it changed without a
 * launch as well. */
enum taken taking_judge(const struct taking *, int n);
int64_t    taking_bytes(const struct taking *);   /* that were taken: by this process where that is known, else by anybody */

#endif

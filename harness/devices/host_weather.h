/* What /proc and the cgroup say of other work on a CPU. */
#ifndef KBENCH_HOST_WEATHER_H
#define KBENCH_HOST_WEATHER_H

#include "weather.h"

struct host_look {               /* of the last look; all zero before the first */
    double at_s, waited_ns, stolen_ticks;
    double held_back;            /* periods in which a cgroup's quota held us back */
};

/* Shares and marks since *last, which becomes now. The first look, and what a kernel doesn't tell, is unknown. */
void host_look(struct host_look *last, struct weather *ret);

/* Periods in which quotas of our cgroups (membership: /proc/self/cgroup; root: /sys/fs/cgroup), versions 1 and 2, held us back; NaN
 * where none is kept. */
double host_held_back(const char *membership, const char *root);

#endif

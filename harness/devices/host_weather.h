/* What /proc, /sys and the cgroup say of a CPU: other work, and the clock. */
#ifndef KBENCH_HOST_WEATHER_H
#define KBENCH_HOST_WEATHER_H

#include <stdio.h>

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

struct host_clock {              /* the last reading; all zero before the first */
    double MHz, until_s;         /* it stands for the clock until then */
};

/* Mean clock of the CPUs that the calling thread may run on, or of 16 spread over them where there are more: by cpufreq, else by
 * /proc/cpuinfo, else NaN. */
double host_read_clock(struct host_clock *last);
/* The same of n CPUs, of those that have one. root: /sys/devices/system/cpu */
double host_cpufreq_MHz(const char *root, const int *cpu, int n);
double host_cpuinfo_MHz(FILE *cpuinfo, const int *cpu, int n);

#endif

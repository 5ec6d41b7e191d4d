/* How a machine is doing while it measures: one look, taken between rounds, never inside a timed sample. Plain data. */
#ifndef KBENCH_WEATHER_H
#define KBENCH_WEATHER_H

#include <stdint.h>

enum {                           /* of weather.held */
    HELD_POWER_CAP = 1,          /* clocks are held down by the power limit */
    HELD_HARDWARE = 2,           /* by the hardware's own slow-down */
    HELD_THERMAL = 4,            /* by heat */
    HELD_BRAKE = 8,              /* by a power brake from outside */
    HELD_QUOTA = 16,             /* HOST: by the quota of a cgroup */
};

struct weather {                 /* NaN, and -1 of whole numbers: unknown */
    double  memory_clock_MHz, power_W, temperature_C;
    int32_t held;                /* HELD_... bits */
    int32_t others;              /* CUDA: processes on the device beside one, as far as the driver shows them */
    double  waited_pct;          /* HOST: CPU time that our threads waited for since the last look, of the wall time */
    double  stolen_pct;          /* HOST: CPU time that the machine's own host took, of the wall time of all CPUs */
    double  load;                /* HOST: load average of a minute */
};

#endif

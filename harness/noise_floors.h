/* Noise floors as `doctor --floors` has left them in results/runs/doctor-<uuid>.json: what the gate widens its intervals by. */
#ifndef KBENCH_NOISE_FLOORS_H
#define KBENCH_NOISE_FLOORS_H

#include "machine.h"
#include "row.h"

struct noise_floors {
    int n;
    struct noise_floor {
        struct row row;     /* op, kernel, dims, tune, cache */
        double     pct;
    } *of;
    char path[700];
};

char  *noise_floors_file(const struct machine *, char *ret, size_t size);      /* "doctor-GPU-1b2c.json" */
/* Those of the machine; none is no error. Non-zero with ret_error: a file that can't be believed. */
int    noise_floors_read(const struct machine *, struct noise_floors *ret, char *ret_error, size_t size);
int    noise_floors_parse(const char *json, const char *device, struct noise_floors *ret);   /* non-zero: not a file of floors */
double noise_floor_pct(const struct noise_floors *, const struct row *);       /* of the row; NaN where nobody measured it */
void   noise_floors_free(struct noise_floors *);

#endif

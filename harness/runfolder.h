/* A run's folder: results/runs/<UTC>-<sweep>/ or --out DIR. Holds rows.csv, samples.csv, env.json, plan.ini, log.txt, plots/.
 * It is complete after every row group. Nothing that exists is overwritten without --force. */
#ifndef KBENCH_RUNFOLDER_H
#define KBENCH_RUNFOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include "machine.h"
#include "registry.h"
#include "row.h"
#include "table.h"
#include "weather.h"

struct sample {         /* one round of one kernel */
    int32_t placement;         /* which draw of memory addresses, 0 first */
    int32_t round, position;   /* position: when in its round it ran, 0 first */
    double  t_ns;              /* per call */
    double  at_s;              /* since the run began */
    double  sm_clock_MHz;      /* NaN unknown */
    int32_t calls;             /* in the sample */
    double  canary_ns;         /* right before it: a tiny fixed piece of work; NaN none */
    double  wait_ns;           /* and how long the device let it wait beyond that; NaN unknown */
    struct weather weather;    /* at the begin of the round */
};

struct runfolder {
    char        path[512];
    FILE       *rows, *samples, *log;
    int         n_dims;
    const char *dims[64];      /* dimension columns of this run */
    struct table done;         /* --resume: rows that stood there already */
    double      began_s;
};

struct runfolder_options {
    const char *out;           /* NULL: under results/runs of the source tree, else the current folder */
    const char *name;          /* of the sweep */
    bool        force, resume;
    int         n_dims;
    const char *const *dims;
};

/* Creates (or with resume reopens) the folder. Dies with EXIT_ENVIRONMENT where it can't be written, EXIT_USAGE where it exists
 * and neither force nor resume is set, or a resumed one has other dims. A torn last line of a killed run is cut off first. */
void runfolder_open(struct runfolder *, const struct runfolder_options *);
/* 0 or errno. A row is one write, flushed. */
int  runfolder_row(struct runfolder *, const struct row *);
int  runfolder_samples(struct runfolder *, const struct row *, int n, const struct sample *);
int  runfolder_log(struct runfolder *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void runfolder_close(struct runfolder *);

/* Whether --resume may skip this row: same kernel, dims, tune, cache and seed stand in rows.csv. */
bool runfolder_has(const struct runfolder *, const struct row *key);

/* Writes path/name whole or not at all (temporary file, then rename). 0 or errno. */
int  runfolder_write(const char *path, const char *name, const char *content);

/* env.json: schema, kbench version, command, seed, machine, ceilings, hashes of each kernel's machine code. malloc'ed text. */
struct env {
    const char           *command;
    uint64_t              seed;
    const struct machine *machine;
    int                   n_kernels;
    const struct entry   *kernel;
};
char *env_json(const struct env *);
/* Reads the machine back for report and compare. 0, or non-zero with ret_error. */
int env_read(const char *path, struct machine *ret, char *ret_error, size_t size);
/* The first of n kernels whose machine code in the file at path is another one; -1: none, or the file or hashes are not there. */
int env_other_code(const char *path, int n, const struct entry *kernel);
/* Whether times of both belong into one table: the same GPU or MIG instance; on the host the same CPU and number of threads. Else
 * ret_why says what each is. */
bool machine_same(const struct machine *was, const struct machine *is, char *ret_why, size_t size);

#endif

/* The parent's side of the workers: starts them, feeds them row groups, and loses one row, not the run, when one dies or hangs.
 * Never touches CUDA or OpenMP. */
#ifndef KBENCH_SUPERVISOR_H
#define KBENCH_SUPERVISOR_H

#include <signal.h>
#include <sys/types.h>
#include "cli.h"
#include "outcome.h"

struct supervisor {
    const struct cli      *cli;
    const struct registry *registry; /* with the plug-ins that each worker must have; NULL: any */
    const volatile sig_atomic_t *interrupted;
    int                    listener, memory, connection;  /* connection -1: no worker */
    char                   socket[64];
    pid_t                  worker;
    struct board          *board;
    struct hello           hello;    /* of the newest worker; ceilings are kept */
    int                    starts;
    bool                   traced;   /* this worker's tracer has been on: nothing is timed in it any more */
    char                   refused[4400]; /* why no worker was taken: its plug-ins are not ours; "" else */
};

/* Starts the first worker on cli->device. Dies with EXIT_ENVIRONMENT where the device can't be had. interrupted: set by the signal
 * handler; nothing new is begun then. registry: stays; with EXIT_USAGE where the worker's plug-ins are other files. */
void supervisor_open(struct supervisor *, const struct cli *, const struct registry *, const volatile sig_atomic_t *interrupted);
/* Has the ceilings measured: hello.machine.ceilings. */
void supervisor_measure(struct supervisor *);
/* Runs a group, never in a worker whose tracer has been on. ret: has room for group->n. False: interrupted, or no worker is to be
 * had (refused); rows are those finished by then (status "" for the others). */
bool supervisor_group(struct supervisor *, struct job *, struct outcome *ret, struct done *ret_done);
void supervisor_close(struct supervisor *);

/* `kbench worker SOCKET ...`: the other end. Returns the exit code. */
int worker_main(int argc, char **argv);

#endif

/* One run at a time on a device: a second one queues. The lock is the kernel's (flock), so that it ends with its process. */
#ifndef KBENCH_LOCK_H
#define KBENCH_LOCK_H

#include <signal.h>
#include <stdbool.h>
#include "cli.h"
#include "machine.h"

struct lock {
    int fd;           /* -1: none */
};

/* Takes the device's lock, or waits for it and says so, unless --no-lock. False: interrupted while waiting. Where no lock file can
 * be had it warns and goes on without. */
bool lock_device(struct lock *, const struct cli *, const struct machine *, const volatile sig_atomic_t *interrupted);
void lock_drop(struct lock *);

/* The file `name` in the first of the folders (NULL-terminated, "" is skipped) that lets us; -1 and the reason of the last one. */
int  lock_open(const char *const *folders, const char *name, char *ret_path, size_t path_size, char *ret_why, size_t why_size);

#endif

/* What the stages of a worker ask of a device. Two of them: devices/host.c and devices/cuda.c. Functions that return int give 0
 * or the device's own error code, whose words are error_text's. Plain pointers are device memory unless named host. */
#ifndef KBENCH_DEVICE_H
#define KBENCH_DEVICE_H

#include <stdbool.h>
#include "kernel.h"
#include "machine.h"
#include "weather.h"

struct dev;
struct graph;   /* captured launches, ready to replay */

enum { DEV_OOM = -2, DEV_FORBIDDEN = -3 };   /* CUDA codes are positive */

/* Enqueues work on dev->stream. */
typedef int enqueue_fn(void *arg);

struct dev_ops {
    int  (*alloc)(struct dev *, size_t bytes, void **ret);         /* aligned to 256; DEV_OOM where there is no room */
    void (*free)(struct dev *, void *);
    int  (*put)(struct dev *, void *dst, const void *host, size_t bytes);
    int  (*get)(struct dev *, void *host, const void *src, size_t bytes);
    int  (*set)(struct dev *, void *dst, int byte, size_t bytes);
    /* n rows of row_bytes from dense host memory to dst + row[i] * stride. */
    int  (*scatter)(struct dev *, void *dst, int64_t stride, int64_t row_bytes, const int64_t *row, int64_t n, const void *host);
    int  (*sync)(struct dev *);                                    /* waits; errors of earlier launches come out here */
    int  (*hash)(struct dev *, const void *src, size_t bytes, uint64_t *ret);  /* bytes: a multiple of 8 */
    size_t (*free_bytes)(struct dev *);
    int64_t (*own_bytes)(struct dev *);                            /* that this process holds, as the driver counts; -1 unknown */

    /* Runs enqueue(arg) under capture and instantiates. HOST: remembers both (arg must live as long). DEV_FORBIDDEN: it did what a
     * capture does not allow, ret_why says what. ret_nodes: nodes captured, -1 unknown. */
    int  (*capture)(struct dev *, enqueue_fn *, void *arg, struct graph **ret, int *ret_nodes, char *ret_why, size_t size);
    int  (*replay)(struct dev *, struct graph *);                  /* enqueues */
    void (*drop)(struct dev *, struct graph *);
    /* Replays the graphs one after the other and waits: time from the first one's begin to the last one's end, ns. */
    int  (*time)(struct dev *, struct graph *const *, int n, double *ret_ns);
    /* Whether enqueue(arg) returns while earlier work of the stream still runs. HOST: always. */
    int  (*asynchronous)(struct dev *, enqueue_fn *, void *arg, bool *ret);
    /* Fills the shared memory of every SM with NaN, so that a kernel which reads what it did not write is found out. */
    int  (*poison_shared)(struct dev *);
    bool (*unsupported)(int error);                                /* the kernel says that it can't run here: no fault */
    const char *(*error_text)(struct dev *, int error);            /* also tells whether it is sticky: dev->sticky */
    int  (*measure)(struct dev *, struct ceilings *ret);
    double (*clock_MHz)(struct dev *);                             /* SM clock now; NaN unknown */
    /* A tiny fixed piece of work of about 10 us: how long it took, and how long the device let it wait before; NaN unknown. */
    int  (*canary)(struct dev *, double *ret_ns, double *ret_wait_ns);
    void (*look)(struct dev *, struct weather *ret);               /* some 100 us: never inside a timed sample */
    int  (*ready_spin)(struct dev *);                              /* before spins are captured: how fast the clock goes now */
    int  (*spin)(struct dev *, double ns);                         /* enqueues work of a known length */
    void (*close)(struct dev *);
};

/* For `kbench profile`, in passes of their own; rows are timed without. begin, end: NULL where there is no tracer. */
struct recording;
struct counters;
struct cupti;

struct trace_ops {
    /* The profiling library is in the process and all of it is off, as it is until begin or count, which do that, too. 0, or
     * non-zero and why. NULL, as begin, where the engine has no tracer. */
    int  (*load)(struct dev *, char *ret_why, size_t size);
    /* Takes it out again, where neither begin nor count has been called: the process is as before the first load. 0 where it is not
     * there now, or non-zero and why: another tool holds it, for one. NULL as load. */
    int  (*unload)(struct dev *, char *ret_why, size_t size);
    /* Everything that runs on the device from begin to end becomes a record of ret. eager: launches outside of graphs are told the
     * range that they stand in, which costs the host time at each. 0, or non-zero and why. */
    int  (*begin)(struct dev *, bool eager, char *ret_why, size_t size);
    int  (*end)(struct dev *, struct recording *ret, char *ret_why, size_t size);
    /* enqueue(arg), which waits, as often as the counters take passes. 0, or non-zero and words in ret->why. */
    int  (*count)(struct dev *, enqueue_fn *, void *arg, struct counters *ret);
};

extern const struct trace_ops host_trace, cuda_trace;

struct dev {
    const struct dev_ops *ops;
    const struct trace_ops *trace;
    struct cupti         *cupti;     /* opened when first asked for; NULL for HOST */
    struct machine        machine;
    struct CUstream_st   *stream;    /* NULL for HOST */
    const char           *timer;     /* the word in the timer column */
    double                sample_s;  /* a sample should last about this long */
    bool                  sticky;    /* the last error ends the process */
};

struct dev *dev_open_host(void);
/* NULL and the reason in ret_why where there is no CUDA in this build, no driver or no such device. */
struct dev *dev_open_cuda(int ordinal, char *ret_why, size_t size);

#endif

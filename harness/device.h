/* What the stages of a worker ask of a device. Two of them: devices/host.c and devices/cuda.c. Functions that return int give 0
 * or the device's own error code, whose words are error_text's. Plain pointers are device memory unless named host. */
#ifndef KBENCH_DEVICE_H
#define KBENCH_DEVICE_H

#include <stdbool.h>
#include "kernel.h"
#include "machine.h"

struct dev;
struct graph;   /* captured launches, ready to replay */

struct dev_ops {
    int  (*alloc)(struct dev *, size_t bytes, void **ret);         /* aligned to 256; DEV_OOM where there is no room */
    void (*free)(struct dev *, void *);
    int  (*put)(struct dev *, void *dst, const void *host, size_t bytes);
    int  (*get)(struct dev *, void *host, const void *src, size_t bytes);
    int  (*copy)(struct dev *, void *dst, const void *src, size_t bytes);
    int  (*set)(struct dev *, void *dst, int byte, size_t bytes);
    /* n rows of row_bytes from dense host memory to dst + row[i] * stride. */
    int  (*scatter)(struct dev *, void *dst, int64_t stride, int64_t row_bytes, const int64_t *row, int64_t n, const void *host);
    int  (*sync)(struct dev *);                                    /* waits; errors of earlier launches come out here */
    int  (*equal)(struct dev *, const void *a, const void *b, size_t bytes, int64_t *ret_first_difference);  /* -1: equal */
    int  (*all_bytes)(struct dev *, const void *a, int byte, size_t bytes, int64_t *ret_first_other);        /* -1: all are */
    size_t (*free_bytes)(struct dev *);

    /* Runs enqueue(arg) under capture and instantiates. HOST: remembers it. nodes: kernel nodes seen, -1 unknown. why: what was
     * forbidden, where capture failed. */
    int  (*capture)(struct dev *, int (*enqueue)(void *arg), void *arg, struct graph **ret, int *ret_nodes, char *ret_why, size_t size);
    int  (*replay)(struct dev *, struct graph *);
    void (*drop)(struct dev *, struct graph *);
    int  (*time)(struct dev *, struct graph *, int replays, double *ret_ns);   /* of all replays together, by the row's timer */
    /* Whether enqueue(arg) returns while earlier work of the stream still runs: 1 yes, 0 it waited. HOST: 1. */
    int  (*asynchronous)(struct dev *, int (*enqueue)(void *arg), void *arg, int *ret_yes);
    const char *(*error_text)(struct dev *, int error);
    int  (*measure)(struct dev *, struct ceilings *ret);           /* read, copy, matrix, latency, floors */
    void (*close)(struct dev *);
};

enum { DEV_OOM = -2 };   /* CUDA codes are positive */

struct dev {
    const struct dev_ops *ops;
    struct machine        machine;
    struct CUstream_st   *stream;
    const char           *timer;     /* "graph" or "clock" */
    bool                  sticky;    /* a CUDA error that ends the process */
};

struct dev *dev_open_host(void);
/* NULL and the reason in ret_why where there is no CUDA in this build, no driver or no such device. */
struct dev *dev_open_cuda(int ordinal, char *ret_why, size_t size);

#endif

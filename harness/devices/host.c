/* The CPU as a device: plain memory, the monotonic clock, launches that are done on return. */
#include "device.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base.h"
#include "host_ceilings.h"
#include "host_weather.h"

struct graph {
    enqueue_fn *enqueue;
    void       *arg;
};

struct host {
    struct dev        dev;      /* first: a struct dev * is one of ours */
    struct host_look  look;     /* the last one */
    struct host_clock clock;    /* likewise */
};

/* Large blocks come from mmap with huge pages asked for: first touches are cheaper, and a block that is not touched costs
 * nothing. */
static int host_alloc(struct dev *dev, size_t bytes, void **ret)
{
    if (bytes > (size_t)dev->machine.facts.memory_bytes) return DEV_OOM;
    size_t size = (bytes + 8191) / 4096 * 4096;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return DEV_OOM;
    madvise(p, size, MADV_HUGEPAGE);
    memcpy(p, &size, sizeof size);   /* for free */
    *ret = p + 4096;
    return 0;
}

static void host_free(struct dev *dev, void *p)
{
    (void)dev;
    if (!p) return;
    size_t size;
    memcpy(&size, (char *)p - 4096, sizeof size);
    munmap((char *)p - 4096, size);
}

/* Copies by all threads: one core does not reach the memory's bandwidth. */
static int host_copy(void *dst, const void *src, size_t bytes)
{
    enum { CHUNK = 1 << 20 };
    int64_t chunks = (int64_t)((bytes + CHUNK - 1) / CHUNK);
#pragma omp parallel for if (chunks > 4)
    for (int64_t i = 0; i < chunks; i++) {
        size_t at = (size_t)i * CHUNK;
        memcpy((char *)dst + at, (const char *)src + at, bytes - at < CHUNK ? bytes - at : CHUNK);
    }
    return 0;
}

static int host_put(struct dev *dev, void *dst, const void *host, size_t bytes)
{
    (void)dev;
    return host_copy(dst, host, bytes);
}

static int host_get(struct dev *dev, void *host, const void *src, size_t bytes)
{
    (void)dev;
    return host_copy(host, src, bytes);
}

static int host_set(struct dev *dev, void *dst, int byte, size_t bytes)
{
    (void)dev;
    enum { CHUNK = 1 << 20 };
    int64_t chunks = (int64_t)((bytes + CHUNK - 1) / CHUNK);
#pragma omp parallel for if (chunks > 4)
    for (int64_t i = 0; i < chunks; i++) {
        size_t at = (size_t)i * CHUNK;
        memset((char *)dst + at, byte, bytes - at < CHUNK ? bytes - at : CHUNK);
    }
    return 0;
}

static int host_scatter(struct dev *dev, void *dst, int64_t stride, int64_t row_bytes, const int64_t *row, int64_t n,
                        const void *host)
{
    (void)dev;
#pragma omp parallel for if (n > 1024)
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)dst + row[i] * stride, (const char *)host + i * row_bytes, (size_t)row_bytes);
    return 0;
}

static int host_sync(struct dev *dev)
{
    (void)dev;
    return 0;
}

static int host_hash(struct dev *dev, const void *src, size_t bytes, uint64_t *ret)
{
    (void)dev;
    const uint64_t *word = src;
    uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t x = (word[i] ^ (i * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;
        sum += x ^ (x >> 32);
    }
    *ret = sum;
    return 0;
}

static size_t host_free_bytes(struct dev *dev)
{
    FILE *file = fopen("/proc/meminfo", "r");
    long long kib = -1;
    char line[128];
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lld", &kib) == 1) break;
    if (file) fclose(file);
    return kib >= 0 ? (size_t)kib * 1024 : (size_t)dev->machine.facts.memory_bytes / 2;
}

static int64_t host_own_bytes(struct dev *dev)
{
    (void)dev;
    return -1;   /* a launch may take memory there */
}

static int host_capture(struct dev *dev, enqueue_fn *enqueue, void *arg, struct graph **ret, int *ret_nodes, char *ret_why,
                        size_t size)
{
    (void)dev;
    (void)ret_why;
    (void)size;
    *ret = must_alloc(1, sizeof **ret);
    **ret = (struct graph){enqueue, arg};
    *ret_nodes = -1;
    return 0;
}

static int host_replay(struct dev *dev, struct graph *graph)
{
    (void)dev;
    return graph->enqueue(graph->arg);
}

static void host_drop(struct dev *dev, struct graph *graph)
{
    (void)dev;
    free(graph);
}

static int host_time(struct dev *dev, struct graph *const *graph, int n, double *ret_ns)
{
    double begin = now_s();
    for (int i = 0; i < n; i++) TRY(host_replay(dev, graph[i]));
    *ret_ns = (now_s() - begin) * 1e9;
    return 0;
}

static int host_asynchronous(struct dev *dev, enqueue_fn *enqueue, void *arg, bool *ret)
{
    (void)dev;
    *ret = true;
    return enqueue(arg);
}

static int host_poison_shared(struct dev *dev)
{
    (void)dev;
    return 0;
}

static bool host_unsupported(int error)
{
    return error == ENOTSUP;
}

static const char *host_error_text(struct dev *dev, int error)
{
    (void)dev;
    return error == DEV_OOM ? "out of memory" : strerror(error > 0 ? error : EINVAL);
}

static int host_measure(struct dev *dev, struct ceilings *ret)
{
    return host_ceilings(dev, ret);
}

static double host_clock_MHz(struct dev *dev)
{
    return host_read_clock(&((struct host *)dev)->clock);
}

enum { CANARY_STEPS = 20000 };

/* Every thread steps through the same short chain; the slowest one is the canary's time. */
static int host_canary(struct dev *dev, double *ret_ns, double *ret_wait_ns)
{
    double begin = now_s();
    uint64_t sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        uint64_t x = 1;
        for (int i = 0; i < CANARY_STEPS; i++) x = (x ^ x >> 29) * 0xff51afd7ed558ccdull;
        sum += x;
    }
    *ret_ns = (now_s() - begin) * 1e9 + (double)(sum == 1);   /* keeps the chain */
    *ret_wait_ns = NAN;
    (void)dev;
    return 0;
}

static void host_weather(struct dev *dev, struct weather *ret)
{
    host_look(&((struct host *)dev)->look, ret);
}

static int host_ready_spin(struct dev *dev)
{
    (void)dev;
    return 0;
}

static int host_spin(struct dev *dev, double ns)
{
    (void)dev;
    for (double until = now_s() + ns * 1e-9; now_s() < until;) {}
    return 0;
}

static void host_close(struct dev *dev)
{
    free(dev);
}

static const struct dev_ops host_ops = {
    .alloc = host_alloc, .free = host_free, .put = host_put, .get = host_get, .set = host_set, .scatter = host_scatter,
    .sync = host_sync, .hash = host_hash, .free_bytes = host_free_bytes, .own_bytes = host_own_bytes, .capture = host_capture,
    .replay = host_replay, .drop = host_drop, .time = host_time, .asynchronous = host_asynchronous,
    .poison_shared = host_poison_shared, .unsupported = host_unsupported, .error_text = host_error_text,
    .measure = host_measure, .clock_MHz = host_clock_MHz, .canary = host_canary, .look = host_weather,
    .ready_spin = host_ready_spin, .spin = host_spin, .close = host_close,
};

struct dev *dev_open_host(void)
{
    struct host *host = must_alloc(1, sizeof *host);
    struct dev *dev = &host->dev;
    dev->ops = &host_ops;
    dev->trace = &host_trace;
    dev->timer = "clock";
    dev->sample_s = 0.005;
    host_describe(&dev->machine);
    return dev;
}

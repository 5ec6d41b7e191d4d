/* perf_event: cycles, instructions and misses of this process, where the kernel lets it. */
#include "counters.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "device.h"

enum { EVENTS = 3, MOST_THREADS = 1024 };

static const uint64_t events[EVENTS] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CACHE_MISSES};

/* One counter of one thread; -1 and errno. */
static int open_event(uint64_t event, pid_t thread)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof attr, .config = event, .disabled = 1,
        .exclude_kernel = 1, .exclude_hv = 1, .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING};
    return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* All threads of now: OpenMP's stay between parallel regions. */
static int list_threads(pid_t *ret)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *entry; dir && n < MOST_THREADS && (entry = readdir(dir));)
        if (atoi(entry->d_name) > 0) ret[n++] = (pid_t)atoi(entry->d_name);
    if (dir) closedir(dir);
    return n;
}

/* Scaled up where events took turns on too few counters. */
static double read_event(int fd)
{
    uint64_t value[3];
    if (read(fd, value, sizeof value) != (ssize_t)sizeof value || !value[2]) return value[1] ? NAN : 0;
    return (double)value[0] * (double)value[1] / (double)value[2];
}

static int refuse(int error, char *ret_why, size_t size)
{
    if (error == EACCES || error == EPERM)
        text(ret_why, size,
            "the kernel refuses counters: as root, sysctl kernel.perf_event_paranoid=2 (containers: --cap-add PERFMON)");
    else
        text(ret_why, size, "no hardware counters here (%s): a virtual machine, or a kernel without perf_event", strerror(error));
    return error;
}

int host_count(int (*enqueue)(void *arg), void *arg, struct counters *ret)
{
    counters_clear(ret);
    pid_t *thread = must_alloc(MOST_THREADS, sizeof *thread);
    int n = list_threads(thread), error = n ? 0 : ENOSYS, opened = 0;
    int *fd = must_alloc((size_t)n * EVENTS + 1, sizeof *fd);
    for (int i = 0; i < n && !error; i++)
        for (int e = 0; e < EVENTS && !error; e++) {
            fd[opened] = open_event(events[e], thread[i]);
            if (fd[opened] >= 0) opened++;
            else error = errno == ESRCH ? 0 : errno;   /* the thread ended: then all of it is shifted */
            if (!error && opened != i * EVENTS + e + 1) error = EAGAIN;
        }
    double sum[EVENTS] = {0};
    if (!error) {
        for (int i = 0; i < opened; i++) ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0);
        error = enqueue(arg);
        for (int i = 0; i < opened; i++) ioctl(fd[i], PERF_EVENT_IOC_DISABLE, 0);
        for (int i = 0; i < opened; i++) sum[i % EVENTS] += read_event(fd[i]);
        ret->passes = 1;
        ret->cycles = sum[0], ret->instructions = sum[1], ret->llc_misses = sum[2];
        if (error) counters_clear(ret);
    } else {
        refuse(error, ret->why, sizeof ret->why);
    }
    for (int i = 0; i < opened; i++) close(fd[i]);
    free(fd), free(thread);
    return error;
}

static int count(struct dev *dev, enqueue_fn *enqueue, void *arg, struct counters *ret)
{
    (void)dev;
    return host_count(enqueue, arg, ret);
}

const struct trace_ops host_trace = {.count = count};   /* a call is done on return: the caller's clock traces it */

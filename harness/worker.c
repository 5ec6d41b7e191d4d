/* The other end of the supervisor: one process, one device, group after group until something fails. */
#include "group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base.h"
#include "calibrate.h"
#include "supervisor.h"

void worker_send(struct worker *worker, enum message kind, const void *a, size_t a_size, const void *b, size_t b_size)
{
    if (channel_send(worker->fd, kind, a, a_size, b, b_size)) _exit(EXIT_OK);   /* the parent is gone: nobody to work for */
}

static void fault(struct worker *worker, const char *why)
{
    channel_send(worker->fd, MESSAGE_FAULT, why, strlen(why) + 1, NULL, 0);
    exit(EXIT_ENVIRONMENT);
}

/* device: auto, host, cuda, cuda:N, or the begin of a UUID, which the runtime looks up by itself. auto falls back to the host and
 * says why. */
static void open_device(struct worker *worker, const char *device, struct hello *hello)
{
    char why[256] = "";
    if (strcmp(device, "host")) {
        if (!strncmp(device, "GPU-", 4) || !strncmp(device, "MIG-", 4)) setenv("CUDA_VISIBLE_DEVICES", device, 1);
        int ordinal = !strncmp(device, "cuda:", 5) ? atoi(device + 5) : 0;
        worker->dev = dev_open_cuda(ordinal, why, sizeof why);
        if (!worker->dev && strcmp(device, "auto")) fault(worker, why);
        text(hello->why_not_cuda, sizeof hello->why_not_cuda, "%s", why);
    }
    if (!worker->dev) worker->dev = dev_open_host();
}

static void say_hello(struct worker *worker, struct hello *hello)
{
    hello->machine = worker->dev->machine;
    worker_send(worker, MESSAGE_HELLO, hello, sizeof *hello, NULL, 0);
}

static void measure(struct worker *worker)
{
    int error = worker->dev->ops->measure(worker->dev, &worker->dev->machine.ceilings);
    if (!error) error = calibrate(worker->dev, worker->dev->machine.spin_ns);
    if (!error) return;
    char why[256];
    text(why, sizeof why, "%s: ceilings can't be measured: %s; is other work running on it?", worker->dev->machine.name,
         worker->dev->ops->error_text(worker->dev, error));
    fault(worker, why);
}

/* kbench worker SOCKET DEVICE PLUGIN... */
int worker_main(int argc, char **argv)
{
    struct worker worker = {.fd = -1, .ranged = -1};
    if (argc < 4) die(EXIT_USAGE, "worker: needs a socket and a device; it is started by the other commands");
    worker.fd = channel_connect(argv[2], &worker.memory);
    if (worker.fd < 0) die(EXIT_USAGE, "worker: %s: no parent listens there; it is started by the other commands", argv[2]);
    worker.board = mmap(NULL, STORE_AT, PROT_READ | PROT_WRITE, MAP_SHARED, worker.memory, 0);
    if (worker.board == MAP_FAILED) die(EXIT_ENVIRONMENT, "worker: shared memory can't be mapped; free some memory");
    worker.registry = registry_open(argc - 4, argv + 4);
    struct hello hello = {0};
    for (int i = 0; i < argc - 4 && i < MAX_LIST; i++)
        text(hello.plugin_hash[i], PLUGIN_HASH_BYTES, "%s", worker.registry.entry[worker.registry.n - (argc - 4) + i].hash);
    open_device(&worker, argv[3], &hello);
    say_hello(&worker, &hello);
    worker.workload = (struct workload){.dev = worker.dev, .memory = worker.memory};
    for (;;) {
        enum message kind;
        void *body;
        size_t size;
        int got = channel_receive(worker.fd, -1, &kind, &body, &size);
        if (got == 0) continue;
        if (got < 0) break;
        if (kind == MESSAGE_MEASURE) {
            measure(&worker);
            say_hello(&worker, &hello);
        } else if (kind == MESSAGE_JOB && size == sizeof(struct job)) {
            worker.job = body;
            worker.dev->machine.ceilings = worker.job->ceilings;
            group_run(&worker);
        } else {
            die(EXIT_BUG, "worker: a message of kind %d, %zu bytes; report it", kind, size);
        }
        free(body);
    }
    workload_close(&worker.workload);
    worker.dev->ops->close(worker.dev);
    return EXIT_OK;
}

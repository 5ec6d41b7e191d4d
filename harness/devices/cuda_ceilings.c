#include "cuda_ceilings.h"

#include <cuda_runtime.h>
#include <math.h>

#include "base.h"
#include "cuda_kernels.h"

enum { READ_BYTES_LOG2 = 32, MATRIX_N = 8192, NODES = 128, ROW_BYTES = 512, REPEATS = 5 };

struct work {
    struct dev *dev;
    char       *block;     /* device, `bytes` long */
    size_t      bytes;
    uint32_t   *out;
    int         which, blocks;   /* blocks an SM of the read stream */
};

enum { WORK_READ, WORK_COPY, WORK_LATENCY, WORK_EMPTY, WORK_ONE_EMPTY };

static int enqueue(void *arg)
{
    const struct work *work = arg;
    struct CUstream_st *stream = work->dev->stream;
    switch (work->which) {
    case WORK_READ:
        return cuda_read(work->block, work->bytes, work->dev->machine.facts.sm_count * work->blocks, work->out, stream);
    case WORK_COPY:
        return cudaMemcpyAsync(work->block, work->block + work->bytes / 2, work->bytes / 2, cudaMemcpyDeviceToDevice, stream);
    case WORK_LATENCY:   /* each node its own slot and row, far from the last, so that nothing of it is in a cache */
        for (size_t i = 0; i < NODES; i++) {
            size_t at = work->bytes / NODES * i;
            TRY(cuda_latency((const int32_t *)(work->block + at), work->block + at + (1 << 20), work->block + at + (2 << 20),
                stream));
        }
        return 0;
    case WORK_EMPTY:
        for (int i = 0; i < NODES; i++) TRY(cuda_empty(stream));
        return 0;
    default:
        return cuda_empty(stream);
    }
}

/* Best of a few replays, ns: other work only ever takes away from a ceiling. */
static int best_ns(struct work *work, int which, double *ret)
{
    struct dev *dev = work->dev;
    struct graph *graph;
    char why[160];
    int nodes;
    work->which = which;
    TRY(dev->ops->capture(dev, enqueue, work, &graph, &nodes, why, sizeof why));
    *ret = INFINITY;
    int error = 0;
    for (int i = 0; i < REPEATS && !error; i++) {
        double ns;   /* a pass over the block first: what the last replay left in L2 is gone */
        if (which == WORK_LATENCY) error = cuda_read(work->block, work->bytes, dev->machine.facts.sm_count * 4, work->out,
            dev->stream);
        if (!error) error = dev->ops->time(dev, &graph, 1, &ns);
        if (!error) *ret = fmin(*ret, ns);
    }
    dev->ops->drop(dev, graph);
    return error;
}

/* A copy has no kernel node to capture: timed between events directly. */
static int copy_ns(struct work *work, double *ret)
{
    cudaEvent_t begin, end;
    TRY(cudaEventCreate(&begin));
    TRY(cudaEventCreate(&end));
    work->which = WORK_COPY;
    *ret = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        float ms;
        TRY(cudaEventRecord(begin, work->dev->stream));
        TRY(enqueue(work));
        TRY(cudaEventRecord(end, work->dev->stream));
        TRY(cudaEventSynchronize(end));
        TRY(cudaEventElapsedTime(&ms, begin, end));
        *ret = fmin(*ret, ms * 1e6);
    }
    TRY(cudaEventDestroy(begin));
    return cudaEventDestroy(end);
}

static int measure_block(struct work *work, struct ceilings *ret)
{
    struct dev *dev = work->dev;
    double ns;
    work->blocks = 4;
    TRY(dev->ops->set(dev, work->block, 0, work->bytes));   /* slots of 0: the row behind each */
    TRY(best_ns(work, WORK_EMPTY, &ns));
    ret->floor_ns = ns / NODES;
    TRY(best_ns(work, WORK_ONE_EMPTY, &ret->event_ns));
    TRY(best_ns(work, WORK_LATENCY, &ns));
    ret->latency_ns = ns / NODES;
    TRY(cuda_random_bf16(work->block, work->bytes / 2, dev->stream));
    for (work->blocks = 2; work->blocks <= 32; work->blocks *= 2) {   /* which grid streams best differs from chip to chip */
        TRY(best_ns(work, WORK_READ, &ns));
        ret->read_GBps = fmax(ret->read_GBps, (double)work->bytes / ns);
    }
    TRY(copy_ns(work, &ns));
    ret->copy_GBps = (double)work->bytes / ns;
    size_t matrix = (size_t)MATRIX_N * MATRIX_N * 2;
    ret->matrix_GFLOPs = 3 * matrix <= work->bytes
                             ? cublaslt_GFLOPs(dev, MATRIX_N, work->block, work->block + matrix, work->block + 2 * matrix, REPEATS)
                             : 0;
    return 0;
}

int cuda_ceilings(struct dev *dev, struct ceilings *ret)
{
    struct work work = {.dev = dev, .bytes = (size_t)1 << READ_BYTES_LOG2};
    while (work.bytes > dev->ops->free_bytes(dev) / 2) work.bytes /= 2;
    TRY(dev->ops->alloc(dev, work.bytes, (void **)&work.block));
    int error = dev->ops->alloc(dev, 256, (void **)&work.out);
    if (!error) error = measure_block(&work, ret);
    if (!error || !dev->sticky) {
        dev->ops->free(dev, work.out);
        dev->ops->free(dev, work.block);
    }
    return error;
}

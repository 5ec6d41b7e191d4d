/* A CUDA device by the runtime API: its memory, its one stream, what it is, and how it is doing. */
#include "device.h"

#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "cuda_ceilings.h"
#include "cuda_graphs.h"
#include "cuda_kernels.h"
#include "nvml.h"

enum { STAGE_BYTES = 64 << 20, CANARY_BYTES = 16 << 20, CANARY_ROWS = 4, CALIBRATE_CYCLES = 20000000 };

struct cuda {
    struct dev   dev;      /* first: a struct dev * is one of ours */
    cudaEvent_t  begin, end;       /* of a timed replay */
    uint64_t    *sum;      /* device: result of a hash */
    int64_t     *rows;     /* device: row numbers of a scatter */
    char        *stage;    /* device: packed rows of a scatter, STAGE_BYTES */
    struct nvml *nvml;
    char        *canary_block;     /* device, CANARY_BYTES */
    struct graph *canary;
    double       cycles_a_ns;      /* of a spin; 0: not measured yet */
};

static struct cuda *of(struct dev *dev)
{
    return (struct cuda *)dev;
}

static int cuda_alloc(struct dev *dev, size_t bytes, void **ret)
{
    (void)dev;
    int error = cudaMalloc(ret, bytes ? bytes : 1);
    if (error != cudaErrorMemoryAllocation) return error;
    cudaGetLastError();
    return DEV_OOM;
}

static void cuda_free(struct dev *dev, void *p)
{
    (void)dev;
    cudaFree(p);
}

static int cuda_put(struct dev *dev, void *dst, const void *host, size_t bytes)
{
    TRY(cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice, dev->stream));
    return cudaStreamSynchronize(dev->stream);
}

static int cuda_get(struct dev *dev, void *host, const void *src, size_t bytes)
{
    TRY(cudaMemcpyAsync(host, src, bytes, cudaMemcpyDeviceToHost, dev->stream));
    return cudaStreamSynchronize(dev->stream);
}

static int cuda_set(struct dev *dev, void *dst, int byte, size_t bytes)
{
    return cudaMemsetAsync(dst, byte, bytes, dev->stream);
}

static int cuda_scatter_rows(struct dev *dev, void *dst, int64_t stride, int64_t row_bytes, const int64_t *row, int64_t n,
                             const void *host)
{
    struct cuda *cuda = of(dev);
    int64_t room = STAGE_BYTES / row_bytes;
    TRY(cudaSetDevice(dev->machine.ordinal));   /* called from other threads too */
    for (int64_t at = 0; at < n; at += room) {
        int64_t part = n - at < room ? n - at : room;
        TRY(cudaMemcpyAsync(cuda->rows, row + at, (size_t)part * sizeof *row, cudaMemcpyHostToDevice, dev->stream));
        TRY(cudaMemcpyAsync(cuda->stage, (const char *)host + at * row_bytes, (size_t)(part * row_bytes), cudaMemcpyHostToDevice,
                            dev->stream));
        TRY(cuda_scatter(dst, stride, row_bytes, cuda->rows, part, cuda->stage, dev->stream));
    }
    return cudaStreamSynchronize(dev->stream);
}

/* The whole device: a launch on another stream must be over too before its outputs are judged, and is named by the capture. */
static int cuda_sync(struct dev *dev)
{
    (void)dev;
    return cudaDeviceSynchronize();
}

static int cuda_hash_bytes(struct dev *dev, const void *src, size_t bytes, uint64_t *ret)
{
    struct cuda *cuda = of(dev);
    TRY(cudaMemsetAsync(cuda->sum, 0, sizeof *cuda->sum, dev->stream));
    TRY(cuda_hash(src, bytes / 8, cuda->sum, dev->stream));
    return cuda_get(dev, ret, cuda->sum, sizeof *ret);
}

static size_t cuda_free_bytes(struct dev *dev)
{
    (void)dev;
    size_t free_bytes = 0, total;
    cudaMemGetInfo(&free_bytes, &total);
    return free_bytes;
}

static int64_t cuda_own_bytes(struct dev *dev)
{
    return nvml_own_bytes(of(dev)->nvml);
}

static int cuda_time(struct dev *dev, struct graph *const *graph, int n, double *ret_ns)
{
    return cuda_time_between(dev, graph, n, of(dev)->begin, of(dev)->end, ret_ns);
}

static int cuda_poison(struct dev *dev)
{
    return cuda_poison_shared(dev->machine.facts.sm_count, (int)dev->machine.facts.smem_bytes, dev->stream);
}

static bool cuda_unsupported(int error)
{
    return error == cudaErrorNotSupported || error == cudaErrorNoKernelImageForDevice;
}

static const char *cuda_error_text(struct dev *dev, int error)
{
    if (error == DEV_OOM) return "out of device memory";
    if (error == DEV_FORBIDDEN) return "forbidden under capture";
    cudaGetLastError();
    dev->sticky |= cudaStreamSynchronize(dev->stream) != cudaSuccess;   /* what stays after it was read ends the process */
    return cudaGetErrorString(error);
}

static int cuda_measure(struct dev *dev, struct ceilings *ret)
{
    return cuda_ceilings(dev, ret);
}

static double cuda_clock_MHz(struct dev *dev)
{
    return nvml_sm_clock_MHz(of(dev)->nvml);
}

/* A few loads that depend on each other, and a read that takes some microseconds of the memory's time. */
static int enqueue_canary(void *arg)
{
    struct cuda *cuda = arg;
    struct CUstream_st *stream = cuda->dev.stream;
    for (int i = 0; i < CANARY_ROWS; i++) {
        char *at = cuda->canary_block + (size_t)i * (CANARY_BYTES / CANARY_ROWS);
        TRY(cuda_latency((const int32_t *)at, at + 4096, at + 8192, stream));
    }
    return cuda_read(cuda->canary_block, CANARY_BYTES, cuda->dev.machine.facts.sm_count * 2, (uint32_t *)cuda->sum, stream);
}

static int need_canary(struct cuda *cuda)
{
    char why[160];
    int nodes;
    if (cuda->canary) return 0;
    TRY(cudaMemsetAsync(cuda->canary_block, 0, CANARY_BYTES, cuda->dev.stream));
    return cuda_capture(&cuda->dev, enqueue_canary, cuda, &cuda->canary, &nodes, why, sizeof why);
}

/* Whoever else has the device keeps us waiting before the first event: the CPU's clock sees that. */
static int cuda_sing(struct dev *dev, double *ret_ns, double *ret_wait_ns)
{
    TRY(need_canary(of(dev)));
    double begin = now_s();
    TRY(cuda_time(dev, &of(dev)->canary, 1, ret_ns));
    *ret_wait_ns = (now_s() - begin) * 1e9 - *ret_ns - LEAD_NS;
    return 0;
}

static void cuda_look(struct dev *dev, struct weather *ret)
{
    nvml_look(of(dev)->nvml, ret);
}

/* By cycles, which are finer than the device's nanoseconds; how many of them make a nanosecond is measured over a long spin. */
static int cuda_spin_ns(struct dev *dev, double ns)
{
    struct cuda *cuda = of(dev);
    return cuda_spin_cycles((uint64_t)(ns * cuda->cycles_a_ns + 0.5), NULL, dev->stream);
}

/* The clock as it is under load: twice, the first brings it up. */
static int cuda_ready_spin(struct dev *dev)
{
    struct cuda *cuda = of(dev);
    uint64_t took[2];
    for (int i = 0; i < 2; i++) {
        TRY(cuda_spin_cycles(CALIBRATE_CYCLES, (uint64_t *)cuda->rows, dev->stream));
        TRY(cuda_get(dev, took, cuda->rows, sizeof took));
        cuda->cycles_a_ns = (double)took[0] / (double)took[1];
    }
    return 0;
}

static void cuda_close(struct dev *dev)
{
    nvml_close(of(dev)->nvml);
    cudaDeviceReset();   /* memory, stream and events go with the context */
    free(dev);
}

static const struct dev_ops cuda_ops = {
    .alloc = cuda_alloc, .free = cuda_free, .put = cuda_put, .get = cuda_get, .set = cuda_set, .scatter = cuda_scatter_rows,
    .sync = cuda_sync, .hash = cuda_hash_bytes, .free_bytes = cuda_free_bytes, .own_bytes = cuda_own_bytes,
    .capture = cuda_capture, .replay = cuda_replay, .drop = cuda_drop, .time = cuda_time, .asynchronous = cuda_asynchronous,
    .poison_shared = cuda_poison, .unsupported = cuda_unsupported, .error_text = cuda_error_text, .measure = cuda_measure,
    .clock_MHz = cuda_clock_MHz, .canary = cuda_sing, .look = cuda_look, .ready_spin = cuda_ready_spin, .spin = cuda_spin_ns,
    .close = cuda_close,
};

static int describe(struct cuda *cuda, int ordinal)
{
    struct machine *machine = &cuda->dev.machine;
    struct cudaDeviceProp prop;
    int version = 0;
    TRY(cudaGetDeviceProperties(&prop, ordinal));
    TRY(cudaRuntimeGetVersion(&version));
    *machine = (struct machine){.engine = CUDA, .ordinal = ordinal};
    machine->facts = (struct device){.sm = prop.major * 10 + prop.minor, .sm_count = prop.multiProcessorCount,
                                     .l2_bytes = prop.l2CacheSize, .smem_bytes = (int64_t)prop.sharedMemPerBlockOptin,
                                     .memory_bytes = (int64_t)prop.totalGlobalMem};
    text(machine->name, sizeof machine->name, "%s", prop.name);
    const char *mig = strstr(prop.name, " MIG ");
    text(machine->mig, sizeof machine->mig, "%s", mig ? mig + 5 : "");
    text(machine->toolkit, sizeof machine->toolkit, "%d.%d", version / 1000, version % 1000 / 10);
    text(machine->features, sizeof machine->features, "%d SMs, sm_%d, L2 %d MB, %.0f GB", prop.multiProcessorCount,
        machine->facts.sm,
         prop.l2CacheSize >> 20, (double)prop.totalGlobalMem * 1e-9);
    const unsigned char *u = (const unsigned char *)prop.uuid.bytes;
    text(machine->uuid, sizeof machine->uuid, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
        u[1], u[2],
         u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
    cuda->nvml = nvml_open(machine->uuid);
    nvml_describe(cuda->nvml, machine);
    return 0;
}

static int open_device(struct cuda *cuda, int ordinal)
{
    TRY(cudaSetDevice(ordinal));
    TRY(describe(cuda, ordinal));
    TRY(cudaStreamCreateWithFlags(&cuda->dev.stream, cudaStreamNonBlocking));
    TRY(cudaEventCreate(&cuda->begin));
    TRY(cudaEventCreate(&cuda->end));
    TRY(cudaMalloc((void **)&cuda->sum, 256));
    TRY(cudaMalloc((void **)&cuda->stage, STAGE_BYTES));
    TRY(cudaMalloc((void **)&cuda->canary_block, CANARY_BYTES));
    return cudaMalloc((void **)&cuda->rows, STAGE_BYTES / 4 * sizeof *cuda->rows);
}

struct dev *dev_open_cuda(int ordinal, char *ret_why, size_t size)
{
    int count = 0, error = cudaGetDeviceCount(&count);
    if (error || !count) {
        text(ret_why, size, "device cuda:%d: %s; check nvidia-smi, or use --device host", ordinal,
             error ? cudaGetErrorString(error) : "no CUDA device");
        return NULL;
    }
    if (ordinal >= count) {
        text(ret_why, size, "device cuda:%d: there are %d, counted from 0; choose one of them", ordinal, count);
        return NULL;
    }
    struct cuda *cuda = must_alloc(1, sizeof *cuda);
    cuda->dev.ops = &cuda_ops;
    cuda->dev.trace = &cuda_trace;
    cuda->dev.timer = "graph";
    cuda->dev.sample_s = 0.002;
    error = open_device(cuda, ordinal);
    if (!error) return &cuda->dev;
    text(ret_why, size, "device cuda:%d: %s; check nvidia-smi for its state", ordinal, cudaGetErrorString(error));
    free(cuda);
    return NULL;
}

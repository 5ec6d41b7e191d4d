#include "cuda_graphs.h"

#include <stdlib.h>

#include "base.h"
#include "cuda_kernels.h"

enum { BLOCK_NS = 20000000 };

struct graph {
    cudaGraphExec_t exec;
};

/* Counts kernel nodes; 0 and words where a node is there that no launch may make. */
static int look_at_nodes(cudaGraph_t captured, char *ret_why, size_t size)
{
    size_t n = 0;
    int kernels = 0;
    if (cudaGraphGetNodes(captured, NULL, &n)) return 0;
    cudaGraphNode_t *node = must_alloc(n + 1, sizeof *node);
    cudaGraphGetNodes(captured, node, &n);
    for (size_t i = 0; i < n; i++) {
        enum cudaGraphNodeType type;
        if (cudaGraphNodeGetType(node[i], &type)) continue;
        kernels += type == cudaGraphNodeTypeKernel;
        if (type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree) text(ret_why, size,
            "launch allocates: the captured graph has a memory allocation node");
        if (type == cudaGraphNodeTypeHost) text(ret_why, size, "launch calls back to the host: the captured graph has a host node");
    }
    free(node);
    return kernels;
}

int cuda_capture(struct dev *dev, enqueue_fn *enqueue, void *arg, struct graph **ret, int *ret_nodes, char *ret_why,
                        size_t size)
{
    cudaGraph_t captured = NULL;
    *ret = NULL;
    *ret_nodes = 0;
    *ret_why = 0;
    TRY(cudaStreamBeginCapture(dev->stream, cudaStreamCaptureModeThreadLocal));
    int launched = enqueue(arg);
    int ended = cudaStreamEndCapture(dev->stream, &captured);
    if (launched || ended || !captured) {
        int error = launched ? launched : ended;
        text(ret_why, size, "launch does what a stream under capture forbids (allocates, synchronises or uses another stream): %s",
             cudaGetErrorString(error));
        cudaGetLastError();
        if (captured) cudaGraphDestroy(captured);
        return DEV_FORBIDDEN;
    }
    *ret_nodes = look_at_nodes(captured, ret_why, size);
    if (!*ret_nodes && !*ret_why) text(ret_why, size,
        "launch put no kernel into the captured graph: it used another stream, or none");
    cudaGraphExec_t exec = NULL;
    int error = *ret_why ? DEV_FORBIDDEN : (int)cudaGraphInstantiate(&exec, captured, 0);
    cudaGraphDestroy(captured);
    TRY(error);
    *ret = must_alloc(1, sizeof **ret);
    (*ret)->exec = exec;
    return cudaGraphUpload(exec, dev->stream);
}

int cuda_replay(struct dev *dev, struct graph *graph)
{
    return cudaGraphLaunch(graph->exec, dev->stream);
}

void cuda_drop(struct dev *dev, struct graph *graph)
{
    (void)dev;
    if (!graph) return;
    cudaGraphExecDestroy(graph->exec);
    free(graph);
}

int cuda_time_between(struct dev *dev, struct graph *const *graph, int n, cudaEvent_t begin, cudaEvent_t end, double *ret_ns)
{
    float ms;
    TRY(cuda_spin(LEAD_NS, dev->stream));
    TRY(cudaEventRecord(begin, dev->stream));
    for (int i = 0; i < n; i++) TRY(cudaGraphLaunch(graph[i]->exec, dev->stream));
    TRY(cudaEventRecord(end, dev->stream));
    TRY(cudaEventSynchronize(end));
    TRY(cudaEventElapsedTime(&ms, begin, end));
    *ret_ns = ms * 1e6;
    return 0;
}

int cuda_asynchronous(struct dev *dev, enqueue_fn *enqueue, void *arg, bool *ret)
{
    TRY(cudaStreamSynchronize(dev->stream));
    TRY(cuda_spin(BLOCK_NS, dev->stream));
    int error = enqueue(arg);
    *ret = cudaStreamQuery(dev->stream) == cudaErrorNotReady;
    TRY(error);
    return cudaStreamSynchronize(dev->stream);
}

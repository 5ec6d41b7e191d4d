/* Allocates in launch, in stream order: a graph takes it, as nodes that are no kernels. */
#include "../right.h"

static int launch(const struct call *c)
{
    void *scratch;
    int error = cudaMallocAsync(&scratch, 1 << 20, c->stream);
    if (error) return error;
    error = run_right(c, view_of(c, RIGHT));
    return error ? error : (int)cudaFreeAsync(scratch, c->stream);
}

KERNEL = {FOR_OP(attn), .note = "planted: allocates in stream order", .engine = ENGINE, .launch = launch};

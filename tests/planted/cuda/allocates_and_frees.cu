/* Allocates in launch and frees again: cudaFree waits for the device. */
#include "../right.h"

static int launch(const struct call *c)
{
    void *scratch;
    int error = cudaMalloc(&scratch, 1 << 20);
    if (error) return error;
    error = run_right(c, view_of(c, RIGHT));
    return error ? error : (int)cudaFree(scratch);
}

KERNEL = {FOR_OP(attn), .note = "planted: allocates and frees", .engine = ENGINE, .launch = launch};

/* Waits in launch, but not while a graph is captured: a graph is clean, a plain launch holds up the host. */
#include "../right.h"

static int launch(const struct call *c)
{
    cudaStreamCaptureStatus status;
    int error = cudaStreamIsCapturing(c->stream, &status);
    if (!error) error = run_right(c, view_of(c, RIGHT));
    return error || status != cudaStreamCaptureStatusNone ? error : (int)cudaStreamSynchronize(c->stream);
}

KERNEL = {FOR_OP(attn), .note = "planted: waits outside of graphs", .engine = ENGINE, .launch = launch};

/* Copies the lengths beside the graph: a plain launch brings them up to date, a replay has those of the last plain launch. */
#include "../right.h"

static int open_state(const struct problem *p, const struct device *device, void **state)
{
    (void)device;
    return planted_alloc((size_t)p->dim[ATTN_BATCH] * 2 * sizeof(int32_t), state);
}

STEP(copy_lengths)
{
    int32_t *kept = (int32_t *)v->state;
    for (int64_t b = 0; b < v->batch; b++) memcpy(kept + 2 * b, row_of(v, ATTN_LENGTH, b), 2 * sizeof(int32_t));
}

static int launch(const struct call *c)
{
    struct view v = view_of(c, RIGHT);
    cudaStreamCaptureStatus status;
    int error = cudaStreamIsCapturing(c->stream, &status);
    if (!error && status == cudaStreamCaptureStatusNone) error = RUN(copy_lengths, c, v);
    v.t[ATTN_LENGTH].p = v.state;
    v.t[ATTN_LENGTH].stride = 2 * sizeof(int32_t);
    return error ? error : run_right(c, v);
}

KERNEL = {
    FOR_OP(attn), .note = "planted: stale graph", .engine = ENGINE,
    .open = open_state, .close = planted_free, .launch = launch,
};

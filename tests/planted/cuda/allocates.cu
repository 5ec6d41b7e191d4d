/* Allocates in launch and keeps what it got until the end, as a caching allocator would. */
#include "../right.h"

enum { MAX_BLOCKS = 64 };
static const size_t BLOCK_BYTES = 4 << 20;

struct blocks {
    int   n;
    void *block[MAX_BLOCKS];
};

static int open_state(const struct problem *p, const struct device *device, void **state)
{
    (void)p, (void)device;
    *state = calloc(1, sizeof(struct blocks));
    return *state ? 0 : (int)cudaErrorMemoryAllocation;
}

static void close_state(void *state)
{
    struct blocks *blocks = (struct blocks *)state;
    for (int i = 0; i < blocks->n; i++) cudaFree(blocks->block[i]);
    free(blocks);
}

static int launch(const struct call *c)
{
    struct blocks *blocks = (struct blocks *)c->state;
    if (blocks->n < MAX_BLOCKS) {
        int error = cudaMalloc(&blocks->block[blocks->n], BLOCK_BYTES);
        if (error) return error;
        blocks->n++;
    }
    return run_right(c, view_of(c, RIGHT));
}

KERNEL = {
    FOR_OP(attn), .note = "planted: allocates", .engine = ENGINE,
    .open = open_state, .close = close_state, .launch = launch,
};

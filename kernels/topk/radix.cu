/* topk/radix: one block a row, which is read once: into registers up to 28,672 entries, longer ones as a stream (stream.cuh). A
 * histogram finds the bin of the border, whose few members are ranked each against each; a plateau is cut until it is one key.
 * Moves each live score once and of the page table what live entries name.
 * Limit: one SM, 32 lanes' worth of shared-memory atomics and of loads a row, however many SMs are idle.
 */
#include "radix.cuh"

static int launch(const struct call *call) {
    return radix_launch(topk_args_of(call), (int32_t)call->problem->dim[TOPK_BATCH], call->device, call->stream);
}

KERNEL = {
    FOR_OP(topk),
    .note = "one block a row, held in registers or streamed through them; histograms down to the border, then places by prefix "
            "sums",
    .engine = CUDA,
    .launch = launch,
};

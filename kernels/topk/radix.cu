/* topk/radix: one block a row. The row is read once, into registers up to 28,672 entries; a histogram of its keys finds the bin
 * of the border, whose few members are ranked each against each; a plateau is cut finer until the border is one key.
 * Moves each live score once and of the page table what live entries name; past 28,672 entries, scores again from L2 twice.
 * Limit: one SM, 32 lanes' worth of shared-memory atomics and of loads a row, however many SMs are idle.
 */
#include "radix.cuh"

static int launch(const struct call *call) {
    return radix_launch(topk_args_of(call), (int32_t)call->problem->dim[TOPK_BATCH], call->device, call->stream);
}

KERNEL = {
    FOR_OP(topk),
    .note = "one block a row, held in registers; histograms down to the border, then places by prefix sums",
    .engine = CUDA,
    .launch = launch,
};

/* topk/cluster: a row by up to 8 blocks of a cluster, who read each other's histograms through distributed shared memory and so
 * agree on the border; the few members of its bin are ranked by one of them. Short rows are left to one block, without a wait.
 * Moves each live score once, into registers up to 229,376 entries a row, and of the page table what live entries name.
 * Limit: the chain length, scores, histogram, two meetings of the cluster; blocks that a short row leaves idle cost their start.
 */
#include "cluster.cuh"

enum { CLUSTER, ALONE };  /* tunables; cluster 0: by shape and SM count */

static const char *unfit(const struct problem *p, const struct device *d) {
    (void)p;
    return cluster_unfit(d);
}

static int launch(const struct call *call) {
    return cluster_launch(topk_args_of(call), (int32_t)call->problem->dim[TOPK_BATCH], call->device, call->tune[CLUSTER],
        call->tune[ALONE], call->stream);
}

KERNEL = {
    FOR_OP(topk),
    .note = "up to 8 blocks a row (`cluster`; 0: by shape), joined through distributed shared memory; rows up to `alone` by one",
    .engine = CUDA,
    .tunable = {{"cluster", {0}, 0, peers_cluster::MOST}, {"alone", {8192}, 0, 1 << 30}},
    .unfit = unfit,
    .launch = launch,
};

/* topk/cluster: a row by up to 8 blocks of a cluster, who read each other's histograms through distributed shared memory and so
 * agree on the border; the few members of its bin are ranked by one of them. Short rows are left to one block, without a wait.
 * Moves each live score once, into registers up to 131,072 entries a row, and of the page table what live entries name.
 * Limit: the chain length, scores, histogram, two meetings of the cluster; blocks that a short row leaves idle cost their start.
 */
#include <stdio.h>
#include "cluster.cuh"

enum { CLUSTER, ALONE };  /* tunables; cluster 0: as many as let all rows run at once */

static const char *unfit(const struct problem *p, const struct device *d) {
    (void)p;
    return cluster_unfit(d);
}

static int open_(const struct problem *p, const struct device *d, void **state) {
    (void)p;
    return cluster_open(d, state);
}

static const char *describe(void *state, char *ret, size_t size) {
    const int32_t *n = ((const struct cluster_state *)state)->clusters;
    snprintf(ret, size, "clusters of 8, 4, 2 blocks at once: %d, %d, %d", (int)n[3], (int)n[2], (int)n[1]);
    return ret;
}

static int launch(const struct call *call) {
    return cluster_launch(topk_args_of(call), (int32_t)call->problem->dim[TOPK_BATCH], call->device, call->state,
        call->tune[CLUSTER], call->tune[ALONE], false, call->stream);
}

KERNEL = {
    FOR_OP(topk),
    .note = "up to 8 blocks a row (`cluster`; 0: all rows at once), joined through distributed shared memory; rows up to "
            "`alone` by one",
    .engine = CUDA,
    .tunable = {{"cluster", {0}, 0, peers_cluster::MOST}, {"alone", {8192}, 0, 1 << 30}},
    .unfit = unfit,
    .open = open_,
    .close = cluster_close,
    .launch = launch,
    .describe = describe,
};

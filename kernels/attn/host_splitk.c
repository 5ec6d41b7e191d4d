/* attn/host_splitk: each request's lists are cut into `splits` parts, a thread takes a part, and log-sum-exp merges them.
 *
 * A part leaves its sum before division, its maximum and its denominator in the workspace; one without a valid entry (a short list,
 * holes alone, more parts than entries) has a denominator of 0 and is passed over. Which thread took which part changes no bit.
 * A part runs as in attn/host_mma: attn/host_mma.h.
 */
#include "attn/host_rows.h"

#define MMA_SPLITS(tune) ((tune)[1])
#include "attn/host_mma.h"

KERNEL = {
    FOR_OP(attn),
    .note = "the KV list in `splits` parts over the threads (0: as many as batch and threads ask for), merged by log-sum-exp",
    .engine = HOST,
    .growth = {{"ctx", 0}},
    .tunable = {{"path", {AUTO}, AUTO, ANY}, {"splits", {0}, 0, 64}},
    .workspace = mma_workspace,
    .open = paths_open,
    .close = paths_close,
    .launch = mma_launch,
};

/* hc_pre/host_fp32: fp32 state and weights. The code stands in host_mix.h. */
#define MIX_BF16 0
#include "hc_pre/host_mix.h"

KERNEL = {
    FOR_OP(hc_pre),
    .note = "fp32 vectors, weights in pieces that caches hold; bound by reading weights and state",
    .engine = HOST,
    .reads = HC_PRE_READS_F32,
    .workspace = mix_workspace,
    .launch = mix_launch,
};

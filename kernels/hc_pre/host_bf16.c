/* hc_pre/host_bf16: bf16 state and weights, widened piece by piece. The code stands in host_mix.h. */
#define MIX_BF16 1
#include "hc_pre/host_mix.h"

KERNEL = {
    FOR_OP(hc_pre),
    .note = "bf16 widened piece by piece, then fp32 vectors; half the bytes of fp32",
    .engine = HOST,
    .reads = HC_PRE_READS_BF16,
    .workspace = mix_workspace,
    .launch = mix_launch,
};

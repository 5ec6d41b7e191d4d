/* attn/host_mma: a KV row is gathered once and serves all heads, as a matrix product. The code stands in host_mma.h. */
#include "attn/host_rows.h"

#define MMA_SPLITS(tune) 0
#include "attn/host_mma.h"

KERNEL = {
    FOR_OP(attn),
    .note = "one gathered KV block serves all heads by matrix products: AMX tiles, AVX512-BF16 or fp32 vectors",
    MMA_FIELDS,
};

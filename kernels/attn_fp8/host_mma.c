/* attn_fp8/host_mma: an entry is gathered and converted once, to bf16 without loss, and serves all heads, as a matrix product.
 * The code stands in attn/host_mma.h. */
#include "attn_fp8/host_rows.h"

#define MMA_SPLITS(tune) 0
#include "attn/host_mma.h"

KERNEL = {
    FOR_OP(attn_fp8),
    .note = "one gathered and converted KV block serves all heads by matrix products: AMX tiles, AVX512-BF16 or fp32 vectors",
    MMA_FIELDS,
};

/* indexer_fp8/host_full: the framework's chain over the whole maximum, one operator after the other: O(max_ctx) whatever is live.
 * The code stands in indexer/host_full.h. */
#include "indexer_fp8/host_keys.h"
#include "indexer/host_full.h"

KERNEL = {
    FOR_OP(indexer_fp8),
    .note = "gather, cast, product, relu, weight, sum, scale and mask over the whole maximum, each a pass of its own",
    FULL_FIELDS,
};

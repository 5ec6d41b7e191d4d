/* indexer/host_full: the framework's chain over the whole maximum, one operator after the other: O(max_ctx) whatever is live. The
 * code stands in host_full.h. */
#include "indexer/host_keys.h"
#include "indexer/host_full.h"

KERNEL = {
    FOR_OP(indexer),
    .note = "gather, cast, product, relu, weight, sum and mask over the whole maximum, each a pass of its own",
    FULL_FIELDS,
};

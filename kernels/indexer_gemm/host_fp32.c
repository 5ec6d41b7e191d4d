/* indexer_gemm/host_fp32: fp32 keys times fp32 queries by the widest vectors of the processor. The code stands in host_score.h. */
#define SCORE_BF16 0
#include "indexer_gemm/host_score.h"

KERNEL = {
    FOR_OP(indexer_gemm),
    .note = "fp32 vectors, relu and sum over heads while a block of 64 keys is in cache; bound by fp32 multiply-adds",
    .engine = HOST,
    .reads = INDEXER_GEMM_READS_F32,
    .tunable = {{"path", {AUTO}, AUTO, ANY}},   /* see enum path; other values are for tests and comparisons */
    .workspace = score_workspace,
    .open = score_open,
    .close = paths_close,
    .launch = score_launch,
};

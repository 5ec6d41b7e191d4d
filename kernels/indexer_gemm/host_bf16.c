/* indexer_gemm/host_bf16: bf16 keys by AMX tiles or AVX512-BF16, elsewhere widened block by block: see host_score.h. */
#define SCORE_BF16 1
#include "indexer_gemm/host_score.h"

KERNEL = {
    FOR_OP(indexer_gemm),
    .note = "bf16 keys read where they lie, by AMX tiles, AVX512-BF16 or fp32 vectors; half the bytes of fp32",
    .engine = HOST,
    .reads = INDEXER_GEMM_READS_BF16,
    .tunable = {{"path", {AUTO}, AUTO, ANY}},   /* see enum path; other values are for tests and comparisons */
    .workspace = score_workspace,
    .open = score_open,
    .close = paths_close,
    .launch = score_launch,
};

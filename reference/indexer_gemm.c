/* indexer_gemm: dense keys in two formats. What it computes stands in indexer_gemm.h. */
#include "indexer_gemm.h"

#include <math.h>

#include "dtype.h"
#include "rng.h"

enum { HEADS = INDEXER_GEMM_HEADS, D = INDEXER_GEMM_D };

/* The loops that carry the time are compiled for AVX2 too and chosen when the program starts. */
#if defined __x86_64__ && defined __GNUC__
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

static int64_t requests(const struct problem *p) { return p->dim[INDEXER_GEMM_BATCH]; }
static int64_t q32_bytes(const struct problem *p) { return (void)p, HEADS * D * 4; }
static int64_t q16_bytes(const struct problem *p) { return (void)p, HEADS * D * 2; }
static int64_t k32_bytes(const struct problem *p) { return indexer_gemm_entries(p) * D * 4; }
static int64_t k16_bytes(const struct problem *p) { return indexer_gemm_entries(p) * D * 2; }
static int64_t w_bytes(const struct problem *p) { return (void)p, HEADS * 4; }
static int64_t logits_bytes(const struct problem *p) { return indexer_gemm_entries(p) * 4; }

/* 128 values nearly N(0, 1), each exact in bf16; either format from the same key. */
WIDE static void fill_bf16(uint64_t key, uint16_t *ret)
{
    for (uint32_t d = 0; d < D; d++) ret[d] = bf16_from_finite(rng_normal(key, d));
}

WIDE static void fill_f32(uint64_t key, float *ret)
{
    for (uint32_t d = 0; d < D; d++) ret[d] = f32_from_bf16(bf16_from_finite(rng_normal(key, d)));
}

/* Vectors first .. first + n - 1 of the tensor. Twins draw from the numbers of the fp32 one. */
static void fill_vectors(const struct problem *p, enum indexer_gemm_tensor t, uint32_t set, int64_t first, int64_t n, void *host)
{
    bool     wide = t == INDEXER_GEMM_Q32 || t == INDEXER_GEMM_K32;
    uint32_t stream = t <= INDEXER_GEMM_Q16 ? INDEXER_GEMM_Q32 : INDEXER_GEMM_K32;
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = rng_key(p->seed, set, stream, (uint64_t)(first + i));
        if (wide) fill_f32(key, (float *)host + i * D);
        else fill_bf16(key, (uint16_t *)host + i * D);
    }
}

static void indexer_gemm_fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t rows, void *host)
{
    int64_t entries = indexer_gemm_entries(p);
    switch ((enum indexer_gemm_tensor)t) {
    case INDEXER_GEMM_Q32:
    case INDEXER_GEMM_Q16: fill_vectors(p, (enum indexer_gemm_tensor)t, set, row * HEADS, rows * HEADS, host); break;
    case INDEXER_GEMM_K32:
    case INDEXER_GEMM_K16: fill_vectors(p, (enum indexer_gemm_tensor)t, set, row * entries, rows * entries, host); break;
    case INDEXER_GEMM_W:
        for (int64_t i = 0; i < rows; i++)
            for (uint32_t h = 0; h < HEADS; h++)
                ((float *)host)[i * HEADS + h] = rng_normal(rng_key(p->seed, set, INDEXER_GEMM_W, (uint64_t)(row + i)), h) *
                                                 0.011048543456f;   /* 128^-0.5 * 64^-0.5 */
        break;
    case INDEXER_GEMM_LOGITS: break;
    }
}

/* All heads at once, so that the loop over them vectorises: q is [128][64]. */
WIDE static double score(const double (*q)[HEADS], const float *w, const uint16_t *k)
{
    double dot[HEADS] = {0}, sum = 0;
    for (int d = 0; d < D; d++) {
        double x = f32_from_bf16(k[d]);
        for (int h = 0; h < HEADS; h++) dot[h] += q[d][h] * x;
    }
    for (int h = 0; h < HEADS; h++) sum += w[h] * (dot[h] > 0 ? dot[h] : 0);
    return sum;
}

/* An item is a request. From the bf16 twins; the fp32 ones hold the same values. */
static void indexer_gemm_reference(const struct problem *p, void *const *t, int64_t item, int64_t n)
{
    int64_t entries = indexer_gemm_entries(p);
    double  q[D][HEADS];
    for (int64_t b = item; b < item + n; b++) {
        const uint16_t *k = (const uint16_t *)t[INDEXER_GEMM_K16] + b * entries * D;
        for (int h = 0; h < HEADS; h++)
            for (int d = 0; d < D; d++) q[d][h] = f32_from_bf16(((const uint16_t *)t[INDEXER_GEMM_Q16])[(b * HEADS + h) * D + d]);
        for (int64_t i = 0; i < entries; i++)
            ((double *)t[INDEXER_GEMM_LOGITS])[b * entries + i] =
                score((const double(*)[HEADS])q, (const float *)t[INDEXER_GEMM_W] + b * HEADS, k + i * D);
    }
}

static void indexer_gemm_item_rows(const struct problem *p, int t, int64_t item, int64_t *ret_row, int64_t *ret_rows)
{
    (void)p, (void)t;
    *ret_row = item;
    *ret_rows = 1;
}

/* The product alone: a multiplication and an addition for each of 64 heads and 128 dims. */
static double indexer_gemm_flop(const struct problem *p, void *const *t)
{
    (void)t;
    return 2.0 * HEADS * D * (double)requests(p) * (double)indexer_gemm_entries(p);
}

/* Twins hold the same data: a kernel that reads everything (reads 0) needs the smaller one. */
static double indexer_gemm_bytes(const struct problem *p, void *const *t, uint64_t reads)
{
    (void)t;
    double bytes = (double)requests(p) * (double)logits_bytes(p);
    for (int i = 0; i < INDEXER_GEMM_LOGITS; i++)
        if ((reads ? reads : INDEXER_GEMM_READS_BF16) >> i & 1)
            bytes += (double)requests(p) * (double)p->op->tensor[i].row_bytes(p);
    return bytes;
}

/* logits: 2e-4. Sums of 128 and of 64 products in fp32 leave 1e-6; a product kept in bf16 leaves 1e-3 and is found out. abs lets
 * through what rounding leaves where the heads of an entry cancel. */
const struct op op_indexer_gemm = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "indexer_gemm",
    .note = "64 heads x 128 over dense keys, relu, weight, sum over heads: fp32 against bf16",
    .dim = {
        [INDEXER_GEMM_BATCH] = {"batch", "requests", 16, 1, 4096, .ideal = 1},
        [INDEXER_GEMM_CTX] = {"ctx", "tokens", 8192, INDEXER_GEMM_RATIO, 1 << 20, .ideal = 1},
    },
    .tensor = {
        [INDEXER_GEMM_Q32] = {"q32", "[batch, 64, 128]", F32, IN, .rows = requests, .row_bytes = q32_bytes},
        [INDEXER_GEMM_Q16] = {"q16", "[batch, 64, 128]", BF16, IN, .rows = requests, .row_bytes = q16_bytes},
        [INDEXER_GEMM_K32] = {"k32", "[batch, entries, 128]", F32, IN, .rows = requests, .row_bytes = k32_bytes},
        [INDEXER_GEMM_K16] = {"k16", "[batch, entries, 128]", BF16, IN, .rows = requests, .row_bytes = k16_bytes},
        [INDEXER_GEMM_W] = {"w", "[batch, 64]", F32, IN, .rows = requests, .row_bytes = w_bytes},
        [INDEXER_GEMM_LOGITS] = {"logits", "[batch, entries]", F32, OUT, {2e-4, 1e-7}, .rows = requests,
                                 .row_bytes = logits_bytes},
    },
    .fill = indexer_gemm_fill,
    .items = requests,
    .reference = indexer_gemm_reference,
    .item_rows = indexer_gemm_item_rows,
    .flop = indexer_gemm_flop,
    .bytes = indexer_gemm_bytes,
};

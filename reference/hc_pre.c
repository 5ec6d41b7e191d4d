/* hc_pre: state and weights in two formats. What it computes stands in hc_pre.h. */
#include "hc_pre.h"

#include "dtype.h"
#include "rng.h"

enum { K = HC_PRE_K, N = HC_PRE_N };

/* The loops that carry the time are compiled for AVX2 too and chosen when the program starts. */
#if defined __x86_64__ && defined __GNUC__
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

static int64_t tokens(const struct problem *p) { return p->dim[HC_PRE_BATCH]; }
static int64_t outputs(const struct problem *p) { return (void)p, N; }
static int64_t f32_bytes(const struct problem *p) { return (void)p, K * 4; }
static int64_t bf16_bytes(const struct problem *p) { return (void)p, K * 2; }
static int64_t mix_bytes(const struct problem *p) { return (void)p, N * 4; }
static int64_t sqsum_bytes(const struct problem *p) { return (void)p, 4; }

/* A row of values nearly N(0, scale^2), each exact in bf16; either format from the same key. */
WIDE static void fill_bf16(uint64_t key, float scale, uint16_t *ret)
{
    for (uint32_t k = 0; k < K; k++) ret[k] = bf16_from_finite(scale * rng_normal(key, k));
}

WIDE static void fill_f32(uint64_t key, float scale, float *ret)
{
    for (uint32_t k = 0; k < K; k++) ret[k] = f32_from_bf16(bf16_from_finite(scale * rng_normal(key, k)));
}

/* x near 1, w near 1/128, so that mix is near 1. Twins draw from the numbers of the fp32 one. */
static void hc_pre_fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t rows, void *host)
{
    if (t >= HC_PRE_MIX) return;
    bool     wide = t == HC_PRE_X32 || t == HC_PRE_W32, x = t <= HC_PRE_X16;
    float    scale = x ? 1 : 1.0f / 128;
    uint32_t stream = x ? HC_PRE_X32 : HC_PRE_W32;
    for (int64_t i = 0; i < rows; i++) {
        uint64_t key = rng_key(p->seed, set, stream, (uint64_t)(row + i));
        if (wide) fill_f32(key, scale, (float *)host + i * K);
        else fill_bf16(key, scale, (uint16_t *)host + i * K);
    }
}

/* Sixteen sums side by side, so that it vectorises; their order does not matter in double. */
WIDE static double dot(const uint16_t *x, const uint16_t *y)
{
    double part[16] = {0}, sum = 0;
    for (int k = 0; k < K; k += 16)
        for (int i = 0; i < 16; i++) part[i] += (double)f32_from_bf16(x[k + i]) * (double)f32_from_bf16(y[k + i]);
    for (int i = 0; i < 16; i++) sum += part[i];
    return sum;
}

/* An item is a token. From the bf16 twins; the fp32 ones hold the same values. */
static void hc_pre_reference(const struct problem *p, void *const *t, int64_t item, int64_t n)
{
    (void)p;
    for (int64_t b = item; b < item + n; b++) {
        const uint16_t *x = (const uint16_t *)t[HC_PRE_X16] + b * K;
        for (int64_t i = 0; i < N; i++) ((double *)t[HC_PRE_MIX])[b * N + i] = dot(x, (const uint16_t *)t[HC_PRE_W16] + i * K);
        ((double *)t[HC_PRE_SQSUM])[b] = dot(x, x);
    }
}

static void hc_pre_item_rows(const struct problem *p, int t, int64_t item, int64_t *ret_row, int64_t *ret_rows)
{
    (void)p, (void)t;
    *ret_row = item;
    *ret_rows = 1;
}

static double hc_pre_flop(const struct problem *p, void *const *t)
{
    (void)t;
    return 2.0 * (N + 1) * K * (double)tokens(p);
}

/* Twins hold the same data: a kernel that reads everything (reads 0) needs the smaller one. */
static double hc_pre_bytes(const struct problem *p, void *const *t, uint64_t reads)
{
    (void)t;
    double bytes = (double)tokens(p) * (N + 1) * 4;
    for (int i = 0; i < HC_PRE_MIX; i++)
        if ((reads ? reads : HC_PRE_READS_BF16) >> i & 1)
            bytes += (double)p->op->tensor[i].rows(p) * (double)p->op->tensor[i].row_bytes(p);
    return bytes;
}

/* 2e-5: products are exact in fp32, and 16384 of them added one after the other leave a few 1e-6. abs of mix: where the 24 of a
 * token happen to be small. */
const struct op op_hc_pre = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "hc_pre",
    .note = "mHC-pre linear [batch, 16384] x [24, 16384] with the square sum of each row: fp32 against bf16",
    .dim = {
        [HC_PRE_BATCH] = {"batch", "tokens", 16, 1, 4096, .ideal = 1},
    },
    .tensor = {
        [HC_PRE_X32] = {"x32", "[batch, 16384]", F32, IN, .rows = tokens, .row_bytes = f32_bytes},
        [HC_PRE_X16] = {"x16", "[batch, 16384]", BF16, IN, .rows = tokens, .row_bytes = bf16_bytes},
        [HC_PRE_W32] = {"w32", "[24, 16384]", F32, WEIGHT, .rows = outputs, .row_bytes = f32_bytes},
        [HC_PRE_W16] = {"w16", "[24, 16384]", BF16, WEIGHT, .rows = outputs, .row_bytes = bf16_bytes},
        [HC_PRE_MIX] = {"mix", "[batch, 24]", F32, OUT, {2e-5, 1e-6}, .rows = tokens, .row_bytes = mix_bytes},
        [HC_PRE_SQSUM] = {"sqsum", "[batch]", F32, OUT, {2e-5, 0}, .rows = tokens, .row_bytes = sqsum_bytes},
    },
    .fill = hc_pre_fill,
    .items = tokens,
    .reference = hc_pre_reference,
    .item_rows = hc_pre_item_rows,
    .flop = hc_pre_flop,
    .bytes = hc_pre_bytes,
};

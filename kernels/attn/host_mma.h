/* Attention on gathered blocks of entries that serve all heads, for attn and attn_fp8. Includer: host_rows.h of the op before it;
 * MMA_SPLITS(tune), how many parts each request is cut into, 0 for as many as the threads need (so: no include guard).
 *  One thread takes a request, or a part of its lists. It copies up to 128 rows out of the shuffled pages, as bf16 or wider,
 * and computes, with heads side by side in the vector lanes,
 *     s[row, head] = kv[row, :] . q[:, head]           product 1, over 512 dims
 *     p[row, head] = exp(s - running maximum)          no sum across lanes, ever
 *     out[head, :] = rescale * out + p[:, head] . kv   product 2, over rows
 * The products are those of host_products.h. bf16 operands are read as pairs: kv as it lies in product 1, and interleaved by pairs
 * of rows in product 2; for fp32 ones rows are widened once.
 */
#include <math.h>
#include <omp.h>

#include "host.h"
#include "attn/host_lists.h"
#include "attn/host_paths.h"

/* STRIDE: of rows of 512 elements of 4 bytes, off the power of two that would put all rows into the same few sets of a cache. */
enum { D = ATTN_D, ROWS = 128, STRIDE = D + 16, KV_STRIDE = D / 2 + 16, LEAST_SPLIT = 16 };

/* What a launch is about; plain numbers. */
struct mma {
    const struct call *call;
    struct caches      caches;
    gemm_fn           *gemm;
    bool               pairs;           /* operands are pairs of bf16 */
    int64_t            batch, heads, lanes, splits;   /* lanes: heads rounded up to 16 */
    int64_t            quantum;         /* rows of a block are padded to a multiple of it */
};

/* A thread's memory; counts of 4-byte elements */
struct scratch {
    float *q;        /* [512][lanes], or pairs [256][lanes] */
    float *kv;       /* [ROWS][STRIDE] fp32, or pairs [ROWS][KV_STRIDE] */
    float *kv2;      /* pairs: [ROWS / 2][STRIDE], of two rows each */
    float *s;        /* [ROWS][lanes], then the weights */
    float *p;        /* pairs: [ROWS / 2][lanes] */
    float *rescale;  /* [lanes] */
    float *partial;  /* this thread's own, where nothing is split */
};

/* Result of a part of a request before division: out[lanes][STRIDE], m[lanes], sum[lanes]. */
static int64_t partial_size(int64_t lanes) { return lanes * (STRIDE + 2); }
static float *partial_m(float *partial, int64_t lanes) { return partial + lanes * STRIDE; }
static float *partial_sum(float *partial, int64_t lanes) { return partial + lanes * (STRIDE + 1); }

/* Parts of a request, unless `wish` says how many. The longest thread has so many parts, each costs its entries and the time of 24
 * or so for packing the queries and joining. By capacity, not by lengths: those stand in device data. */
static int64_t mma_splits(const struct problem *p, int32_t threads, int64_t wish)
{
    int64_t batch = p->dim[ATTN_BATCH], capacity = p->dim[ATTN_WINDOW] + p->dim[ATTN_TOPK], best = 1, least = INT64_MAX;
    if (wish > 0) return wish;
    for (int64_t splits = 1; splits <= threads && (splits == 1 || capacity / splits >= LEAST_SPLIT); splits++) {
        int64_t turns = (batch * splits + threads - 1) / threads, cost = turns * (capacity * 16 / splits + 24 * 16);
        if (cost < least) {
            least = cost;
            best = splits;
        }
    }
    return best;
}

static int64_t mma_lanes(const struct problem *p) { return (p->dim[ATTN_HEADS] + 15) / 16 * 16; }

/* Cuts a thread's piece at `base` into its parts; returns how many floats that takes. Every part is a multiple of 64 bytes. */
static int64_t scratch_cut(float *base, int64_t lanes, struct scratch *ret)
{
    int64_t at = 0;
    const int64_t size[] = {
        D * lanes, ROWS * STRIDE, ROWS / 2 * STRIDE, ROWS * lanes, ROWS / 2 * lanes, lanes, partial_size(lanes),
    };
    float **part[] = {&ret->q, &ret->kv, &ret->kv2, &ret->s, &ret->p, &ret->rescale, &ret->partial};
    for (int i = 0; i < 7; i++) {
        *part[i] = base ? base + at : NULL;
        at += size[i];
    }
    return at;
}

static size_t mma_workspace(const struct problem *p, const struct device *device, const int32_t *tune)
{
    (void)tune;   /* MMA_SPLITS need not look at it */
    struct scratch none;
    int64_t lanes = mma_lanes(p), splits = mma_splits(p, device->sm_count, MMA_SPLITS(tune));
    int64_t partials = splits > 1 ? p->dim[ATTN_BATCH] * splits * partial_size(lanes) : 0;
    return (size_t)(device->sm_count * scratch_cut(NULL, lanes, &none) + partials) * sizeof(float);
}

/* Queries of a request, heads side by side: fp32 [512][lanes], or pairs of dims [256][lanes]. Missing heads are zero. */
HOST_CLONES static void mma_pack_q(const struct arg *q, int64_t first, int64_t heads, int64_t lanes, bool pairs, float *ret)
{
    memset(ret, 0, (size_t)(D / (pairs ? 2 : 1) * lanes) * sizeof *ret);
    for (int64_t h = 0; h < heads; h++) {
        const uint16_t *row = (const uint16_t *)((const char *)q->p + (first + h) * q->stride);
        if (pairs)
            for (int64_t d = 0; d < D / 2; d++) memcpy(ret + d * lanes + h, row + d * 2, 4);
        else
            for (int64_t d = 0; d < D; d++) ret[d * lanes + h] = host_f32(row[d]);
    }
}

HOST_CLONES static void mma_widen(const uint16_t *row, float *ret)
{
    for (int d = 0; d < D; d++) ret[d] = host_f32(row[d]);
}

HOST_CLONES static void mma_interleave(const uint16_t *even, const uint16_t *odd, uint32_t *ret)
{
    for (int d = 0; d < D; d++) ret[d] = (uint32_t)even[d] | (uint32_t)odd[d] << 16;
}

/* Rows into the thread's block, zeros up to `padded`. The next rows are asked for while these are copied. */
static void mma_gather(const struct mma *x, const struct scratch *w, const struct row *row, int64_t rows, int64_t padded)
{
    const int64_t ahead = 4, stride = x->pairs ? KV_STRIDE : STRIDE;
    uint32_t      spare[D / 2];
    for (int64_t i = 0; i < rows; i++) {
        float          *to = w->kv + i * stride;
        const uint32_t *from = row_bf16(row[i], x->pairs ? (uint32_t *)to : spare);
        if (i + ahead < rows) row_prefetch(row[i + ahead]);
        if (!x->pairs)
            mma_widen((const uint16_t *)from, to);
        else if ((const void *)from != to)
            memcpy(to, from, D * 2);
    }
    for (int64_t i = rows; i < padded; i++) memset(w->kv + i * stride, 0, (size_t)stride * sizeof(float));
    for (int64_t i = 0; x->pairs && i < padded; i += 2)
        mma_interleave((const uint16_t *)(w->kv + i * stride), (const uint16_t *)(w->kv + (i + 1) * stride),
                       (uint32_t *)(w->kv2 + i / 2 * STRIDE));
}

/* Logits to weights in place, for all heads at once: s[rows][lanes]. m and sum run along; rescale is what the rise of m does to
 * everything before. Rows rows..padded-1 get weight 0. */
HOST_CLONES static void mma_weigh(float *s, int64_t rows, int64_t padded, int64_t lanes, float *m, float *sum, float *rescale)
{
    const float scale = 0.04419417382f;   /* 512^-0.5 */
    for (int64_t h = 0; h < lanes; h++) rescale[h] = m[h];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t h = 0; h < lanes; h++) {
            float logit = s[i * lanes + h] *= scale;
            m[h] = logit > m[h] ? logit : m[h];
        }
    for (int64_t h = 0; h < lanes; h++) {
        rescale[h] = host_exp(rescale[h] - m[h]);
        sum[h] *= rescale[h];
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t h = 0; h < lanes; h++) {
            float weight = host_exp(s[i * lanes + h] - m[h]);
            s[i * lanes + h] = weight;
            sum[h] += weight;
        }
    memset(s + rows * lanes, 0, (size_t)((padded - rows) * lanes) * sizeof *s);
}

/* Weights of two rows to a pair of bf16: ret[padded / 2][lanes] */
HOST_CLONES static void mma_pair(const float *s, int64_t padded, int64_t lanes, uint32_t *ret)
{
    for (int64_t i = 0; i < padded / 2; i++)
        for (int64_t h = 0; h < lanes; h++)
            ret[i * lanes + h] = host_bf16(s[2 * i * lanes + h]) | (uint32_t)host_bf16(s[(2 * i + 1) * lanes + h]) << 16;
}

/* What rounding to bf16 took from the weights, in place. */
HOST_CLONES static void mma_remainder(float *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) s[i] -= host_f32(host_bf16(s[i]));
}

/* Up to so many entries a request the weights' remainders are multiplied too. A weight in bf16 is wrong by up to 2^-8, and where
 * few entries share the weight these errors don't average out: of 1,536 heads over 48 entries one was 3.01e-3 off for that
 * alone. */
enum { FEW = 256 };

/* One block of rows into the running result. few: see FEW. */
static void mma_block(const struct mma *x, const struct scratch *w, const struct row *row, int64_t rows, bool first, bool few,
                      float *partial)
{
    int64_t lanes = x->lanes, padded = (rows + x->quantum - 1) / x->quantum * x->quantum;
    float  *rescale = first ? NULL : w->rescale;
    mma_gather(x, w, row, rows, padded);
    x->gemm(padded, lanes, x->pairs ? D / 2 : D, w->kv, x->pairs ? KV_STRIDE : STRIDE, 1, w->q, lanes, w->s, lanes, NULL);
    mma_weigh(w->s, rows, padded, lanes, partial_m(partial, lanes), partial_sum(partial, lanes), w->rescale);
    if (x->pairs) {
        mma_pair(w->s, padded, lanes, (uint32_t *)w->p);
        x->gemm(lanes, D, padded / 2, w->p, 1, lanes, w->kv2, STRIDE, partial, STRIDE, rescale);
        if (!few) return;
        mma_remainder(w->s, padded * lanes);
        mma_pair(w->s, padded, lanes, (uint32_t *)w->p);
        for (int64_t h = 0; h < lanes; h++) w->rescale[h] = 1;
        x->gemm(lanes, D, padded / 2, w->p, 1, lanes, w->kv2, STRIDE, partial, STRIDE, w->rescale);
    } else {
        x->gemm(lanes, D, padded, w->s, 1, lanes, w->kv, STRIDE, partial, STRIDE, rescale);
    }
}

/* Part `split` of the lists of request b into partial. */
static void mma_part(const struct mma *x, const struct scratch *w, int64_t b, int64_t split, float *partial)
{
    struct row  row[ROWS];
    int64_t     lanes = x->lanes;
    struct walk walk = walk_of(x->call, b);
    bool        few = walk.length[0] + walk.length[1] <= FEW;
    walk_cut(&walk, split, x->splits);
    int32_t n = rows_next(&x->caches, &walk, ROWS, row);

    mma_pack_q(&x->call->t[ATTN_Q], b * x->heads, x->heads, lanes, x->pairs, w->q);
    for (int64_t h = 0; h < lanes; h++) {
        partial_m(partial, lanes)[h] = -INFINITY;
        partial_sum(partial, lanes)[h] = 0;
    }
    if (n == 0) {
        memset(partial, 0, (size_t)(lanes * STRIDE) * sizeof *partial);
        return;
    }
    for (bool first = true; n > 0; first = false) {
        mma_block(x, w, row, n, first, few, partial);
        n = rows_next(&x->caches, &walk, ROWS, row);
    }
}

/* out and lse of one head from the parts of its request: each part's weight is what its maximum is worth beside the largest. */
HOST_CLONES static void mma_join(float *part, int64_t parts, int64_t lanes, int64_t h, float sink, uint16_t *ret_out,
                                 float *ret_lse)
{
    float out[D] = {0}, m = -INFINITY, sum = 0;
    for (int64_t i = 0; i < parts; i++) {
        float one = partial_m(part + i * partial_size(lanes), lanes)[h];
        m = one > m ? one : m;
    }
    for (int64_t i = 0; i < parts; i++) {
        float *one = part + i * partial_size(lanes), *row = one + h * STRIDE;
        if (!(partial_sum(one, lanes)[h] > 0)) continue;   /* no entries: its maximum is -inf, and so may be m */
        float weight = host_exp(partial_m(one, lanes)[h] - m);
        sum += weight * partial_sum(one, lanes)[h];
        for (int d = 0; d < D; d++) out[d] += weight * row[d];
    }
    float inverse = sum > 0 ? 1 / (sum + expf(sink - m)) : 0;
    for (int d = 0; d < D; d++) ret_out[d] = host_bf16(out[d] * inverse);
    *ret_lse = m + logf(sum);
}

static void mma_finish(const struct mma *x, int64_t b, int64_t h, float *part)
{
    const struct arg *out = &x->call->t[ATTN_OUT], *lse = &x->call->t[ATTN_LSE];
    mma_join(part, x->splits, x->lanes, h, ((const float *)x->call->t[ATTN_SINK].p)[h],
             (uint16_t *)((char *)out->p + (b * x->heads + h) * out->stride), (float *)((char *)lse->p + b * lse->stride) + h);
}

static void mma_run(const struct mma *x, int32_t threads, bool tiles)
{
    struct scratch whole;
    int64_t size = scratch_cut(NULL, x->lanes, &whole);
    float  *workspace = x->call->workspace, *parts = workspace + threads * size;
#pragma omp parallel num_threads(threads)
    {
        struct scratch w;
        scratch_cut(workspace + omp_get_thread_num() * size, x->lanes, &w);
        if (tiles) amx_begin();
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < x->batch * x->splits; i++) {
            mma_part(x, &w, i / x->splits, i % x->splits, x->splits > 1 ? parts + i * partial_size(x->lanes) : w.partial);
            for (int64_t h = 0; x->splits == 1 && h < x->heads; h++) mma_finish(x, i, h, w.partial);
        }
        if (x->splits > 1) {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < x->batch * x->heads; i++)
                mma_finish(x, i / x->heads, i % x->heads, parts + i / x->heads * x->splits * partial_size(x->lanes));
        }
        if (tiles) amx_end();
    }
}

static int mma_launch(const struct call *c)
{
    enum path path;
    int error = paths_choose(c, &path);
    if (error) return error;
    const struct problem *p = c->problem;
    struct mma x = {
        .call = c, .caches = caches_of(c), .gemm = mma_gemm(path), .pairs = path_takes_pairs(path),
        .batch = p->dim[ATTN_BATCH], .heads = p->dim[ATTN_HEADS], .lanes = mma_lanes(p),
        .splits = mma_splits(p, c->device->sm_count, MMA_SPLITS(c->tune)), .quantum = path == AMX ? 32 : 8,
    };
    mma_run(&x, c->device->sm_count, path == AMX);
    return 0;
}

/* A kernel's fields, whatever the format, where it has no other tunable. See enum path; values but AUTO are for tests and
 * comparisons. */
#define MMA_FIELDS                                                                                 \
    .engine = HOST, .growth = {{"ctx", 0}}, .tunable = {{"path", {AUTO}, AUTO, ANY}},              \
    .workspace = mma_workspace, .open = paths_open, .close = paths_close, .launch = mma_launch

/* attn: dimensions, inputs, double-precision reference and cost. What it computes stands in attn.h. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn.h"
#include "dtype.h"
#include "rng.h"

/* The loops that carry the time are compiled for AVX2 too and chosen when the program starts. */
#if defined __x86_64__ && defined __GNUC__
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

enum { D = ATTN_D, PAGE = ATTN_PAGE };

/* Uses of the random numbers beside the tensors' own. */
enum stream { CONTEXTS = MAX_TENSORS, PAGES, ORDER, CHOICE, HOLES };

static int64_t batches(const struct problem *p) { return p->dim[ATTN_BATCH]; }
static int64_t heads(const struct problem *p) { return p->dim[ATTN_HEADS]; }
static int64_t one(const struct problem *p) { return (void)p, 1; }
static int64_t batch_heads(const struct problem *p) { return batches(p) * heads(p); }
static int64_t vector_bytes(const struct problem *p) { return (void)p, D * 2; }
static int64_t length_bytes(const struct problem *p) { return (void)p, 8; }
static int64_t heads_f32_bytes(const struct problem *p) { return heads(p) * 4; }
static int64_t at_least_one(int64_t n) { return n > 0 ? n : 1; }
static int64_t window_bytes(const struct problem *p) { return at_least_one(p->dim[ATTN_WINDOW]) * 4; }
static int64_t topk_bytes(const struct problem *p) { return at_least_one(p->dim[ATTN_TOPK]) * 4; }

/* Pages of one request. The window is a ring of tokens: its last `window` ones may begin anywhere in a page, hence one more. */
static int64_t pages_each(const struct problem *p, int t)
{
    int64_t entries = t == ATTN_WINDOW_KV ? p->dim[ATTN_WINDOW] : p->dim[ATTN_CTX] / p->dim[ATTN_RATIO];
    return (entries + PAGE - 1) / PAGE + (t == ATTN_WINDOW_KV && entries > 0);
}

static int64_t cache_rows(const struct problem *p, int t) { return (batches(p) * pages_each(p, t) + 1) * PAGE; }
static int64_t window_rows(const struct problem *p) { return cache_rows(p, ATTN_WINDOW_KV); }
static int64_t topk_rows(const struct problem *p) { return cache_rows(p, ATTN_TOPK_KV); }

/* T / topk sets fit side by side into the compressed entries of a request: attn_choose() keeps them apart. */
static int64_t topk_share(const struct problem *p)
{
    int64_t entries = p->dim[ATTN_CTX] / p->dim[ATTN_RATIO], topk = p->dim[ATTN_TOPK];
    return p->dim[ATTN_RAGGED] || topk == 0 ? 1 : at_least_one(entries / topk);
}

static const char *attn_invalid(const struct problem *p)
{
    if (p->dim[ATTN_WINDOW] + p->dim[ATTN_TOPK] == 0) return "window and topk are both 0: there is nothing to attend to";
    if (topk_rows(p) > INT32_MAX)
        return "the compressed cache has more than 2^31 - 1 slots, which must fit an int32; a smaller batch or ctx, or a larger ratio";
    return NULL;
}

/* What one request of a set looks at. */
struct request {
    int64_t ctx, entries;             /* tokens; compressed entries */
    int32_t window, topk;             /* entries listed */
};

/* Ragged contexts lie anywhere in 0..ctx, but one request is full, one empty and one a single token, where there are as many. */
static struct request request_of(const struct problem *p, uint32_t set, int64_t b)
{
    int64_t ctx = p->dim[ATTN_CTX];
    if (p->dim[ATTN_RAGGED]) {
        uint64_t key = rng_key(p->seed, set, CONTEXTS, 0);
        uint32_t rank = rng_permute(key, (uint32_t)batches(p), (uint32_t)b);
        ctx = rank == 0 ? ctx : rank == 1 ? 0 : rank == 2 ? (ctx > 0) : (int64_t)rng_below(key, rank, (uint64_t)ctx + 1);
    }
    int64_t entries = ctx / p->dim[ATTN_RATIO], window = p->dim[ATTN_WINDOW], topk = p->dim[ATTN_TOPK];
    return (struct request){ctx, entries, (int32_t)(ctx < window ? ctx : window), (int32_t)(entries < topk ? entries : topk)};
}

/* The slot of a request's entry: its pages are shuffled over the whole cache, page 0 left out. */
static int32_t slot_of(const struct problem *p, int t, uint64_t pages_key, int64_t b, int64_t entry)
{
    int64_t each = pages_each(p, t);
    uint32_t page = (uint32_t)(b * each + entry / PAGE % each);
    return (int32_t)((1 + rng_permute(pages_key, (uint32_t)(batches(p) * each), page)) * PAGE + entry % PAGE);
}

/* The entry at position i of a top-k list. All in order while they fit. Else the entries are cut into topk strata of nearly equal
 * width; a set takes one of each, turned by a random amount, in shuffled order: `share` consecutive sets never meet. */
static int64_t attn_choose(const struct problem *p, uint32_t set, int64_t b, const struct request *r, int32_t i)
{
    if (r->entries <= r->topk) return i;
    uint32_t copy = set / (uint32_t)topk_share(p), turn = set % (uint32_t)topk_share(p);
    uint32_t stratum = rng_permute(rng_key(p->seed, set, ORDER, (uint64_t)b), (uint32_t)r->topk, (uint32_t)i);
    int64_t first = stratum * r->entries / r->topk, width = (stratum + 1) * r->entries / r->topk - first;
    return first + (rng_bits(rng_key(p->seed, copy, CHOICE, (uint64_t)b), stratum) + (int64_t)turn) % width;
}

/* Past the length: slots far outside the cache, or in page 0 where NaN lies. */
static int32_t wild_slot(int32_t i) { return i % 2 ? INT32_MAX - i : i % PAGE; }

static void fill_slots(const struct problem *p, int t, uint32_t set, int64_t b, int32_t *slot)
{
    bool    window = t == ATTN_WINDOW_SLOT;
    int     cache = window ? ATTN_WINDOW_KV : ATTN_TOPK_KV;
    int32_t width = (int32_t)(window ? window_bytes(p) : topk_bytes(p)) / 4;
    struct request r = request_of(p, set, b);
    int32_t  length = window ? r.window : r.topk;
    uint32_t copy = window ? set : set / (uint32_t)topk_share(p);
    uint64_t pages = rng_key(p->seed, copy, PAGES, (uint64_t)cache), holes = rng_key(p->seed, set, HOLES, (uint64_t)(b * 2 + window));
    for (int32_t i = 0; i < width; i++) {
        if (i >= length)
            slot[i] = wild_slot(i);
        else if (p->dim[ATTN_RAGGED] && rng_bits(holes, (uint32_t)i) % 16 == 0)
            slot[i] = -1;
        else
            slot[i] = slot_of(p, cache, pages, b, window ? r.ctx - length + i : attn_choose(p, set, b, &r, i));
    }
}

WIDE static void fill_vector(uint64_t key, float scale, uint16_t *row)
{
    for (uint32_t i = 0; i < D; i++) row[i] = bf16_from_finite(scale * rng_normal(key, i));
}

/* N(0, 1), but one head without a sink and, among 16 or more, one whose sink outweighs everything. */
static void fill_sink(const struct problem *p, uint64_t key, float *sink)
{
    uint32_t n = (uint32_t)heads(p);
    for (uint32_t h = 0; h < n; h++) sink[h] = rng_normal(key, h);
    sink[rng_permute(key, n, 0)] = -INFINITY;
    if (n >= 16) sink[rng_permute(key, n, 1)] = 8;
}

/* Keys are N(0, 1) and queries N(0, 2^2), so that logits have a standard deviation of 2: some entries matter, none alone. */
static void attn_fill(const struct problem *p, int t, uint32_t set, int64_t row, int64_t rows, void *host)
{
    uint32_t copy = t == ATTN_TOPK_KV ? set / (uint32_t)topk_share(p) : set;
    int64_t  width = (t == ATTN_WINDOW_SLOT ? window_bytes(p) : topk_bytes(p)) / 4;
    for (int64_t i = 0; i < rows; i++) {
        uint64_t key = rng_key(p->seed, copy, (uint32_t)t, (uint64_t)(row + i));
        struct request r;
        switch ((enum attn_tensor)t) {
        case ATTN_Q: fill_vector(key, 2, (uint16_t *)host + i * D); break;
        case ATTN_WINDOW_KV:
        case ATTN_TOPK_KV: fill_vector(key, 1, (uint16_t *)host + i * D); break;
        case ATTN_WINDOW_SLOT:
        case ATTN_TOPK_SLOT: fill_slots(p, t, set, row + i, (int32_t *)host + i * width); break;
        case ATTN_LENGTH:
            r = request_of(p, set, row + i);
            memcpy((int32_t *)host + i * 2, (int32_t[]){r.window, r.topk}, 8);
            break;
        case ATTN_SINK: fill_sink(p, key, host); break;
        case ATTN_OUT:
        case ATTN_LSE: break;
        }
    }
}

/* The list of request b: its slots and how many of them count. */
struct list {
    const int32_t *slot;
    int32_t        length;
};

static struct list list_of(const struct problem *p, void *const *t, bool window, int64_t b)
{
    const int32_t *slot = t[window ? ATTN_WINDOW_SLOT : ATTN_TOPK_SLOT], *length = t[ATTN_LENGTH];
    return (struct list){slot + b * ((window ? window_bytes(p) : topk_bytes(p)) / 4), length[b * 2 + !window]};
}

static void *need(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) abort();   /* pure functions have no way to say it, and the machine no memory for anything else */
    return memory;
}

/* Ascending, by bytes from the lowest up: slots have 31 bits. */
static void sort_rows(int64_t *row, int64_t n)
{
    int64_t *from = row, *spare = need((size_t)n * sizeof *spare), *to = spare;
    for (int shift = 0; shift < 32; shift += 8) {
        int64_t at[257] = {0};
        for (int64_t i = 0; i < n; i++) at[(from[i] >> shift & 255) + 1]++;
        for (int digit = 0; digit < 256; digit++) at[digit + 1] += at[digit];
        for (int64_t i = 0; i < n; i++) to[at[from[i] >> shift & 255]++] = from[i];
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    free(spare);            /* four passes: the last one wrote to row */
}

static int64_t touched_rows(const struct problem *p, void *const *t, bool window, int64_t *ret_rows)
{
    if (!ret_rows) return batches(p) * p->dim[window ? ATTN_WINDOW : ATTN_TOPK];
    int64_t n = 0, distinct = 0;
    for (int64_t b = 0; b < batches(p); b++) {
        struct list list = list_of(p, t, window, b);
        for (int32_t i = 0; i < list.length; i++)
            if (list.slot[i] >= 0) ret_rows[n++] = list.slot[i];
    }
    sort_rows(ret_rows, n);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || ret_rows[i] != ret_rows[i - 1]) ret_rows[distinct++] = ret_rows[i];
    return distinct;
}

static int64_t window_touched(const struct problem *p, void *const *t, int64_t *ret_rows) { return touched_rows(p, t, true, ret_rows); }
static int64_t topk_touched(const struct problem *p, void *const *t, int64_t *ret_rows) { return touched_rows(p, t, false, ret_rows); }

/* Entries of all requests that a kernel must look at, and those of them that are no holes. */
static int64_t entries_listed(const struct problem *p, void *const *t, bool window, int64_t *ret_valid)
{
    int64_t listed = 0;
    for (int64_t b = 0; b < batches(p); b++) {
        struct list list = list_of(p, t, window, b);
        listed += list.length;
        for (int32_t i = 0; i < list.length; i++) *ret_valid += list.slot[i] >= 0;
    }
    return listed;
}

/* A multiplication and an addition for each of 512 dims, once for the logit and once for the sum. */
static double attn_flop(const struct problem *p, void *const *t)
{
    int64_t valid = 0;
    entries_listed(p, t, true, &valid);
    entries_listed(p, t, false, &valid);
    return 4.0 * D * (double)heads(p) * (double)valid;
}

static double attn_bytes(const struct problem *p, void *const *t, uint64_t reads)
{
    double bytes = (double)batch_heads(p) * (D * 2 + 4);   /* outputs */
    for (int i = ATTN_Q; i <= ATTN_SINK; i++) {
        if (reads && !(reads >> i & 1)) continue;
        int64_t valid = 0;
        if (i == ATTN_WINDOW_KV || i == ATTN_TOPK_KV) {
            bool     window = i == ATTN_WINDOW_KV;
            int64_t *row = need((size_t)touched_rows(p, NULL, window, NULL) * sizeof *row);
            bytes += (double)touched_rows(p, t, window, row) * D * 2;
            free(row);
        } else if (i == ATTN_WINDOW_SLOT || i == ATTN_TOPK_SLOT) {
            bytes += (double)entries_listed(p, t, i == ATTN_WINDOW_SLOT, &valid) * 4;
        } else {
            bytes += (double)(p->op->tensor[i].rows(p) * p->op->tensor[i].row_bytes(p));
        }
    }
    return bytes;
}

typedef double v4 __attribute__((vector_size(32), aligned(8)));

/* s[h][0..3] = q[h].kv[0..3] for two heads at a time: eight sums run side by side, so that none waits for its last addition. */
WIDE static void four_logits(const double *q, int64_t n_heads, const double *kv, double *s, int64_t stride)
{
    for (int64_t h = 0; h < n_heads; h += 2) {
        int64_t       next = h + 1 < n_heads ? h + 1 : h;
        const double *a = q + h * D, *b = q + next * D;
        v4            sum[8] = {0};
        for (int d = 0; d < D; d += 4) {
            v4 x = *(const v4 *)(a + d), y = *(const v4 *)(b + d);
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                v4 k = *(const v4 *)(kv + i * D + d);
                sum[i] += x * k;
                sum[4 + i] += y * k;
            }
        }
        for (int i = 0; i < 4; i++) {
            s[h * stride + i] = sum[i][0] + sum[i][1] + sum[i][2] + sum[i][3];
            s[next * stride + i] = sum[4 + i][0] + sum[4 + i][1] + sum[4 + i][2] + sum[4 + i][3];
        }
    }
}

/* out[h] += p[h][0..3] * kv[0..3] */
WIDE static void four_added(const double *p, int64_t stride, int64_t n_heads, const double *kv, double *out)
{
    for (int64_t h = 0; h < n_heads; h++) {
        const double *w = p + h * stride;
        double       *o = out + h * D;
        for (int d = 0; d < D; d++) o[d] += w[0] * kv[d] + w[1] * kv[D + d] + w[2] * kv[2 * D + d] + w[3] * kv[3 * D + d];
    }
}

WIDE static void widen(const uint16_t *bf16, int64_t n, double *ret)
{
    for (int64_t i = 0; i < n; i++) ret[i] = f32_from_bf16(bf16[i]);
}

/* Four rows of the list as doubles; rows past its end are zero and get zero weight. */
static void widen_four(const uint16_t *const *row, int64_t n, double *kv)
{
    for (int i = 0; i < 4; i++) {
        if (i < n)
            widen(row[i], D, kv + i * D);
        else
            memset(kv + i * D, 0, D * sizeof *kv);
    }
}

/* The rows of request b that count, in the order of its lists. */
static int64_t gather(const struct problem *p, void *const *t, int64_t b, const uint16_t **ret_row)
{
    int64_t n = 0;
    for (int window = 1; window >= 0; window--) {
        struct list     list = list_of(p, t, window, b);
        const uint16_t *cache = t[window ? ATTN_WINDOW_KV : ATTN_TOPK_KV];
        for (int32_t i = 0; i < list.length; i++)
            if (list.slot[i] >= 0) ret_row[n++] = cache + (int64_t)list.slot[i] * D;
    }
    return n;
}

/* Logits s[0..n) of one head to weights in place; returns the lse. */
static double soften(double *s, int64_t n, double sink)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, s[i]);
    if (n == 0) return -INFINITY;
    double m = fmax(most, sink);
    for (int64_t i = 0; i < n; i++) sum += exp(s[i] - most);
    double scale = 1 / (sum * exp(most - m) + exp(sink - m));
    for (int64_t i = 0; i < n; i++) s[i] = exp(s[i] - m) * scale;
    return most + log(sum);
}

/* One request at a time, all its logits before the first weight: nothing is rescaled, and each row is widened twice in all. */
static void attn_reference(const struct problem *p, void *const *t, int64_t item, int64_t n)
{
    int64_t          H = heads(p), stride = (p->dim[ATTN_WINDOW] + p->dim[ATTN_TOPK] + 3) / 4 * 4;
    const uint16_t **row = need((size_t)stride * sizeof *row);
    double *q = need((size_t)(H * D) * sizeof *q), *s = need((size_t)(H * stride) * sizeof *s), *kv = need(4 * D * sizeof *kv);
    for (int64_t b = item; b < item + n; b++) {
        double *out = (double *)t[ATTN_OUT] + b * H * D, *lse = (double *)t[ATTN_LSE] + b * H;
        int64_t entries = gather(p, t, b, row);
        widen((const uint16_t *)t[ATTN_Q] + b * H * D, H * D, q);
        for (int64_t i = 0; i < H * D; i++) q[i] *= 1 / sqrt(D);
        for (int64_t i = 0; i < entries; i += 4) {
            widen_four(row + i, entries - i, kv);
            four_logits(q, H, kv, s + i, stride);
        }
        for (int64_t h = 0; h < H; h++) {
            lse[h] = soften(s + h * stride, entries, ((const float *)t[ATTN_SINK])[h]);
            for (int64_t i = entries; i % 4; i++) s[h * stride + i] = 0;
        }
        memset(out, 0, (size_t)(H * D) * sizeof *out);
        for (int64_t i = 0; i < entries; i += 4) {
            widen_four(row + i, entries - i, kv);
            four_added(s + i, stride, H, kv, out);
        }
    }
    free(kv);
    free(s);
    free(q);
    free(row);
}

static void attn_item_rows(const struct problem *p, int t, int64_t item, int64_t *ret_row, int64_t *ret_rows)
{
    int64_t each = t == ATTN_OUT ? heads(p) : 1;
    *ret_row = item * each;
    *ret_rows = each;
}

/* out: bf16 weights and a bf16 result stay near 2e-3. abs lets no more through than the rounding of an exact zero.
 * lse: the bound of an element is 8 abs, that is 1e-3; rel_l2 is what sums of 512 floats lose where logits are in the hundreds. */
const struct op op_attn = {
    .abi = KBENCH_ABI, .size = sizeof(struct op), .name = "attn",
    .note = "sparse multi-query decode attention over window and compressed cache, bf16",
    .dim = {
        [ATTN_BATCH] = {"batch", "requests", 16, 1, 4096, .ideal = 1},
        [ATTN_HEADS] = {"heads", "heads", 64, 8, 128, .ideal = 1},
        [ATTN_CTX] = {"ctx", "tokens", 8192, 0, 1 << 20, .live = true, .ideal = 0},
        [ATTN_WINDOW] = {"window", "entries", 128, 0, 4096, .ideal = 1},
        [ATTN_TOPK] = {"topk", "entries", 512, 0, 4096, .ideal = 1},
        [ATTN_RATIO] = {"ratio", "tokens/entry", 4, 1, 128, .ideal = 0},
        [ATTN_RAGGED] = {"ragged", "0|1", 0, 0, 1, .label = true},
    },
    .tensor = {
        [ATTN_Q] = {"q", "[batch, heads, 512]", BF16, IN, .rows = batch_heads, .row_bytes = vector_bytes},
        [ATTN_WINDOW_KV] = {"window_kv", "[window slots, 512]", BF16, IN, .rows = window_rows, .row_bytes = vector_bytes,
                            .touched = window_touched},
        [ATTN_TOPK_KV] = {"topk_kv", "[compressed slots, 512]", BF16, IN, .rows = topk_rows, .row_bytes = vector_bytes,
                          .touched = topk_touched, .share = topk_share},
        [ATTN_WINDOW_SLOT] = {"window_slot", "[batch, window]", I32, IN, .rows = batches, .row_bytes = window_bytes},
        [ATTN_TOPK_SLOT] = {"topk_slot", "[batch, topk]", I32, IN, .rows = batches, .row_bytes = topk_bytes},
        [ATTN_LENGTH] = {"length", "[batch, 2]", I32, IN, .rows = batches, .row_bytes = length_bytes},
        [ATTN_SINK] = {"sink", "[heads]", F32, IN, .rows = one, .row_bytes = heads_f32_bytes},
        [ATTN_OUT] = {"out", "[batch, heads, 512]", BF16, OUT, {3e-3, 1e-6}, .rows = batch_heads, .row_bytes = vector_bytes},
        [ATTN_LSE] = {"lse", "[batch, heads]", F32, OUT, {1e-6, 1.25e-4}, .rows = batches, .row_bytes = heads_f32_bytes},
    },
    .invalid = attn_invalid,
    .fill = attn_fill,
    .items = batches,
    .reference = attn_reference,
    .item_rows = attn_item_rows,
    .flop = attn_flop,
    .bytes = attn_bytes,
};

/* Contexts, lists and queries of attention problems, and what a call costs. See attn_inputs.h. */
#include "attn_inputs.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "rng.h"

enum { D = ATTN_D };

/* Uses of the random numbers beside the tensors' own. */
enum stream { CONTEXTS = MAX_TENSORS, PAGES, ORDER, CHOICE, HOLES };

static int64_t heads(const struct problem *p) { return p->dim[ATTN_HEADS]; }
static int64_t at_least_one(int64_t n) { return n > 0 ? n : 1; }
static int64_t entries_of(const struct problem *p) { return p->dim[ATTN_CTX] / p->dim[ATTN_RATIO]; }

int64_t attn_one(const struct problem *p) { return (void)p, 1; }
int64_t attn_batches(const struct problem *p) { return p->dim[ATTN_BATCH]; }
int64_t attn_batch_heads(const struct problem *p) { return attn_batches(p) * heads(p); }
int64_t attn_vector_bytes(const struct problem *p) { return (void)p, D * 2; }
int64_t attn_length_bytes(const struct problem *p) { return (void)p, 8; }
int64_t attn_heads_f32_bytes(const struct problem *p) { return heads(p) * 4; }
int64_t attn_window_bytes(const struct problem *p) { return at_least_one(p->dim[ATTN_WINDOW]) * 4; }
int64_t attn_topk_bytes(const struct problem *p) { return at_least_one(p->dim[ATTN_TOPK]) * 4; }

/* Pages of one request. The window is a ring of tokens: its last `window` ones may begin anywhere in a page, hence one more. */
static int64_t pages_each(const struct problem *p, struct attn_paging paging, bool window)
{
    int64_t entries = window ? p->dim[ATTN_WINDOW] : entries_of(p), page = paging.page[!window];
    return (entries + page - 1) / page + (window && entries > 0);
}

int64_t attn_slots(const struct problem *p, struct attn_paging paging, bool window)
{
    return (attn_batches(p) * pages_each(p, paging, window) + 1) * paging.page[!window];
}

/* So many sets fit side by side into the compressed entries of a request: choose() keeps them apart. */
int64_t attn_topk_share(const struct problem *p, struct attn_paging paging)
{
    int64_t topk = p->dim[ATTN_TOPK];
    return p->dim[ATTN_RAGGED] || topk == 0 ? 1 : at_least_one(entries_of(p) / paging.neighbours / topk);
}

const char *attn_refused(const struct problem *p, struct attn_paging paging)
{
    if (p->dim[ATTN_WINDOW] + p->dim[ATTN_TOPK] == 0) return "window and topk are both 0: there is nothing to attend to";
    if (attn_slots(p, paging, false) > INT32_MAX)
        return "the compressed cache has more than 2^31 - 1 slots, which must fit an int32; a smaller batch or ctx, or a larger"
               " ratio";
    return NULL;
}

/* What one request of a set looks at. */
struct request {
    int64_t ctx, entries;             /* tokens; compressed entries */
    int32_t window, topk;             /* entries listed */
};

/* Requests of different lengths, with holes in their lists. */
static bool uneven(const struct problem *p, uint32_t set)
{
    return p->dim[ATTN_RAGGED] || set >= CHECK_SET;
}

/* Ragged contexts lie anywhere in 0..ctx, but one request is full, one empty and one a single token, where there are as many. In
 * the set for checks every other request is too short for its lists, the only one of a batch of 1 too, so that lengths differ. */
static struct request request_of(const struct problem *p, uint32_t set, int64_t b)
{
    int64_t ctx = p->dim[ATTN_CTX];
    if (uneven(p, set)) {
        int64_t  filled = p->dim[ATTN_TOPK] * p->dim[ATTN_RATIO];   /* tokens that fill the longer list */
        uint64_t key = rng_key(p->seed, set, CONTEXTS, 0);
        uint32_t rank = rng_permute(key, (uint32_t)attn_batches(p), (uint32_t)b);
        bool     shorter = set >= CHECK_SET && rank % 2 == 0;
        int64_t  most = shorter && filled < ctx ? filled : ctx, drawn = (int64_t)rng_below(key, rank, (uint64_t)most + 1);
        ctx = rank == 0 && !shorter ? ctx : rank == 1 ? 0 : rank == 2 ? (ctx > 0) : drawn;
    }
    int64_t entries = ctx / p->dim[ATTN_RATIO], window = p->dim[ATTN_WINDOW], topk = p->dim[ATTN_TOPK];
    return (struct request){ctx, entries, (int32_t)(ctx < window ? ctx : window), (int32_t)(entries < topk ? entries : topk)};
}

/* The slot of a request's entry: its pages are shuffled over the whole cache, page 0 left out. */
static int32_t slot_of(const struct problem *p, struct attn_paging paging, bool window, uint64_t pages, int64_t b, int64_t entry)
{
    int64_t each = pages_each(p, paging, window), page = paging.page[!window];
    uint32_t at = (uint32_t)(b * each + entry / page % each);
    return (int32_t)((1 + rng_permute(pages, (uint32_t)(attn_batches(p) * each), at)) * page + entry % page);
}

/* The entry at position i of a top-k list. All in order while they fit. Else the entries are cut into topk strata of nearly equal
 * width; a set takes one of each, turned by a random amount, in shuffled order: `share` consecutive sets never meet. Nor do they
 * where neighbours share memory: one set would find in the processor's caches what another has just brought. */
static int64_t choose(const struct problem *p, struct attn_paging paging, uint32_t set, int64_t b, const struct request *r,
                      int32_t i)
{
    if (r->entries <= r->topk) return i;
    uint32_t share = (uint32_t)attn_topk_share(p, paging), copy = set / share, turn = set % share;
    int64_t  unit = share > 1 && !uneven(p, set) ? paging.neighbours : 1, units = r->entries / unit;
    uint64_t order = rng_key(p->seed, set, ORDER, (uint64_t)b);
    uint32_t stratum = rng_permute(order, (uint32_t)r->topk, (uint32_t)i);
    int64_t  first = stratum * units / r->topk, width = (stratum + 1) * units / r->topk - first;
    int64_t  at = first + (rng_bits(rng_key(p->seed, copy, CHOICE, (uint64_t)b), stratum) + (int64_t)turn) % width;
    return at * unit + (unit > 1 ? rng_bits(order, (uint32_t)i) % unit : 0);
}

/* Past the length: slots far outside the cache, or in page 0 where NaN lies. */
static int32_t wild_slot(int32_t i, int32_t page) { return i % 2 ? INT32_MAX - i : i % page; }

static void fill_slots(const struct problem *p, struct attn_paging paging, bool window, uint32_t set, int64_t b, int32_t *slot)
{
    int32_t  width = (int32_t)(window ? attn_window_bytes(p) : attn_topk_bytes(p)) / 4;
    struct request r = request_of(p, set, b);
    int32_t  length = window ? r.window : r.topk;
    uint32_t copy = window ? set : set / (uint32_t)attn_topk_share(p, paging);
    uint64_t pages = rng_key(p->seed, copy, PAGES, window ? ATTN_WINDOW_KV : ATTN_TOPK_KV);
    uint64_t holes = rng_key(p->seed, set, HOLES, (uint64_t)(b * 2 + window));
    for (int32_t i = 0; i < width; i++) {
        if (i >= length)
            slot[i] = wild_slot(i, paging.page[!window]);
        else if (uneven(p, set) && rng_bits(holes, (uint32_t)i) % 16 == 0)
            slot[i] = -1;
        else
            slot[i] = slot_of(p, paging, window, pages, b, window ? r.ctx - length + i : choose(p, paging, set, b, &r, i));
    }
}

WIDE void attn_fill_vector(uint64_t key, float scale, uint16_t *ret_bf16)
{
    for (uint32_t i = 0; i < D; i++) ret_bf16[i] = bf16_from_finite(scale * rng_normal(key, i));
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
void attn_fill_inputs(const struct problem *p, struct attn_paging paging, int t, uint32_t set, int64_t row, int64_t rows,
                      void *host)
{
    bool    window = t == ATTN_WINDOW_SLOT;
    int64_t width = (window ? attn_window_bytes(p) : attn_topk_bytes(p)) / 4;
    for (int64_t i = 0; i < rows; i++) {
        uint64_t key = rng_key(p->seed, set, (uint32_t)t, (uint64_t)(row + i));
        struct request r;
        switch ((enum attn_tensor)t) {
        case ATTN_Q: attn_fill_vector(key, 2, (uint16_t *)host + i * D); break;
        case ATTN_WINDOW_SLOT:
        case ATTN_TOPK_SLOT: fill_slots(p, paging, window, set, row + i, (int32_t *)host + i * width); break;
        case ATTN_LENGTH:
            r = request_of(p, set, row + i);
            memcpy((int32_t *)host + i * 2, (int32_t[]){r.window, r.topk}, 8);
            break;
        case ATTN_SINK: fill_sink(p, key, host); break;
        case ATTN_WINDOW_KV:
        case ATTN_TOPK_KV:
        case ATTN_OUT:
        case ATTN_LSE: break;
        }
    }
}

struct attn_list attn_list_of(const struct problem *p, void *const *t, bool window, int64_t b)
{
    const int32_t *slot = t[window ? ATTN_WINDOW_SLOT : ATTN_TOPK_SLOT], *length = t[ATTN_LENGTH];
    int32_t        count = length[b * 2 + !window];
    return (struct attn_list){slot + b * ((window ? attn_window_bytes(p) : attn_topk_bytes(p)) / 4), count > 0 ? count : 0};
}

void *attn_memory(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) abort();   /* pure functions have no way to say it, and the machine no memory for anything else */
    return memory;
}

/* Ascending, by bytes from the lowest up: slots have 31 bits. */
static void sort_slots(int64_t *slot, int64_t n)
{
    int64_t *from = slot, *spare = attn_memory((size_t)n * sizeof *spare), *to = spare;
    for (int shift = 0; shift < 32; shift += 8) {
        int64_t at[257] = {0};
        for (int64_t i = 0; i < n; i++) at[(from[i] >> shift & 255) + 1]++;
        for (int digit = 0; digit < 256; digit++) at[digit + 1] += at[digit];
        for (int64_t i = 0; i < n; i++) to[at[from[i] >> shift & 255]++] = from[i];
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    free(spare);            /* four passes: the last one wrote to slot */
}

int64_t attn_named(const struct problem *p, void *const *t, bool window, int64_t *ret_slots)
{
    if (!ret_slots) return attn_batches(p) * p->dim[window ? ATTN_WINDOW : ATTN_TOPK];
    int64_t n = 0, distinct = 0;
    for (int64_t b = 0; b < attn_batches(p); b++) {
        struct attn_list list = attn_list_of(p, t, window, b);
        for (int32_t i = 0; i < list.length; i++)
            if (list.slot[i] >= 0) ret_slots[n++] = list.slot[i];
    }
    sort_slots(ret_slots, n);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || ret_slots[i] != ret_slots[i - 1]) ret_slots[distinct++] = ret_slots[i];
    return distinct;
}

/* Entries of all requests that a kernel must look at, and those of them that are no holes. */
static int64_t entries_listed(const struct problem *p, void *const *t, bool window, int64_t *ret_valid)
{
    int64_t listed = 0;
    for (int64_t b = 0; b < attn_batches(p); b++) {
        struct attn_list list = attn_list_of(p, t, window, b);
        listed += list.length;
        for (int32_t i = 0; i < list.length; i++) *ret_valid += list.slot[i] >= 0;
    }
    return listed;
}

/* A multiplication and an addition for each of 512 dims, once for the logit and once for the sum. */
double attn_flop(const struct problem *p, void *const *t)
{
    int64_t valid = 0;
    entries_listed(p, t, true, &valid);
    entries_listed(p, t, false, &valid);
    return 4.0 * D * (double)heads(p) * (double)valid;
}

double attn_bytes_of(const struct problem *p, void *const *t, uint64_t reads, int64_t entry_bytes)
{
    double bytes = (double)attn_batch_heads(p) * (D * 2 + 4);   /* outputs */
    for (int i = ATTN_Q; i <= ATTN_SINK; i++) {
        if (reads && !(reads >> i & 1)) continue;
        int64_t valid = 0;
        if (i == ATTN_WINDOW_KV || i == ATTN_TOPK_KV) {
            bool     window = i == ATTN_WINDOW_KV;
            int64_t *slot = attn_memory((size_t)attn_named(p, NULL, window, NULL) * sizeof *slot);
            bytes += (double)(attn_named(p, t, window, slot) * entry_bytes);
            free(slot);
        } else if (i == ATTN_WINDOW_SLOT || i == ATTN_TOPK_SLOT) {
            bytes += (double)entries_listed(p, t, i == ATTN_WINDOW_SLOT, &valid) * 4;
        } else {
            bytes += (double)(p->op->tensor[i].rows(p) * p->op->tensor[i].row_bytes(p));
        }
    }
    return bytes;
}

void attn_item_rows(const struct problem *p, int t, int64_t item, int64_t *ret_row, int64_t *ret_rows)
{
    int64_t each = t == ATTN_OUT ? heads(p) : 1;
    *ret_row = item * each;
    *ret_rows = each;
}

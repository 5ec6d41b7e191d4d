/* Tables, lengths and weights of the indexer's problems, and what a call costs. See indexer_inputs.h. */
#include "indexer_inputs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "rng.h"

enum { D = INDEXER_D, HEADS = INDEXER_HEADS, PAGE = INDEXER_PAGE };

/* Uses of the random numbers beside the tensors' own. */
enum stream { LENGTHS = MAX_TENSORS, PAGES };

const char *const indexer_tail_names[] = {"page0", "unique", "minus1", NULL};

static int64_t entries_of(const struct problem *p) { return p->dim[INDEXER_CTX] / INDEXER_RATIO; }
static int64_t live_pages(const struct problem *p) { return (entries_of(p) + PAGE - 1) / PAGE; }
static int64_t table_pages(const struct problem *p) { return indexer_width(p->dim[INDEXER_MAX_CTX]) / PAGE; }
static bool    unique(const struct problem *p) { return p->dim[INDEXER_TAIL] == INDEXER_TAIL_UNIQUE; }

/* Pages of one request in a copy of the cache. */
static int64_t pages_each(const struct problem *p)
{
    return unique(p) ? table_pages(p) : live_pages(p) > 0 ? live_pages(p) : 1;
}

int64_t indexer_batches(const struct problem *p) { return p->dim[INDEXER_BATCH]; }
int64_t indexer_batch_heads(const struct problem *p) { return indexer_batches(p) * HEADS; }
int64_t indexer_vector_bytes(const struct problem *p) { return (void)p, D * 2; }
int64_t indexer_w_bytes(const struct problem *p) { return (void)p, HEADS * 4; }
int64_t indexer_table_bytes(const struct problem *p) { return table_pages(p) * 4; }
int64_t indexer_length_bytes(const struct problem *p) { return (void)p, 4; }
int64_t indexer_logits_bytes(const struct problem *p) { return indexer_width(p->dim[INDEXER_MAX_CTX]) * 4; }
int64_t indexer_slots(const struct problem *p) { return (indexer_batches(p) * pages_each(p) + 1) * PAGE; }

/* Where the cache has room for the whole maximum, sets take turns in it: set i of a copy begins i * live pages further on. */
int64_t indexer_share(const struct problem *p)
{
    int64_t live = live_pages(p);
    return unique(p) && live > 0 ? table_pages(p) / live : 1;
}

uint32_t indexer_copy(const struct problem *p, uint32_t set) { return set / (uint32_t)indexer_share(p); }

const char *indexer_refused(const struct problem *p)
{
    static _Thread_local char why[160];   /* words with numbers need a place, and the caller has none: valid until the next call */
    int64_t ctx = p->dim[INDEXER_CTX], most = p->dim[INDEXER_MAX_CTX];
    if (most < ctx)
        snprintf(why, sizeof why, "max_ctx=%lld is below ctx=%lld: no table has room for it; a larger max_ctx or a smaller ctx",
                 (long long)most, (long long)ctx);
    else if (indexer_slots(p) > INT32_MAX)
        snprintf(why, sizeof why, "the cache has %lld slots, more than the 2^31 - 1 that fit an int32; a smaller batch%s",
                 (long long)indexer_slots(p), unique(p) ? ", max_ctx, or another tail" : " or ctx");
    else
        return NULL;
    return why;
}

/* Lengths at which kernels have gone wrong: none at all, edges of a page, edges of 512. */
static const int16_t edges[] = {0, 513, -1, 512, 511, 1, 64, 65, 63};
enum { EDGES = sizeof edges / sizeof *edges };

/* One row is full, so many have a length of `edges`, where there are as many rows, the others any. */
int32_t indexer_live_length(uint64_t seed, uint32_t set, int64_t batch, int64_t b, int64_t most, bool ragged)
{
    bool check = set >= CHECK_SET;
    if (!ragged && !check) return (int32_t)most;
    uint64_t key = rng_key(seed, set, LENGTHS, 0);
    uint32_t rank = rng_permute(key, (uint32_t)batch, (uint32_t)b), turn = batch > EDGES ? 0 : rng_below(key, UINT32_MAX, EDGES);
    int64_t  limit = check ? most - 1 : most;
    if (rank == 0 && !check) return (int32_t)most;
    if (rank == 0 || rank > EDGES) return limit < 0 ? -1 : (int32_t)rng_below(key, rank, (uint64_t)limit + 1);
    int64_t edge = edges[(rank - 1 + turn) % EDGES];
    return (int32_t)(edge < limit ? edge : limit);
}

static int32_t length_of(const struct problem *p, uint32_t set, int64_t b)
{
    return indexer_live_length(p->seed, set, indexer_batches(p), b, entries_of(p), p->dim[INDEXER_RAGGED]);
}

bool indexer_all_negative(uint32_t set, int64_t b) { return (b + (set >= CHECK_SET ? 3 : 0)) % 4 == 3; }

/* The pages of a request are numbered on from where its turn begins, round its share of the cache, then shuffled over all of it. */
static void fill_table(const struct problem *p, uint32_t set, int64_t b, int32_t *page)
{
    int64_t  each = pages_each(p), length = length_of(p, set, b), live = length > 0 ? (length + PAGE - 1) / PAGE : 0;
    int64_t  first = set % (uint32_t)indexer_share(p) * live_pages(p);
    uint64_t key = rng_key(p->seed, indexer_copy(p, set), PAGES, 0);
    for (int64_t j = 0; j < table_pages(p); j++) {
        uint32_t at = (uint32_t)(b * each + (first + j) % each);
        if (j < live || unique(p))
            page[j] = (int32_t)(1 + rng_permute(key, (uint32_t)(indexer_batches(p) * each), at));
        else
            page[j] = p->dim[INDEXER_TAIL] == INDEXER_TAIL_MINUS1 ? -1 : 0;
    }
}

/* N(0, 1) / sqrt(128 * 64) */
static void fill_w(uint64_t key, bool negative, float *w)
{
    for (uint32_t h = 0; h < HEADS; h++) {
        float x = rng_normal(key, h) * 0.011048543f;
        w[h] = negative ? -fabsf(x) : x;
    }
}

void indexer_fill_inputs(const struct problem *p, int t, uint32_t set, int64_t row, int64_t rows, void *host)
{
    for (int64_t i = 0; i < rows; i++) {
        uint64_t key = rng_key(p->seed, set, (uint32_t)t, (uint64_t)(row + i));
        if (t == INDEXER_W) fill_w(key, indexer_all_negative(set, row + i), (float *)host + i * HEADS);
        if (t == INDEXER_PAGE_TABLE) fill_table(p, set, row + i, (int32_t *)host + i * table_pages(p));
        if (t == INDEXER_LENGTH) ((int32_t *)host)[i] = length_of(p, set, row + i);
    }
}

WIDE void indexer_fill_bf16(uint64_t key, int64_t n, uint16_t *ret)
{
    for (uint32_t i = 0; i < (uint32_t)n; i++) ret[i] = bf16_from_finite(rng_normal(key, i));
}

struct indexer_live indexer_live_of(const struct problem *p, void *const *t, int64_t b)
{
    int32_t length = ((const int32_t *)t[INDEXER_LENGTH])[b];
    return (struct indexer_live){length > 0 ? length : 0, (const int32_t *)t[INDEXER_PAGE_TABLE] + b * table_pages(p)};
}

void *indexer_memory(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) abort();   /* pure functions have no way to say it, and the machine no memory for anything else */
    return memory;
}

/* By page, and of the same page first where more is live. */
static int compare_pages(const void *a, const void *b)
{
    const struct indexer_page *x = a, *y = b;
    if (x->page != y->page) return x->page < y->page ? -1 : 1;
    return y->live - x->live;
}

int64_t indexer_pages(const struct problem *p, void *const *t, struct indexer_page *ret)
{
    if (!ret) return indexer_batches(p) * live_pages(p);
    int64_t n = 0, distinct = 0;
    for (int64_t b = 0; b < indexer_batches(p); b++) {
        struct indexer_live live = indexer_live_of(p, t, b);
        for (int64_t e = 0; e < live.length; e += PAGE)
            ret[n++] = (struct indexer_page){live.page[e / PAGE], (int32_t)(live.length - e < PAGE ? live.length - e : PAGE)};
    }
    qsort(ret, (size_t)n, sizeof *ret, compare_pages);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || ret[i].page != ret[distinct - 1].page) ret[distinct++] = ret[i];
    return distinct;
}

int64_t indexer_touched(const struct problem *p, void *const *t, int64_t *ret_slots)
{
    int64_t most = indexer_pages(p, NULL, NULL), n = 0;
    if (!ret_slots) return most * PAGE;
    struct indexer_page *page = indexer_memory((size_t)most * sizeof *page);
    int64_t pages = indexer_pages(p, t, page);
    for (int64_t i = 0; i < pages; i++)
        for (int32_t e = 0; e < page[i].live; e++) ret_slots[n++] = page[i].page * PAGE + e;
    free(page);
    return n;
}

/* Live entries of all requests, and pages that hold them. */
static int64_t live_entries(const struct problem *p, void *const *t, int64_t *ret_pages)
{
    int64_t entries = 0;
    *ret_pages = 0;
    for (int64_t b = 0; b < indexer_batches(p); b++) {
        int64_t length = indexer_live_of(p, t, b).length;
        entries += length;
        *ret_pages += (length + PAGE - 1) / PAGE;
    }
    return entries;
}

/* A multiplication and an addition for each of 128 dims, and for the weight. */
double indexer_flop(const struct problem *p, void *const *t)
{
    int64_t pages;
    return 2.0 * HEADS * (D + 1) * (double)live_entries(p, t, &pages);
}

double indexer_input_bytes(const struct problem *p, void *const *t, uint64_t reads, int64_t entry_bytes)
{
    int64_t pages, entries = live_entries(p, t, &pages);
    double  bytes = 0;
    for (int i = INDEXER_Q; i <= INDEXER_LENGTH; i++) {
        if (reads && !(reads >> i & 1)) continue;
        if (i == INDEXER_KEYS)
            bytes += (double)entries * (double)entry_bytes;
        else if (i == INDEXER_PAGE_TABLE)
            bytes += (double)pages * 4;
        else
            bytes += (double)(p->op->tensor[i].rows(p) * p->op->tensor[i].row_bytes(p));
    }
    return bytes;
}

void indexer_item_rows(const struct problem *p, int t, int64_t item, int64_t *ret_row, int64_t *ret_rows)
{
    (void)p, (void)t;
    *ret_row = item;
    *ret_rows = 1;
}

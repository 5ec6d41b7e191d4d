/* Choosing the highest scores, and judging a choice. See topk_formula.h. */
#include "topk_formula.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "indexer_inputs.h"

enum { PAGE = INDEXER_PAGE, DIGIT = 11, DIGITS = 1 << DIGIT };

/* In the order of the scores; 0: never chosen. Both zeros are the same. */
static uint64_t order_of(double score)
{
    uint64_t bits, sign = (uint64_t)1 << 63;
    if (!(score > -INFINITY)) return 0;
    score += 0.0;
    memcpy(&bits, &score, sizeof bits);
    return bits & sign ? ~bits : bits | sign;
}

/* The k-th highest of the n, and how many above it; by digits from the highest down. k <= n, none of them 0. */
static uint64_t border(const uint64_t *order, int64_t n, int64_t k, int64_t *ret_above)
{
    uint64_t found = 0, known = 0;
    *ret_above = 0;
    for (int shift = 64 - DIGIT; known != UINT64_MAX; shift = shift > DIGIT ? shift - DIGIT : 0) {
        int64_t count[DIGITS] = {0};
        int     digit = DIGITS - 1;
        for (int64_t i = 0; i < n; i++)
            if ((order[i] & known) == found) count[order[i] >> shift & (DIGITS - 1)]++;
        while (*ret_above + count[digit] < k) *ret_above += count[digit--];
        known |= (uint64_t)(DIGITS - 1) << shift;
        found = (found & ~((uint64_t)(DIGITS - 1) << shift)) | (uint64_t)digit << shift;
    }
    return found;
}

int64_t topk_pick(const double *score, int64_t n, int64_t k, int64_t *ret_entry)
{
    uint64_t *order = indexer_memory((size_t)n * sizeof *order);
    int64_t   candidates = 0, above = 0, chosen = 0, ties;
    for (int64_t i = 0; i < n; i++) candidates += (order[i] = order_of(score[i])) > 0;
    if (k > candidates) k = candidates;
    uint64_t least = k > 0 ? border(order, n, k, &above) : 0;
    ties = k - above;
    for (int64_t i = 0; i < n && chosen < k; i++)
        if (order[i] > least || (order[i] == least && ties-- > 0)) ret_entry[chosen++] = i;
    free(order);
    return chosen;
}

struct place {
    int32_t page;
    int64_t at;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return (x->page > y->page) - (x->page < y->page);
}

static int compare_entries(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int compare_down(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The entry that a slot is, or -1. place: the live pages, sorted */
static int64_t entry_of(const struct topk_choice *c, const struct place *place, int64_t pages, int32_t slot)
{
    struct place        key = {slot / PAGE, 0};
    const struct place *found = slot < PAGE ? NULL : bsearch(&key, place, (size_t)pages, sizeof key, compare_places);
    int64_t             entry = found ? found->at * PAGE + slot % PAGE : -1;
    return entry < c->length ? entry : -1;
}

int64_t topk_entries(const struct topk_choice *c, int64_t *ret_entry, char *ret_why, size_t size)
{
    int64_t       pages = (c->length + PAGE - 1) / PAGE, n = 0;
    struct place *place = indexer_memory((size_t)pages * sizeof *place);
    for (int64_t i = 0; i < pages; i++) place[i] = (struct place){c->page[i], i};
    qsort(place, (size_t)pages, sizeof *place, compare_places);
    while (n < c->k && c->slot[n] != -1) {
        ret_entry[n] = entry_of(c, place, pages, c->slot[n]);
        if (ret_entry[n] < 0) break;
        n++;
    }
    free(place);
    for (int64_t i = n; i < c->k; i++) {
        if (c->slot[i] == -1) continue;
        if (c->slot[n] == -1)
            snprintf(ret_why, size, "slot[%lld, %lld] is %d behind a -1; -1 only fills up the end", (long long)c->b, (long long)i,
                     (int)c->slot[i]);
        else
            snprintf(ret_why, size, "slot[%lld, %lld] is %d, which is none of the %lld live entries of request %lld",
                     (long long)c->b, (long long)i, (int)c->slot[i], (long long)c->length, (long long)c->b);
        return -1;
    }
    qsort(ret_entry, (size_t)n, sizeof *ret_entry, compare_entries);
    for (int64_t i = 1; i < n; i++) {
        if (ret_entry[i] != ret_entry[i - 1]) continue;
        snprintf(ret_why, size, "request %lld: entry %lld, slot %lld, is selected twice", (long long)c->b, (long long)ret_entry[i],
                 (long long)indexer_slot(c->page, ret_entry[i]));
        return -1;
    }
    return n;
}

bool topk_unreached(const int32_t *slot)
{
    int32_t unreached;
    memset(&unreached, UNREACHED_BYTE, sizeof unreached);
    return *slot == unreached;
}

void topk_sort(double *score, int64_t n) { qsort(score, (size_t)n, sizeof *score, compare_down); }

const char *topk_miscount(int64_t b, int64_t got, int64_t want, char *ret_why, size_t size)
{
    if (got == want) return NULL;
    snprintf(ret_why, size, "request %lld: %lld entries are selected, should be %lld", (long long)b, (long long)got,
             (long long)want);
    return ret_why;
}

const char *topk_differ(int64_t b, const double *got, const double *want, int64_t n, char *ret_why, size_t size)
{
    for (int64_t i = 0; i < n; i++) {
        if (got[i] == want[i]) continue;
        snprintf(ret_why, size, "request %lld: number %lld of the scores selected, from the highest down, is %.9g, should be %.9g",
                 (long long)b, (long long)i + 1, got[i], want[i]);
        return ret_why;
    }
    return NULL;
}

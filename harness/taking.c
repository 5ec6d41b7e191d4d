#include "taking.h"

#include <stdbool.h>

static const int64_t NOTICED_BYTES = 1 << 20;   /* drivers hand memory out in pages of 2 MB */

enum { ENOUGH = 4 };

static bool own_is_known(const struct taking *t)
{
    return t->still.own_bytes >= 0 && t->before.own_bytes >= 0 && t->after.own_bytes >= 0;
}

int64_t taking_bytes(const struct taking *t)
{
    return own_is_known(t) ? t->after.own_bytes - t->before.own_bytes : t->before.free_bytes - t->after.free_bytes;
}

enum finding { SAYS_NOTHING, NOT_THE_KERNEL, FELL, KERNEL };

static enum finding find(const struct taking *t)
{
    int64_t drift = t->still.free_bytes - t->before.free_bytes;
    bool own = own_is_known(t);
    if (own) drift = t->before.own_bytes - t->still.own_bytes;
    if (drift > NOTICED_BYTES || drift < -NOTICED_BYTES) return SAYS_NOTHING;
    if (taking_bytes(t) <= NOTICED_BYTES) return NOT_THE_KERNEL;
    return own && t->before.free_bytes - t->after.free_bytes > NOTICED_BYTES ? KERNEL : FELL;
}

enum taken taking_judge(const struct taking *taking, int n)
{
    int fell = 0;
    for (int i = 0; i < n; i++) {
        enum finding finding = find(&taking[i]);
        if (finding == KERNEL) return TAKEN;
        if (finding == NOT_THE_KERNEL) return TAKEN_NOT;
        fell += finding == FELL;
    }
    if (fell >= ENOUGH) return TAKEN;
    return n < MOST_TAKINGS ? TAKEN_OPEN : TAKEN_NOT;
}

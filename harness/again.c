#include "again.h"

#include <string.h>
#include "quiet.h"

static double width(const struct row *row)
{
    return (row->t_hi_ns - row->t_lo_ns) / row->t_med_ns;
}

static bool quieter(const struct row *a, const struct row *b)
{
    int x = quiet_badness(a->marks), y = quiet_badness(b->marks);
    if (row_status(a) != STATUS_OK || row_status(b) != STATUS_OK) return row_failed(a) && !row_failed(b);   /* failures stay */
    return x != y ? x < y : width(a) < width(b);
}

int again_settle(struct table *table, int from)
{
    int kept = from, n = table->n;
    for (int i = from; i < n; i++) {
        struct row *row = &table->row[i];
        int twin = kept - 1;
        bool again = !strncmp(row->reason, ONCE_MORE, strlen(ONCE_MORE));
        while (again && twin >= from && !row_same_key(&table->row[twin], row)) twin--;
        if (!again || twin < from) {
            if (kept != i) table->row[kept] = *row;
            kept++;
        } else if (quieter(row, &table->row[twin])) {
            table->row[twin] = *row;
        }
    }
    table->n = kept;
    return n - kept;
}

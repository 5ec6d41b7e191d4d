/* How time grows: fits of t = t0 + a * x^e along each dimension, all else held fixed, and whether a kernel grows faster than it
 * declares. Pure functions of rows. */
#ifndef KBENCH_SCALING_H
#define KBENCH_SCALING_H

#include "table.h"

/* One size of a series. lo and hi: the interval of t. */
struct scaling_point {
    double x, t, lo, hi;
    double best;              /* fastest round; NaN unknown */
};

struct fit {
    double t0, a, exponent;   /* t0 and a are never negative */
    double lo, hi;            /* 95 % interval of the exponent */
    bool   hinge;             /* t = max(t0, a * x^e) instead, which fits clearly better */
};

/* OK: within the declaration. ABOVE: grows faster, a failure of its own. OPEN: it may, but the intervals don't tell. UNJUDGED: hot
 * rows, probes, and ops that this build doesn't know. */
enum scaling_verdict { SCALING_OK, SCALING_ABOVE, SCALING_OPEN, SCALING_UNJUDGED };

extern const char *const scaling_word[4];   /* ok, above, open, "" */

/* Begins the reason of rows that were measured once more to confirm a growth. They stand behind all others. */
#define MEASURED_AGAIN "measured again: a growth is to be confirmed"

struct scaling {
    const struct row *first, *last;         /* the smallest and the largest size */
    char              dim[24];
    const char       *unit;
    int               points;
    int64_t           from, to;             /* sizes */
    double            declared, ideal;      /* exponents; declared: the kernel's, or the ideal where it says nothing */
    struct fit        fit;                  /* ns */
    double            ratio, ratio_lo, ratio_hi;   /* t(to) / t(from), with the widest interval that both allow */
    enum scaling_verdict verdict;
    char              repeat[1536];          /* command that measures the series again */
};

struct scalings {
    int             n;
    struct scaling *of;
};

enum { SCALING_POINTS = 3, SCALING_SPREAD = 4 };   /* fewer sizes, or less between the first and the last: no fit */
extern const double SCALING_FLAT;                  /* t(to) / t(from) up to which a cost counts as flat: 1.05 */

/* Of exponents above the declared one. On a CPU what fits a cache at small sizes, scratch and all, goes to memory at large ones,
 * and that alone is worth a third. */
double scaling_room(const struct row *);                /* 0.2; on a CPU 0.5 */

/* Points ascending in x > 0, three at least. apart: what times of rows differ by beyond their intervals, as a share of t. */
struct fit scaling_fit(const struct scaling_point *, int n, double apart);

/* All series of a table, in the order of its rows. Free with scalings_free. */
struct scalings scalings_find(const struct table *);
void            scalings_free(struct scalings *);
int             scalings_above(const struct scalings *);   /* how many */
int             scalings_open(const struct scalings *);

/* scaling.csv: malloc'ed text, header always. */
char *scalings_csv(const struct scalings *, const struct table *);

/* The exponent that the row's kernel declares for a dim, or NaN where it says nothing. */
double row_declared(const struct row *, const char *dim);
/* Growth that the row's kernel declares above its op's ideal: "O(max_ctx)", or "". To stand wherever the kernel's name does. */
char *row_growth_text(const struct row *, char *ret, size_t size);

#endif

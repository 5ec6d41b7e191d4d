/* Pure functions on arrays of double. NaN in, NaN out; n = 0 gives NaN everywhere. Nothing is trimmed. */
#ifndef KBENCH_STATS_H
#define KBENCH_STATS_H

#include <stdbool.h>

struct summary {
    int    n;
    double median, lo, hi;        /* hi and lo: order-statistic interval of the median (binomial); n < 6: the extremes */
    double min, max, q1, q3, mean;
    double lag1;                  /* lag-1 autocorrelation in measured order; NaN for n < 3 or no variance */
    int    outliers;              /* outside Tukey's outer fences, q1 - 3 iqr and q3 + 3 iqr; counted, never dropped */
    bool   bimodal;               /* two modes, each >= 10 % of the samples and >= 3, apart by more than the spread within them */
    double mode_low, mode_high;   /* their medians where bimodal, else NaN */
    bool   drifting;              /* the medians of the first and last third differ by more than their intervals, n >= 9 */
};                                /* both marks: by more than 1 % of the median as well; less is not worth a word */

/* confidence 0.95 for all rows. x is in measured order and is not changed. */
struct summary stats_summarise(const double *x, int n, double confidence);

/* Order-statistic (binomial) interval of the median: 0-based ranks into the sorted sample. n < 6: 0 and n-1. */
void stats_median_ranks(int n, double confidence, int *ret_lo, int *ret_hi);

double stats_median(const double *x, int n);
double stats_geomean(const double *x, int n);   /* all > 0, else NaN */

#endif

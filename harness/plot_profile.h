/* Plots of a profile, from breakdown.csv and counters.csv of its folder: shares of a call as stacked bars, and a roofline. */
#ifndef KBENCH_PLOT_PROFILE_H
#define KBENCH_PLOT_PROFILE_H

#include "machine.h"
#include "sheet.h"

enum { PAGE_BARS = 8, MOST_BARS = 3 * PAGE_BARS };   /* of one op; what is left out the last page says */

/* How many bars an op has: rows with a breakdown of their replays. */
int   bars_count(const struct sheet *breakdown, const char *op);

/* Each gives a malloc'ed gnuplot script that draws NAME.svg, or NULL where the sheet has nothing for it. look: what plots/bars.gp
 * or plots/roofline.gp holds. Bars: those of one op, `page` from 0. ret_left_out: kernels that there are no marks for. */
char *bars_script(const struct sheet *breakdown, const char *op, int page, const char *name, const char *look);
char *roofline_script(const struct sheet *counters, const struct ceilings *, const char *name, const char *look, int *ret_left_out);

#endif

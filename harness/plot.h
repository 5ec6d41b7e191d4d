/* SVG plots of a run, by gnuplot from rows.csv. Never fails a run: returns how many were written and says why not more. */
#ifndef KBENCH_PLOT_H
#define KBENCH_PLOT_H

#include "table.h"

struct plot_result {
    int  written;
    char note[800];   /* empty, or what was in the way and what is left out: "gnuplot not found: no plots; apt-get install .." */
    int  error;       /* errno of the first file that could not be written, or 0 */
    bool unfit;       /* gnuplot, the folder or plots/lines.gp stood in the way, not the rows */
    bool refused;     /* a profile's CSV file is none; what it holds is not drawn */
};

/* Writes folder/plots/<op>-<dim>-<fixed dims>.{gp,dat,svg}: for each op and each dimension with at least two values, time
 * against it with intervals, probe and limit drawn; and the speed-up over the first kernel. At most 12, those with most points
 * first; the note says how many more there would be. Beside them <op>-fastest-<fixed dims>: who wins at each batch and context. */
struct plot_result plot_run(const char *folder, const struct table *);

#endif

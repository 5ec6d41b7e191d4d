/* How far a run is, on stderr: a bar with the time left on a terminal, one line a row elsewhere, nothing when quiet. */
#ifndef KBENCH_PROGRESS_H
#define KBENCH_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>
#include "row.h"

struct progress {
    FILE  *to;
    int    total, done, failed, width;
    double began_s;
    bool   bar, quiet, drawn;
};

/* total: rows that are going to be run; 0: unknown. is_tty: whether stderr is a terminal that understands \r and ESC [ K (not
 * TERM=dumb). */
struct progress progress_begin(int total, bool is_tty, bool quiet);
/* What runs now, under the bar's figures: "attn/mma batch=64,ctx=128K". */
void progress_now(struct progress *, const char *what);
/* A row is done. */
void progress_row(struct progress *, const struct row *);
/* Takes the bar off the terminal, so that something else can be printed; the next progress_* draws it again. */
void progress_hide(struct progress *);
void progress_end(struct progress *);

/* "0:42", "1:02:03", "-" for NaN. */
char *clock_text(double seconds, char *ret, size_t size);
/* Seconds left when `done` of `total` took `elapsed_s`; NaN where nothing can be said. */
double progress_left(int done, int total, double elapsed_s);

#endif

/* The parts of a bar of a breakdown: by time, each in a colour that is its own in all bars of the op. */
#ifndef KBENCH_BAR_PARTS_H
#define KBENCH_BAR_PARTS_H

#include "sheet.h"

enum { SEGMENTS = 7 };   /* parts with a colour of their own; the rest of a bar's is one more segment */

extern const char *const bar_colours[SEGMENTS + 1];

struct segment {
    double pct;
    char   words[80];
    int    line, colour;
    int    x, row;      /* of its words in the key */
};

struct bar {
    int            first, end;      /* lines of its replays */
    double         span_ns;
    int            n, key_rows, label_rows;
    struct segment segment[SEGMENTS + 1];
    char           label[500];
};

/* Fills in n and segment of a bar whose lines are known. before: the n bars of the op that stand before it, on whichever page. */
void bar_parts(const struct sheet *breakdown, const struct bar *before, int n, struct bar *);

#endif

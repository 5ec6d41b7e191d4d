/* Any CSV file of a run folder as text by column name, for what reads files that have no struct of their own. */
#ifndef KBENCH_SHEET_H
#define KBENCH_SHEET_H

#include "csv.h"

struct sheet {
    struct csv_in in;
    int           n, columns;
    char        **name;   /* columns */
    char        **cell;   /* n x columns; a line of another length ends the sheet */
};

/* 0; errno where it can't be read, -1 where it is no CSV with a header. */
int         sheet_read(const char *path, struct sheet *ret);
const char *sheet_text(const struct sheet *, int line, const char *column);   /* "" where there is no such column */
double      sheet_real(const struct sheet *, int line, const char *column);   /* NaN likewise, and where it is no number */
void        sheet_free(struct sheet *);

#endif

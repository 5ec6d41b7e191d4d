/* Any CSV file of a run folder as text by column name, for what reads files that have no struct of their own. */
#ifndef KBENCH_SHEET_H
#define KBENCH_SHEET_H

#include "csv.h"

struct sheet {
    struct csv_in in;
    int           n, columns;
    char        **name;   /* columns */
    char        **cell;   /* n x columns */
    int          *at;     /* n: lines of the file */
};

/* needs: columns that must stand in the header; reals: those among them that hold a number or nothing. Both end in NULL.
 * 0; errno where it can't be read, -1 where it is no such CSV or ends within a line. Why in ret_error: "FILE:LINE: ...". */
int         sheet_read(const char *path, const char *const *needs, const char *const *reals, struct sheet *ret, char *ret_error,
    size_t size);
/* The line of the file in which a line of the sheet begins. */
int         sheet_line(const struct sheet *, int line);
const char *sheet_text(const struct sheet *, int line, const char *column);   /* "" where there is no such column */
double      sheet_real(const struct sheet *, int line, const char *column);   /* NaN likewise, and where it is no number */
void        sheet_free(struct sheet *);

#endif

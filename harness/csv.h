/* RFC 4180 text and numbers that every reader takes, without knowing what the columns mean.
 *
 * Written: LF, a point as decimal mark whatever the locale, an empty cell for NaN and INT64_MIN. Read: LF or CRLF. */
#ifndef KBENCH_CSV_H
#define KBENCH_CSV_H

#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Lines being put together; zero is an empty one. A zero stands behind the text. */
struct csv_out {
    char  *text;
    size_t n, room;
    int    cells;   /* in the line begun */
};

void csv_text(struct csv_out *, const char *cell);
void csv_whole(struct csv_out *, int64_t value);
void csv_real(struct csv_out *, double value);
void csv_end(struct csv_out *);                  /* of a line */
int  csv_flush(struct csv_out *, FILE *);        /* one write of all lines; 0 or errno; empties it */
void csv_free(struct csv_out *);

/* This thread's numbers in the C locale, whatever setlocale says, until the answer is handed back to uselocale(). */
locale_t c_numbers(void);

/* The shortest text of a double that reads back as the same; "" for NaN. C locale. Room for 32 bytes. */
char *real_text(double value, char *ret);

/* All bytes of a file, with a zero behind them. 0 or errno. */
int file_read(const char *path, char **ret, size_t *ret_size);

/* A whole file in memory, read record by record; the cells lie within it. */
struct csv_in {
    char  *text;
    size_t size, at;     /* at: after the last whole record */
    int    line;         /* on which the last record began, from 1 */
    int    lines;        /* read so far */
    int    n, room;
    char **cell;
};

int  csv_open(struct csv_in *, const char *path);  /* 0 or errno */
/* 1: a record. 0: the end; what follows `at` is a line cut short. -1: not RFC 4180, and *ret_why says why. */
int  csv_next(struct csv_in *, const char **ret_why);
void csv_close(struct csv_in *);

/* The whole cell as a number, in decimal and finite. 0, or non-zero where it's not one. An empty cell is INT64_MIN or NaN. */
int cell_whole(const char *cell, int64_t *ret);
int cell_real(const char *cell, double *ret);

#endif

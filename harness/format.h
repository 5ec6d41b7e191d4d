/* Numbers and long texts as people read them. Everything ends up in plain columns, so nothing here knows a colour. */
#ifndef KBENCH_FORMAT_H
#define KBENCH_FORMAT_H

#include <stdint.h>
#include <stdio.h>
#include "row.h"

/* Each writes to ret and returns it; NaN gives "-". Room for 32 bytes is enough for all but dims_text. */
char *ns_text(double ns, char *ret, size_t size);                     /* 41234.5 -> "41.2 us" */
char *ns_range_text(double lo, double hi, char *ret, size_t size);    /* "41.1..41.4 us" */
char *ratio_text(double ratio, char *ret, size_t size);               /* "131x", "1.02x" */
char *error_text(double error, char *ret, size_t size);               /* "1.1e-3" */
char *percent_text(double percent, char *ret, size_t size);           /* "28.9 %", "0.21 %" */
char *amount_text(double value, char *ret, size_t size);              /* "4,550", "23.4": three digits or thousands */

/* What a table calls the row: its kernel, its tunables where the same kernel stands there with others, and the growth that it
 * declares above its op's ideal. */
char *label_text(const struct row *, const struct row *rows, int n, char *ret, size_t size);

/* A copy without control characters, which a terminal would obey. */
char *tame_text(const char *from, char *ret, size_t size);

/* Prints words, broken so that no line exceeds width; `column`: where the cursor is; later lines begin at indent. Ends the line. */
void wrap_words(FILE *, int width, int column, int indent, const char *words);

/* The same for a shell command, which still does the same when copied: lines end in a backslash, long quoted words are cut into two
 * quoted ones. */
void wrap_command(FILE *, int width, int column, int indent, const char *command);

#endif

/* gnuplot as a program that may be missing, old, without SVG, or fail: every outcome is words, none ends a run. No shell. */
#ifndef KBENCH_GNUPLOT_H
#define KBENCH_GNUPLOT_H

#include <stddef.h>
#include <stdio.h>

/* 0 where `gnuplot` is on PATH, at least 5.0 and knows the svg terminal; else non-zero and in ret_why what is in the way and what
 * to do. */
int gnuplot_probe(char *ret_why, size_t size);

/* Runs script (a file name) in folder, for at most 60 s. 0, or non-zero and in ret_why its first words of complaint. */
int gnuplot_run(const char *folder, const char *script, char *ret_why, size_t size);

/* Words of any kind between quotes of the plain kind, where nothing is special but the quote itself. */
void gnuplot_quoted(FILE *, const char *words);
/* "figure = 'name.svg'" and the end of the line. */
void gnuplot_file(FILE *, const char *variable, const char *name, const char *ending);
/* First line of a block of points: the words that columnheader(1) gives. No words end the block or the line. */
void gnuplot_header(FILE *, const char *words);

/* Makes a name of any cells, in place, one of a file in the folder at hand: of letters that every file system takes, and no option
 * of gnuplot's. Returns it. */
char *gnuplot_file_name(char *name);

#endif

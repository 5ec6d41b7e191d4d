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

#endif

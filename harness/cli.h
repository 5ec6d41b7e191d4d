/* The command line: one table of options, from which parsing and --help are made. */
#ifndef KBENCH_CLI_H
#define KBENCH_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include "plan.h"

enum { MAX_LIST = 64 };

struct list {            /* of words given by a repeated option or as free arguments */
    int         n;
    const char *word[MAX_LIST];
};

enum cache_choice { CACHE_COLD, CACHE_HOT, CACHE_BOTH };

struct cli {
    const char  *command;          /* "sweep" */
    struct list  args;             /* free arguments: job files, run folders, a topic of list */
    struct list  kernels;          /* -k */
    struct list  skip_kernels;     /* --skip */
    struct list  axes;             /* -a */
    struct list  tunes;            /* -t */
    struct list  plugins;          /* --plugin */
    const char  *device;           /* auto, host, cuda, cuda:N */
    const char  *out, *resume, *row, *wrap;
    uint64_t     seed;             bool seed_given;
    enum cache_choice cache;       bool cache_given;
    double       budget_s;         /* 0: none */
    double       cap_s;            /* --max-time: per row, 0: default */
    double       width_pct;        /* --noise: stop when the interval is this narrow, 0: default */
    double       timeout_s;        /* a check or a sample that takes longer is a timeout, 0: default */
    int          rounds;           /* --rounds: exactly so many, 0: by width */
    bool         force, dry_run, json, markdown, no_plots, strict, quiet, help;
    int          verbose;
    const char  *colour;           /* auto, always, never */
    const char  *command_line;     /* all words as given, quoted: for env.json */
};

/* Dies with EXIT_USAGE and the nearest name on an unknown command, option or value. --help and --version print and exit 0. */
struct cli cli_parse(int argc, char **argv);

#endif

/* The command line: one table of options, from which parsing and --help are made. */
#ifndef KBENCH_CLI_H
#define KBENCH_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "plan.h"

enum { MAX_LIST = 64, MAX_OPTIONS = 48 };

struct list {            /* of words given by a repeated option or as free arguments */
    int         n;
    const char *word[MAX_LIST];
};

enum cache_choice { CACHE_COLD, CACHE_HOT, CACHE_BOTH };

/* Where an option's value is from; a later one wins. */
enum origin { ORIGIN_DEFAULT, ORIGIN_JOB_FILE, ORIGIN_ENVIRONMENT, ORIGIN_COMMAND_LINE };

struct cli {
    const char  *command;          /* "sweep" */
    struct list  args;             /* free arguments: job files, run folders, a topic of list */
    struct list  kernels;          /* -k */
    struct list  skip_kernels;     /* --skip */
    struct list  first;            /* --first: these lead their group, speed-up is over the first kernel */
    struct list  axes;             /* -a */
    struct list  zips;             /* --zip */
    struct list  tunes;            /* -t */
    struct list  plugins;          /* --plugin */
    const char  *device;           /* auto, host, cuda, cuda:N */
    const char  *out, *resume, *row, *wrap;
    uint64_t     seed;             bool seed_given;
    enum cache_choice cache;       bool cache_given;
    double       budget_s;         /* 0: none */
    double       cap_s;            /* --max-time: per row, 0: default */
    double       width_pct;        /* --noise: stop when the interval is this narrow, 0: default */
    bool         floors;           /* --floors */
    bool         no_lock;          /* --no-lock: run beside others on the same device */
    double       timeout_s;        /* a check or a sample that takes longer is a timeout, 0: default */
    double       reference_s;      /* --reference-s: of the CPU for a problem's references; 0: as little as must be */
    int          rounds;           /* --rounds: exactly so many, 0: by width */
    bool         force, dry_run, json, markdown, no_plots, strict, quiet, help, show_config;
    bool         static_facts;     /* --static */
    const char  *junit;            /* --junit */
    char         ran[512];         /* where a sweep put its rows, for a command that goes on with them */
    int          verbose;
    const char  *colour;           /* auto, always, never */
    const char  *command_line;     /* all words as given, quoted: for env.json */
    unsigned char origin[MAX_OPTIONS];  /* enum origin, by the row of the option table */
};

/* Dies with EXIT_USAGE and the nearest name on an unknown command, option, value or KBENCH_ variable of the environment. --help
 * and --version print and exit 0. */
struct cli cli_parse(int argc, char **argv);

void       cli_free(struct cli *);

/* What a job file's [global] sets ("budget" = "30s") unless the command line or the environment did. 0, or non-zero with "what:
 * why" in ret_error. */
int cli_default(struct cli *, const char *long_name, const char *value, char *ret_error, size_t size);

/* --show-config: every option of the command, its value and where that is from. */
void cli_show(FILE *, const struct cli *);

/* "30s", "2m", "1h", "500ms" or seconds. 0, or non-zero. */
int cli_seconds(const char *word, double *ret);

/* --reference-s, unless it is given. */
#define REFERENCE_S 0.12

#endif

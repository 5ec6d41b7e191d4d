/* The option table, as parsing and --help see it. */
#ifndef KBENCH_CLI_HELP_H
#define KBENCH_CLI_HELP_H

#include <stdio.h>
#include "cli.h"

struct cli_command {
    const char *name, *arguments, *help;
};

enum option_kind {
    OPT_FLAG, OPT_MORE, OPT_TEXT, OPT_LIST /* comma list, adds up */, OPT_AXIS /* whole words, adds up */, OPT_CACHE, OPT_COLOUR,
    OPT_DEVICE, OPT_U64, OPT_COUNT, OPT_SECONDS, OPT_DURATION /* may be 0 */, OPT_PERCENT,
};

struct cli_option {
    const char      *name;
    char             letter;     /* 0: none */
    const char      *argument;   /* NULL: a flag */
    enum option_kind kind;
    size_t           offset;     /* of the value in struct cli */
    size_t           given;      /* of a bool that says so, or 0 */
    unsigned         commands;   /* bit i: row i of cli_commands has it */
    const char      *help;
};

extern const struct cli_command cli_commands[];   /* ended by a NULL name, as is cli_options */
extern const struct cli_option  cli_options[];

/* Stores a value of that origin unless a stronger one stands there. NULL, or why it is none ("is not one of ..."). */
const char *cli_set(struct cli *, int option, const char *value, enum origin);
/* The same whatever stands there; lists add up. */
const char *cli_store(struct cli *, const struct cli_option *, const char *value);
int         cli_option_index(const char *long_name);                               /* that of the last row where there is none */
int         cli_choice(const char *word, const char *const *words, int n);         /* n where it is none of them */
const char *cli_add_words(struct list *, const char *value, bool split);           /* split: a comma list. NULL, or why not */
void        cli_environment(struct cli *);                                 /* dies on a KBENCH_ variable that is no option */

void cli_help(FILE *, const char *command);   /* 80 columns */
void cli_help_commands(FILE *);
void cli_version(FILE *);

#endif

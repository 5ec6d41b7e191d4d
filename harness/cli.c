/* Words to struct cli: one table, three sources (command line, environment, job file), one function that stores a value. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "cli_help.h"
#include "nearest.h"

static int command_index(const char *name)
{
    int i = 0;
    while (cli_commands[i].name && strcmp(cli_commands[i].name, name)) i++;
    return i;
}

int cli_option_index(const char *name)
{
    int i = 0;
    while (cli_options[i].name && strcmp(cli_options[i].name, name)) i++;
    return i;
}

/* Lists of a stronger origin take the place of a weaker one's; within one they add up. */
const char *cli_set(struct cli *cli, int option, const char *value, enum origin origin)
{
    const struct cli_option *o = &cli_options[option];
    if (cli->origin[option] > origin) return NULL;
    if (cli->origin[option] < origin && (o->kind == OPT_LIST || o->kind == OPT_AXIS))
        ((struct list *)((char *)cli + o->offset))->n = 0;
    cli->origin[option] = (unsigned char)origin;
    return cli_store(cli, o, value);
}

static _Noreturn void unknown_option(const struct cli *cli, const char *word, size_t length)
{
    char        names[MAX_OPTIONS][40], given[64], hint[96];
    const char *known[MAX_OPTIONS];
    int         n = 0, mask = 1 << command_index(cli->command);
    for (int i = 0; cli_options[i].name; i++)
        if (cli_options[i].commands & mask) known[n] = text(names[n], sizeof names[n], "--%s", cli_options[i].name), n++;
    text(given, sizeof given, "%.*s", (int)length, word);
    die(EXIT_USAGE, "%s: no such option of '%s'%s", given, cli->command, did_you_mean(given, known, n, hint, sizeof hint));
}

/* The row of the table for "--name", "--name=value" or "-x"; NULL where another command has it: then it is named. */
static int find_option(const struct cli *cli, const char *word, size_t length)
{
    int mask = 1 << command_index(cli->command), found = -1;
    for (int i = 0; cli_options[i].name; i++) {
        const struct cli_option *o = &cli_options[i];
        bool is_long = length > 2 && word[1] == '-' && strlen(o->name) == length - 2 && !strncmp(o->name, word + 2, length - 2);
        if (is_long || (length == 2 && word[1] != '-' && o->letter == word[1])) found = i;
    }
    if (found < 0) unknown_option(cli, word, length);
    if (cli_options[found].commands & mask) return found;
    char others[128] = "";
    for (int i = 0; cli_commands[i].name; i++)
        if (cli_options[found].commands & 1 << i)
            text(others + strlen(others), sizeof others - strlen(others), "%s%s", *others ? ", " : "", cli_commands[i].name);
    die(EXIT_USAGE, "--%s: not an option of '%s', but of %s", cli_options[found].name, cli->command, others);
}

/* One option with its value; returns how many words of argv it took. */
static int take_option(struct cli *cli, char **argv)
{
    const char *word = argv[0], *value = NULL;
    bool        is_long = word[1] == '-';
    size_t      length = is_long ? strcspn(word, "=") : 2;
    int         option = find_option(cli, word, length), taken = 1;
    const struct cli_option *o = &cli_options[option];
    if (is_long ? word[length] == '=' : word[2] != 0) value = word + length + is_long;
    if (!o->argument) {
        if (value && is_long) die(EXIT_USAGE, "--%s: takes no value, got '%s'", o->name, value);
        cli_set(cli, option, "", ORIGIN_COMMAND_LINE);
        if (value) {                         /* -vv, -qv: the letters behind it are options of their own */
            char rest[64];
            char *again[] = {text(rest, sizeof rest, "-%s", value), NULL};
            take_option(cli, again);
        }
        return 1;
    }
    if (!value && !(value = argv[1])) die(EXIT_USAGE, "--%s: a value is missing, %s", o->name, o->argument);
    else if (value == argv[1]) taken = 2;
    const char *why = cli_set(cli, option, value, ORIGIN_COMMAND_LINE);
    if (why) die(EXIT_USAGE, "--%s %s: %s", o->name, value, why);
    return taken;
}

static const char *command_of(const char *word)
{
    int i = command_index(word);
    if (cli_commands[i].name) return cli_commands[i].name;
    const char *names[32];
    char        hint[96];
    int         n = 0;
    for (; cli_commands[n].name && n < COUNT(names); n++) names[n] = cli_commands[n].name;
    die(EXIT_USAGE, "%s: no such command ('kbench --help' lists them)%s", word, did_you_mean(word, names, n, hint, sizeof hint));
}

static void first_words(struct cli *cli, int argc, char **argv)
{
    bool help = argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"));
    if (argc < 2) {
        cli_help_commands(stderr);
        exit(EXIT_USAGE);
    }
    if (!strcmp(argv[1], "--version")) {
        cli_version(stdout);
        exit(EXIT_OK);
    }
    if (help && argc > 2) {
        cli_help(stdout, command_of(argv[2]));
        exit(EXIT_OK);
    }
    if (help) {
        cli_help_commands(stdout);
        exit(EXIT_OK);
    }
    if (argv[1][0] == '-') die(EXIT_USAGE, "%s: the command comes first, as in 'kbench sweep %s'", argv[1], argv[1]);
    cli->command = command_of(argv[1]);
}

static void add_argument(struct cli *cli, const char *word)
{
    if (!*word) die(EXIT_USAGE, "'': an empty argument; leave it out, or look at the variable that it came from");
    if (cli_add_words(&cli->args, word, false))
        die(EXIT_USAGE, "%.60s: more than %d arguments; use a glob or a job file", word, MAX_LIST);
}

struct cli cli_parse(int argc, char **argv)
{
    struct cli cli = {.device = "auto", .colour = "auto", .seed = 1, .reference_s = REFERENCE_S,
        .command_line = shell_words(argc, argv)};
    first_words(&cli, argc, argv);
    cli_environment(&cli);
    for (int i = 2; i < argc;) {
        if (!strcmp(argv[i], "--")) {
            for (i++; i < argc; i++)
                add_argument(&cli, argv[i]);
        } else if (argv[i][0] == '-' && argv[i][1]) {
            i += take_option(&cli, argv + i);
        } else {
            add_argument(&cli, argv[i++]);
        }
    }
    if (cli.help) {
        cli_help(stdout, cli.command);
        exit(EXIT_OK);
    }
    if (cli.args.n && !*cli_commands[command_index(cli.command)].arguments)
        die(EXIT_USAGE, "%.60s: '%s' takes no argument but options; 'kbench %s --help' lists them", cli.args.word[0], cli.command,
            cli.command);
    return cli;
}

void cli_free(struct cli *cli)
{
    struct list *const lists[] = {
        &cli->args, &cli->kernels, &cli->skip_kernels, &cli->first, &cli->axes, &cli->zips, &cli->tunes, &cli->plugins};
    for (int i = 0; i < COUNT(lists); i++)
        for (int w = 0; w < lists[i]->n; w++) free((char *)lists[i]->word[w]);
    free((char *)cli->command_line);
    *cli = (struct cli){0};
}

int cli_default(struct cli *cli, const char *long_name, const char *value, char *ret_error, size_t size)
{
    int         option = cli_option_index(long_name);
    const char *why = cli_options[option].name ? cli_set(cli, option, value, ORIGIN_JOB_FILE) : "no such option";
    if (why) text(ret_error, size, "%s = %s: %s", long_name, value, why);
    return why != NULL;
}

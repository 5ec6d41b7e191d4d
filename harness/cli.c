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

extern char **environ;

#define AT(field) offsetof(struct cli, field)

const struct cli_command cli_commands[] = {
    {"list", "[ops|kernels|devices|sweeps|columns|results]", "what there is to run, and what was run"},
    {"check", "[FILE.ini ...]", "right or wrong, no timing"},
    {"sweep", "[FILE.ini ...]", "check, time, write rows and plots; default: sweeps/default.ini"},
    {"plot", "RUN", "draw the plots of a run folder again"},
    {"report", "RUN", "the table of a run folder, for the terminal or as Markdown"},
    {"doctor", "", "engines, toolkit, libraries, timer floors, measured ceilings"},
    {0},
};

enum { LIST = 1, CHECK = 2, SWEEP = 4, PLOT = 8, REPORT = 16, DOCTOR = 32, RUNS = CHECK | SWEEP, ALL = 63 };

const struct cli_option cli_options[] = {
    {"kernel", 'k', "GLOB[,GLOB]", OPT_LIST, AT(kernels), 0, RUNS, "kernels to run, as in 'attn/*'; repeatable"},
    {"skip", 0, "GLOB[,GLOB]", OPT_LIST, AT(skip_kernels), 0, RUNS, "kernels to leave out; repeatable"},
    {"first", 0, "GLOB[,GLOB]", OPT_LIST, AT(first), 0, RUNS, "kernels that lead their group: speed-up is over the first"},
    {"axis", 'a', "DIM=LIST", OPT_AXIS, AT(axes), 0, RUNS,
        "values of a dimension: 1,16,64 or 8K:128K:*2 or 64:512:+64; repeatable"},
    {"zip", 0, "DIM,DIM", OPT_AXIS, AT(zips), 0, RUNS, "walk these axes together instead of crossing them"},
    {"tune", 't', "NAME=LIST", OPT_AXIS, AT(tunes), 0, RUNS,
        "values of a kernel's tunable, as in splits=1:16:*2; repeatable"},
    {"row", 0, "'KERNEL DIM=N,...'", OPT_TEXT, AT(row), 0, RUNS,
        "one kernel on one problem, as in 'attn/mma batch=64,ctx=128K'"},
    {"cache", 0, "cold|hot|both", OPT_CACHE, AT(cache), AT(cache_given), RUNS,
        "no input in cache (default), all of it, or a row of each"},
    {"seed", 0, "N", OPT_U64, AT(seed), AT(seed_given), RUNS, "seed of the data; default 1"},
    {"device", 0, "host|cuda[:N]|auto", OPT_DEVICE, AT(device), 0, RUNS | LIST | DOCTOR,
        "where to run; auto: a GPU where there is one"},
    {"plugin", 0, "FILE.so", OPT_LIST, AT(plugins), 0, RUNS | LIST,
        "a kernel of your own, built as a shared object; repeatable"},
    {"wrap", 0, "'COMMAND ...'", OPT_TEXT, AT(wrap), 0, RUNS,
        "put a tool before the worker, as in 'ncu --set full'; nothing is timed"},
    {"budget", 0, "TIME", OPT_SECONDS, AT(budget_s), 0, SWEEP, "time for the whole sweep, shared over its rows: 30s, 2m"},
    {"max-time", 0, "TIME", OPT_SECONDS, AT(cap_s), 0, SWEEP, "stop timing a row after this"},
    {"noise", 0, "PCT", OPT_PERCENT, AT(width_pct), 0, SWEEP,
        "stop timing a row when its interval is this narrow, in % of the median"},
    {"rounds", 0, "N", OPT_COUNT, AT(rounds), 0, SWEEP, "exactly so many rounds a row instead"},
    {"timeout", 0, "TIME", OPT_SECONDS, AT(timeout_s), 0, RUNS, "a check or sample that takes longer is a timeout"},
    {"out", 0, "DIR", OPT_TEXT, AT(out), 0, RUNS | PLOT, "run folder; default: results/runs/<time>-<sweep>"},
    {"resume", 0, "DIR", OPT_TEXT, AT(resume), 0, SWEEP, "finish the run in this folder"},
    {"force", 0, NULL, OPT_FLAG, AT(force), 0, RUNS | PLOT | REPORT, "overwrite what exists"},
    {"dry-run", 'n', NULL, OPT_FLAG, AT(dry_run), 0, RUNS,
        "print the plan with an estimate of time and memory, run nothing"},
    {"show-config", 0, NULL, OPT_FLAG, AT(show_config), 0, RUNS,
        "print the merged options and where each is from, run nothing"},
    {"no-plots", 0, NULL, OPT_FLAG, AT(no_plots), 0, SWEEP, "rows only"},
    {"strict", 0, NULL, OPT_FLAG, AT(strict), 0, RUNS | REPORT, "exit 4 where a row carries a mark"},
    {"json", 0, NULL, OPT_FLAG, AT(json), 0, LIST | DOCTOR, "machine-readable"},
    {"markdown", 0, NULL, OPT_FLAG, AT(markdown), 0, SWEEP | REPORT, "the table as Markdown"},
    {"color", 0, "auto|always|never", OPT_COLOUR, AT(colour), 0, ALL, "default: auto"},
    {"verbose", 'v', NULL, OPT_MORE, AT(verbose), 0, ALL, "more talk on stderr; twice: yet more"},
    {"quiet", 'q', NULL, OPT_FLAG, AT(quiet), 0, ALL, "no progress, only results and errors"},
    {"help", 'h', NULL, OPT_FLAG, AT(help), 0, ALL, "this text"},
    {0},
};

_Static_assert(COUNT(cli_options) <= MAX_OPTIONS, "origin[] has room for every option");

/* Variables of the environment that are no option: the launcher's own. */
static const char *const launcher_words[] = {"KBENCH_BUILD", "KBENCH_INSTALL", "KBENCH_MESON", "KBENCH_ROOT"};

static int command_index(const char *name) {
    int i = 0;
    while (cli_commands[i].name && strcmp(cli_commands[i].name, name)) i++;
    return i;
}

static int option_index(const char *name) {
    int i = 0;
    while (cli_options[i].name && strcmp(cli_options[i].name, name)) i++;
    return i;
}

int cli_seconds(const char *word, double *ret) {
    static const struct {
        const char *unit;
        double s;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char  *end;
    double value = strtod(word, &end);
    if (end == word || !(isdigit((unsigned char)*word) || *word == '.') || strpbrk(word, "xXpP")) return 1;
    for (int i = 0; i < COUNT(units); i++)
        if (!strcmp(end, units[i].unit) && value * units[i].s > 0 && value * units[i].s < 1e7) return *ret = value * units[i].s, 0;
    return 1;
}

static int whole(const char *word, uint64_t *ret) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(word, &end, 10);
    if (!isdigit((unsigned char)*word) || *end || errno) return 1;
    *ret = value;
    return 0;
}

static bool device_word(const char *word) {
    uint64_t n;
    if (!strncmp(word, "cuda:", 5)) return !whole(word + 5, &n) && n < 1024;
    return !strcmp(word, "auto") || !strcmp(word, "host") || !strcmp(word, "cuda");
}

static int choice(const char *word, const char *const *words, int n) {
    int i = 0;
    while (i < n && strcmp(words[i], word)) i++;
    return i;
}

/* Adds the words of a comma list (or the word as it is) to an option's list. */
static const char *add_words(struct list *list, const char *value, bool split) {
    for (const char *p = value; *p || p == value;) {
        size_t n = split ? strcspn(p, ",") : strlen(p);
        if (!n) return "an empty word; remove the comma";
        if (list->n == MAX_LIST) return "more than 64 words; use a glob or a job file";
        list->word[list->n++] = text(must_alloc(n + 1, 1), n + 1, "%.*s", (int)n, p);
        p += n;
        if (*p == ',' && !*++p) return "an empty word; remove the comma";
    }
    return NULL;
}

/* NULL, or why the value is none for this option. */
static const char *store(struct cli *cli, const struct cli_option *o, const char *value) {
    static const char *const caches[] = {"cold", "hot", "both"}, *const colours[] = {"auto", "always", "never"};
    void    *at = (char *)cli + o->offset;
    uint64_t n;
    double   x;
    char    *end;
    switch (o->kind) {
    case OPT_FLAG: *(bool *)at = true; break;
    case OPT_MORE: ++*(int *)at; break;
    case OPT_TEXT:
        if (!*value) return "is empty";
        *(const char **)at = value;
        break;
    case OPT_LIST: return add_words(at, value, o->offset != AT(plugins));
    case OPT_AXIS: return add_words(at, value, false);
    case OPT_CACHE:
        if (choice(value, caches, COUNT(caches)) == COUNT(caches)) return "is not one of cold, hot, both";
        *(enum cache_choice *)at = (enum cache_choice)choice(value, caches, COUNT(caches));
        break;
    case OPT_COLOUR:
        if (choice(value, colours, COUNT(colours)) == COUNT(colours)) return "is not one of auto, always, never";
        *(const char **)at = value;
        break;
    case OPT_DEVICE:
        if (!device_word(value)) return "is not one of auto, host, cuda, cuda:N";
        *(const char **)at = value;
        break;
    case OPT_U64:
        if (whole(value, &n) || n > INT64_MAX) return "is not a whole number from 0 to 2^63-1";   /* a cell of rows.csv holds it */
        *(uint64_t *)at = n;
        break;
    case OPT_COUNT:
        if (whole(value, &n) || n < 1 || n > 1000000) return "is not a whole number from 1 to 1000000";
        *(int *)at = (int)n;
        break;
    case OPT_SECONDS:
        if (cli_seconds(value, &x)) return "is not a time above 0, as in 30s, 2m or 500ms";
        *(double *)at = x;
        break;
    case OPT_PERCENT:
        x = strtod(value, &end);
        if (*end == '%') end++;
        if (end == value || *end || !(x > 0 && x <= 100)) return "is not a percentage above 0 and up to 100";
        *(double *)at = x;
        break;
    }
    if (o->given) *(bool *)((char *)cli + o->given) = true;
    return NULL;
}

/* Lists of a stronger origin take the place of a weaker one's; within one they add up. */
static const char *set(struct cli *cli, int option, const char *value, enum origin origin) {
    const struct cli_option *o = &cli_options[option];
    if (cli->origin[option] > origin) return NULL;
    if (cli->origin[option] < origin && (o->kind == OPT_LIST || o->kind == OPT_AXIS))
        ((struct list *)((char *)cli + o->offset))->n = 0;
    cli->origin[option] = (unsigned char)origin;
    return store(cli, o, value);
}

/* KBENCH_MAX_TIME -> max-time; "" where it can't be one. */
static char *variable_option(const char *name, size_t length, char *ret, size_t size) {
    size_t prefix = strlen("KBENCH_"), n = length - prefix;
    if (n >= size) n = 0;
    for (size_t i = 0; i < n; i++) ret[i] = name[prefix + i] == '_' ? '-' : (char)tolower((unsigned char)name[prefix + i]);
    ret[n] = 0;
    return ret;
}

static _Noreturn void unknown_variable(const char *name, size_t length) {
    char        names[MAX_OPTIONS][40], word[64], hint[96];
    const char *known[MAX_OPTIONS + COUNT(launcher_words)];
    int         n = 0;
    for (int i = 0; cli_options[i].name; i++) {
        text(names[i], sizeof names[i], "KBENCH_%s", cli_options[i].name);
        for (char *c = names[i]; *c; c++) *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
        known[n++] = names[i];
    }
    for (int i = 0; i < COUNT(launcher_words); i++) known[n++] = launcher_words[i];
    text(word, sizeof word, "%.*s", (int)length, name);
    die(EXIT_USAGE, "%s in the environment: no such option%s", word, did_you_mean(word, known, n, hint, sizeof hint));
}

static void environment_flag(struct cli *cli, int option, const char *name, const char *value) {
    static const char *const yes[] = {"1", "yes", "true", "on"}, *const no[] = {"", "0", "no", "false", "off"};
    if (choice(value, yes, COUNT(yes)) < COUNT(yes)) set(cli, option, value, ORIGIN_ENVIRONMENT);
    else if (choice(value, no, COUNT(no)) == COUNT(no))
        die(EXIT_USAGE, "%s=%s in the environment: neither yes nor no", name, value);
}

static void read_environment(struct cli *cli) {
    for (char **e = environ; e && *e; e++) {
        if (strncmp(*e, "KBENCH_", 7)) continue;
        size_t length = strcspn(*e, "=");
        char   word[64];
        bool   launcher = false;
        for (int i = 0; i < COUNT(launcher_words); i++)
            launcher |= strlen(launcher_words[i]) == length && !strncmp(*e, launcher_words[i], length);
        if (launcher) continue;
        int option = option_index(variable_option(*e, length, word, sizeof word));
        if (!*word || !cli_options[option].name) unknown_variable(*e, length);
        const char *value = (*e)[length] ? *e + length + 1 : "";
        char        name[64];
        text(name, sizeof name, "%.*s", (int)length, *e);
        if (cli_options[option].kind == OPT_FLAG || cli_options[option].kind == OPT_MORE) {
            environment_flag(cli, option, name, value);
            continue;
        }
        const char *why = set(cli, option, value, ORIGIN_ENVIRONMENT);
        if (why) die(EXIT_USAGE, "%s=%s in the environment: %s", name, value, why);
    }
}

static _Noreturn void unknown_option(const struct cli *cli, const char *word, size_t length) {
    char        names[MAX_OPTIONS][40], given[64], hint[96];
    const char *known[MAX_OPTIONS];
    int         n = 0, mask = 1 << command_index(cli->command);
    for (int i = 0; cli_options[i].name; i++)
        if (cli_options[i].commands & mask) known[n] = text(names[n], sizeof names[n], "--%s", cli_options[i].name), n++;
    text(given, sizeof given, "%.*s", (int)length, word);
    die(EXIT_USAGE, "%s: no such option of '%s'%s", given, cli->command, did_you_mean(given, known, n, hint, sizeof hint));
}

/* The row of the table for "--name", "--name=value" or "-x"; NULL where another command has it: then it is named. */
static int find_option(const struct cli *cli, const char *word, size_t length) {
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
static int take_option(struct cli *cli, char **argv) {
    const char *word = argv[0], *value = NULL;
    bool        is_long = word[1] == '-';
    size_t      length = is_long ? strcspn(word, "=") : 2;
    int         option = find_option(cli, word, length), taken = 1;
    const struct cli_option *o = &cli_options[option];
    if (is_long ? word[length] == '=' : word[2] != 0) value = word + length + is_long;
    if (!o->argument) {
        if (value && is_long) die(EXIT_USAGE, "--%s: takes no value, got '%s'", o->name, value);
        set(cli, option, "", ORIGIN_COMMAND_LINE);
        if (value) {                         /* -vv, -qv: the letters behind it are options of their own */
            char rest[64];
            char *again[] = {text(rest, sizeof rest, "-%s", value), NULL};
            take_option(cli, again);
        }
        return 1;
    }
    if (!value && !(value = argv[1])) die(EXIT_USAGE, "--%s: a value is missing, %s", o->name, o->argument);
    else if (value == argv[1]) taken = 2;
    const char *why = set(cli, option, value, ORIGIN_COMMAND_LINE);
    if (why) die(EXIT_USAGE, "--%s %s: %s", o->name, value, why);
    return taken;
}

/* argv as one line that a shell reads back. */
static char *quote_words(int argc, char **argv) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
    size_t size = 1;
    for (int i = 0; i < argc; i++) size += 4 * strlen(argv[i]) + 3;
    char *ret = must_alloc(size, 1), *p = ret;
    for (int i = 0; i < argc; i++) {
        bool bare = *argv[i] && !argv[i][strspn(argv[i], plain)];
        if (i) *p++ = ' ';
        if (!bare) *p++ = '\'';
        for (const char *c = argv[i]; *c; c++) {
            if (*c == '\'') p = stpcpy(p, "'\\''");
            else *p++ = *c;
        }
        if (!bare) *p++ = '\'';
    }
    return ret;
}

static const char *command_of(const char *word) {
    int i = command_index(word);
    if (cli_commands[i].name) return cli_commands[i].name;
    const char *names[COUNT(cli_commands)];
    char        hint[96];
    int         n = 0;
    while (cli_commands[n].name) names[n] = cli_commands[n].name, n++;
    die(EXIT_USAGE, "%s: no such command ('kbench --help' lists them)%s", word, did_you_mean(word, names, n, hint, sizeof hint));
}

static void first_words(struct cli *cli, int argc, char **argv) {
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

struct cli cli_parse(int argc, char **argv) {
    struct cli cli = {.device = "auto", .colour = "auto", .seed = 1, .command_line = quote_words(argc, argv)};
    first_words(&cli, argc, argv);
    read_environment(&cli);
    for (int i = 2; i < argc;) {
        if (!strcmp(argv[i], "--")) {
            for (i++; i < argc; i++)
                if (add_words(&cli.args, argv[i], false)) die(EXIT_USAGE, "%s: more than %d arguments", argv[i], MAX_LIST);
        } else if (argv[i][0] == '-' && argv[i][1]) {
            i += take_option(&cli, argv + i);
        } else if (add_words(&cli.args, argv[i], false)) {
            die(EXIT_USAGE, "%s: an empty argument, or more than %d of them", argv[i], MAX_LIST);
        } else {
            i++;
        }
    }
    if (cli.help) {
        cli_help(stdout, cli.command);
        exit(EXIT_OK);
    }
    return cli;
}

void cli_free(struct cli *cli) {
    struct list *const lists[] = {
        &cli->args, &cli->kernels, &cli->skip_kernels, &cli->first, &cli->axes, &cli->zips, &cli->tunes, &cli->plugins};
    for (int i = 0; i < COUNT(lists); i++)
        for (int w = 0; w < lists[i]->n; w++) free((char *)lists[i]->word[w]);
    free((char *)cli->command_line);
    *cli = (struct cli){0};
}

int cli_default(struct cli *cli, const char *long_name, const char *value, char *ret_error, size_t size) {
    int         option = option_index(long_name);
    const char *why = cli_options[option].name ? set(cli, option, value, ORIGIN_JOB_FILE) : "no such option";
    if (why) text(ret_error, size, "%s = %s: %s", long_name, value, why);
    return why != NULL;
}

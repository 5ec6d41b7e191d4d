/* KBENCH_<LONG_OPTION> of the environment: weaker than the command line, stronger than a job file. */
#include <ctype.h>
#include <string.h>

#include "base.h"
#include "cli_help.h"
#include "nearest.h"

extern char **environ;

/* Variables of the environment that are no option: the launcher's own. */
static const char *const launcher_words[] = {"KBENCH_BUILD", "KBENCH_INSTALL", "KBENCH_MESON", "KBENCH_ROOT"};

/* KBENCH_MAX_TIME -> max-time; "" where it can't be one. */
static char *variable_option(const char *name, size_t length, char *ret, size_t size)
{
    size_t prefix = strlen("KBENCH_"), n = length - prefix;
    if (n >= size) n = 0;
    for (size_t i = 0; i < n; i++) ret[i] = name[prefix + i] == '_' ? '-' : (char)tolower((unsigned char)name[prefix + i]);
    ret[n] = 0;
    return ret;
}

static _Noreturn void unknown_variable(const char *name, size_t length)
{
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

static void environment_flag(struct cli *cli, int option, const char *name, const char *value)
{
    static const char *const yes[] = {"1", "yes", "true", "on"}, *const no[] = {"", "0", "no", "false", "off"};
    if (cli_choice(value, yes, COUNT(yes)) < COUNT(yes)) cli_set(cli, option, value, ORIGIN_ENVIRONMENT);
    else if (cli_choice(value, no, COUNT(no)) == COUNT(no))
        die(EXIT_USAGE, "%s=%s in the environment: neither yes nor no", name, value);
}

void cli_environment(struct cli *cli)
{
    for (char **e = environ; e && *e; e++) {
        if (strncmp(*e, "KBENCH_", 7)) continue;
        size_t length = strcspn(*e, "=");
        char   word[64];
        bool   launcher = false;
        for (int i = 0; i < COUNT(launcher_words); i++)
            launcher |= strlen(launcher_words[i]) == length && !strncmp(*e, launcher_words[i], length);
        if (launcher) continue;
        int option = cli_option_index(variable_option(*e, length, word, sizeof word));
        if (!*word || !cli_options[option].name) unknown_variable(*e, length);
        const char *value = (*e)[length] ? *e + length + 1 : "";
        char        name[64];
        text(name, sizeof name, "%.*s", (int)length, *e);
        if (cli_options[option].kind == OPT_FLAG || cli_options[option].kind == OPT_MORE) {
            environment_flag(cli, option, name, value);
            continue;
        }
        const char *why = cli_set(cli, option, value, ORIGIN_ENVIRONMENT);
        if (why) die(EXIT_USAGE, "%s=%s in the environment: %s", name, value, why);
    }
}

#include "cli_help.h"

#include <string.h>
#include "base.h"
#include "version.h"

enum { WIDTH = 80, MARGIN = 31 };

/* Words of `help` from column MARGIN on; the caller's text ends at column `column`. */
static void wrap(FILE *f, int column, const char *help)
{
    if (column >= MARGIN) fputc('\n', f), column = 0;
    fprintf(f, "%*s", MARGIN - column, "");
    for (column = MARGIN; *help; help += strspn(help, " ")) {
        int n = (int)strcspn(help, " ");
        if (column > MARGIN && column + 1 + n > WIDTH) fprintf(f, "\n%*s", MARGIN, ""), column = MARGIN;
        column += fprintf(f, "%s%.*s", column > MARGIN ? " " : "", n, help);
        help += n;
    }
    fputc('\n', f);
}

void cli_help_commands(FILE *f)
{
    fprintf(f, "kbench tells whether a decode kernel is right, how fast it is and how far from\nthe limit.\n\n");
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        fprintf(f, "  kbench %s %s", c->name, c->arguments);
        wrap(f, (int)(10 + strlen(c->name) + strlen(c->arguments)), c->help);
    }
    fprintf(f, "\n'kbench COMMAND --help' lists a command's options. Each option can be set in the\n"
               "environment, too: --max-time as KBENCH_MAX_TIME. Begin with: kbench sweep\n"
               "In a built tree 'kbench bundle [FILE]' packs what a node with a driver needs.\n");
}

void cli_help(FILE *f, const char *command)
{
    for (int i = 0; cli_commands[i].name; i++) {
        if (strcmp(cli_commands[i].name, command)) continue;
        fprintf(f, "kbench %s %s%s[options]\n%s\n\n", command, cli_commands[i].arguments, *cli_commands[i].arguments ? " " : "",
            cli_commands[i].help);
        for (const struct cli_option *o = cli_options; o->name; o++) {
            if (!(o->commands & 1u << i)) continue;
            char letter[8] = "    ";
            if (o->letter) text(letter, sizeof letter, "-%c, ", o->letter);
            wrap(f, fprintf(f, "  %s--%s%s%s", letter, o->name, o->argument ? " " : "", o->argument ? o->argument : ""), o->help);
        }
    }
}

void cli_version(FILE *f)
{
    fprintf(f, "kbench %s\n", KBENCH_VERSION);
}

static void show_list(FILE *f, const struct list *list)
{
    if (!list->n) fputc('-', f);
    for (int i = 0; i < list->n; i++) fprintf(f, "%s%s", i ? "," : "", list->word[i]);
}

static void show_value(FILE *f, enum option_kind kind, const void *at)
{
    static const char *const caches[] = {"cold", "hot", "both"};
    const char *words = kind == OPT_TEXT || kind == OPT_COLOUR || kind == OPT_DEVICE ? *(char *const *)at : NULL;
    switch (kind) {
    case OPT_FLAG: fputs(*(const bool *)at ? "yes" : "no", f); break;
    case OPT_MORE: case OPT_COUNT: fprintf(f, "%d", *(const int *)at); break;
    case OPT_TEXT: case OPT_COLOUR: case OPT_DEVICE: fputs(words ? words : "-", f); break;
    case OPT_LIST: case OPT_AXIS: show_list(f, at); break;
    case OPT_CACHE: fputs(caches[*(const enum cache_choice *)at], f); break;
    case OPT_U64: fprintf(f, "%llu", (unsigned long long)*(const uint64_t *)at); break;
    case OPT_SECONDS: case OPT_DURATION: fprintf(f, "%g s", *(const double *)at); break;
    case OPT_PERCENT: fprintf(f, "%g %%", *(const double *)at); break;
    }
}

void cli_show(FILE *f, const struct cli *cli)
{
    static const char *const origins[] = {"default", "job file", "environment", "command line"};
    int command = 0;
    while (cli_commands[command].name && strcmp(cli_commands[command].name, cli->command)) command++;
    for (int i = 0; cli_options[i].name; i++) {
        const struct cli_option *o = &cli_options[i];
        if (!(o->commands & 1u << command) || o->offset == offsetof(struct cli, help)) continue;
        fprintf(f, "%-12s  %-12s  ", o->name, origins[cli->origin[i]]);
        show_value(f, o->kind, (const char *)cli + o->offset);
        fputc('\n', f);
    }
}

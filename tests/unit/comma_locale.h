/* A locale with a decimal comma for tests: an installed one, else one made on the spot. Every writer must ignore it. */
#ifndef KBENCH_COMMA_LOCALE_H
#define KBENCH_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_comma(const char *name)
{
    return setlocale(LC_ALL, name) && !strcmp(localeconv()->decimal_point, ",");
}

/* False where the machine has no such locale and no localedef. folder: an empty one to make it in. */
static bool comma_locale_enter(const char *folder)
{
    static const char *const installed[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "it_IT.UTF-8", "es_ES.UTF-8"};
    for (size_t i = 0; i < sizeof(installed) / sizeof(installed[0]); i++) {
        if (has_comma(installed[i])) return true;
    }
    char path[600], command[1400];
    snprintf(path, sizeof(path), "%s/comma.src", folder);
    FILE *source = fopen(path, "w");
    if (!source) return false;
    fputs("comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\ngrouping 3;3\n"
          "END LC_NUMERIC\n", source);
    fclose(source);
    snprintf(command, sizeof(command), "localedef -c --quiet -i '%s' '%s/comma' >/dev/null 2>&1", path, folder);
    if (system(command) == -1) return false;   /* it warns of what is not defined; whether it worked shows below */
    setenv("LOCPATH", folder, 1);
    return has_comma("comma");
}

static void comma_locale_leave(void)
{
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
}

#endif

#include "base.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One write a sentence, so that lines of parent and worker don't mix. What it quotes may hold any bytes: none steers a terminal. */
static void sentence(const char *format, va_list args)
{
    char line[2048];
    int  n = snprintf(line, sizeof line, "kbench: ");
    vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    for (char *c = line; *c; c++)
        if (((unsigned char)*c < 32 && *c != '\n' && *c != '\t') || *c == 127) *c = '?';
    fflush(stdout);
    fprintf(stderr, "%s\n", line);
}

void die(enum exit_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sentence(format, args);
    va_end(args);
    exit(code);
}

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sentence(format, args);
    va_end(args);
}

void *must_alloc(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size ? size : 1);
    if (!p) die(EXIT_ENVIRONMENT, "out of host memory: %zu items of %zu bytes; narrow the sweep", count, size);
    return p;
}

void *must_grow(void *old, size_t count, size_t size)
{
    size_t bytes;
    void  *p = __builtin_mul_overflow(count, size, &bytes) ? NULL : realloc(old, bytes ? bytes : 1);
    if (!p) die(EXIT_ENVIRONMENT, "out of host memory: %zu items of %zu bytes; narrow the sweep", count, size);
    return p;
}

char *text(char *ret, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (size && vsnprintf(ret, size, format, args) < 0) *ret = 0;
    va_end(args);
    return ret;
}

char *shell_words(int n, char *const *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
    size_t size = 1;
    for (int i = 0; i < n; i++) size += 4 * strlen(word[i]) + 3;
    char *ret = must_alloc(size, 1), *p = ret;
    for (int i = 0; i < n; i++) {
        bool bare = *word[i] && !word[i][strspn(word[i], plain)];
        if (i) *p++ = ' ';
        if (!bare) *p++ = '\'';
        for (const char *c = word[i]; *c; c++) {
            if (*c == '\'') p = stpcpy(p, "'\\''");
            else *p++ = *c;
        }
        if (!bare) *p++ = '\'';
    }
    return ret;
}

char *shell_word(const char *word)
{
    return shell_words(1, (char *const[]){(char *)word});
}

double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The launcher exports it; the build's own folder serves a program that is started by hand. */
const char *source_root(void)
{
    const char *given = getenv("KBENCH_ROOT");
    if (given && *given) return given;
#ifdef KBENCH_SOURCE_ROOT
    return KBENCH_SOURCE_ROOT;
#else
    return ".";
#endif
}

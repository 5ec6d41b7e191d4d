#include "gnuplot.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base.h"
#include "format.h"

enum { PATIENCE_S = 20, NOT_FOUND = 127 };

/* In the child, of what no one else has open: its own process group, so that Ctrl-C at a run's end doesn't tear a plot. */
static _Noreturn void become_gnuplot(const char *folder, char *const *words, int output)
{
    int nothing = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || (folder && chdir(folder))) _exit(126);
    setenv("LC_ALL", "C", 1);
    unsetenv("GNUTERM");
    signal(SIGPIPE, SIG_DFL), signal(SIGXFSZ, SIG_DFL);
    execvp(words[0], words);
    _exit(errno == ENOENT || errno == EACCES ? NOT_FOUND : 126);
}

/* All that comes out of fd until it closes; what has no room in ret is read and dropped. -1: too late. */
static int listen_to(int fd, char *ret, size_t size)
{
    size_t n = 0;
    double until = now_s() + PATIENCE_S;
    for (;;) {
        char           bytes[512];
        struct pollfd  wait = {.fd = fd, .events = POLLIN};
        double         left = until - now_s();
        int            ready = left > 0 ? poll(&wait, 1, (int)(left * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return -1;
        ssize_t got = read(fd, bytes, sizeof(bytes));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        size_t kept = n + (size_t)got < size ? (size_t)got : size - 1 - n;
        memcpy(ret + n, bytes, kept);
        n += kept;
        ret[n] = '\0';
    }
}

/* Exit status of words[0], or -1 where it could not be run or took too long; what it said goes to ret_said. */
static int run(const char *folder, char *const *words, char *ret_said, size_t size)
{
    int ends[2], status = 0;
    ret_said[0] = '\0';
    if (pipe2(ends, O_CLOEXEC)) return -1;
    pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    if (!child) become_gnuplot(folder, words, ends[1]);
    close(ends[1]);
    int late = listen_to(ends[0], ret_said, size);
    close(ends[0]);
    if (late) kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (late) text(ret_said, size, "no answer within %d s", PATIENCE_S);
    return late || !WIFEXITED(status) ? -1 : WEXITSTATUS(status);
}

int gnuplot_probe(char *ret_why, size_t size)
{
    char said[400];
    char *const ask_version[] = {"gnuplot", "--version", NULL}, *const ask_svg[] = {"gnuplot", "-e", "set terminal svg", NULL};
    int status = run(NULL, ask_version, said, sizeof(said)), major = 0;
    if (status == NOT_FOUND) {
        text(ret_why, size, "gnuplot not found: no plots; apt-get install gnuplot-nox, then ./kbench plot RUN");
        return 1;
    }
    if (status || sscanf(said, "gnuplot %d", &major) != 1) {
        text(ret_why, size, "gnuplot does not answer to --version: no plots; reinstall gnuplot-nox, then ./kbench plot RUN");
        return 1;
    }
    if (major < 5) {
        said[strcspn(said, "\n")] = '\0';
        text(ret_why, size, "%.60s is too old: no plots; install 5.0 or newer, then ./kbench plot RUN", said);
        return 1;
    }
    if (run(NULL, ask_svg, said, sizeof(said))) {
        text(ret_why, size, "gnuplot has no svg terminal: no plots; install gnuplot-nox, then ./kbench plot RUN");
        return 1;
    }
    return 0;
}

/* The line that says what is wrong: gnuplot points at the place with lines of its own before it. */
static const char *complaint(char *said)
{
    char *line = said, *best = said;
    for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strstr(line, "line ") == line + strspn(line, " \"") || *line == '"') best = line;
    }
    best[strcspn(best, "\n")] = '\0';
    return *best ? best : "without a word";
}

int gnuplot_run(const char *folder, const char *script, char *ret_why, size_t size)
{
    char said[2000], name[300], tame[200];
    text(name, sizeof(name), "%s", script);
    char *const words[] = {"gnuplot", name, NULL};
    int status = run(folder, words, said, sizeof(said));
    if (!status) return 0;
    text(ret_why, size, "gnuplot failed on %.80s: %s", script, tame_text(complaint(said), tame, sizeof(tame)));
    return 1;
}

/* Bytes of the UTF-8 character at c, 0: it is none. SVG is XML, which is refused as a whole for a wrong byte. */
static int utf8_bytes(const unsigned char *c)
{
    int n = *c < 0x80 ? 1 : *c >= 0xC2 && *c < 0xE0 ? 2 : *c >= 0xE0 && *c < 0xF0 ? 3 : *c >= 0xF0 && *c < 0xF5 ? 4 : 0;
    for (int i = 1; i < n; i++) {
        if ((c[i] & 0xC0) != 0x80) return 0;
    }
    return n;
}

/* As tame_text, and UTF-8 throughout. */
static char *drawn_text(const char *words, char *ret, size_t size)
{
    tame_text(words, ret, size);
    for (char *c = ret; *c;) {
        int n = utf8_bytes((unsigned char *)c);
        if (!n) *c = '?';
        c += n ? n : 1;
    }
    return ret;
}

/* Plain quotes know no escape but a doubled quote, and that not at the begin or twice in a row; the other kind obeys `commands` and
 * backslashes, but takes any letter by its number. */
void gnuplot_quoted(FILE *out, const char *words)
{
    char tame[700];
    bool plain = !strpbrk(drawn_text(words, tame, sizeof(tame)), "'\\");
    fputc(plain ? '\'' : '"', out);
    for (const char *c = tame; *c; c++) {
        bool as_is = plain || !strchr("\\\"`", *c);
        fprintf(out, as_is ? "%c" : "\\%03o", (unsigned char)*c);
    }
    fputc(plain ? '\'' : '"', out);
}

void gnuplot_file(FILE *out, const char *variable, const char *name, const char *ending)
{
    char file[300];
    fprintf(out, "%s = ", variable);
    gnuplot_quoted(out, text(file, sizeof(file), "%s.%s", name, ending));
    fputc('\n', out);
}

/* A double quote can't stand in a header, a backslash is two. */
void gnuplot_header(FILE *out, const char *words)
{
    char tame[700];
    fputc('"', out);
    for (const char *c = drawn_text(words, tame, sizeof(tame)); *c; c++) {
        if (*c == '\\') fputc('\\', out);
        fputc(*c == '"' ? '\'' : *c, out);
    }
    fputs("\"\n", out);
}

char *gnuplot_file_name(char *name)
{
    for (char *c = name; *c; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("-_.", *c)) *c = '_';
    }
    if (name[0] == '.' || name[0] == '-') name[0] = '_';
    return name;
}

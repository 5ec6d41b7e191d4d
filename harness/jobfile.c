#include "jobfile.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base.h"

enum { MAX_BYTES = 1 << 20, MAX_SECTIONS = 65536, MAX_DEPTH = 8, SECTION_NAME = 48, UNREADABLE = 2 };

/* One file on its way through inih; `outer` leads to the file that includes it. */
struct source {
    struct jobfile *job;
    struct source  *outer;
    int             depth;
    const char     *path;              /* owned by the job */
    char            real[4096];        /* to tell cycles */
    const char     *at, *end;          /* what is not read yet */
    int             line;
    int             open_line;         /* of the [section] read last; 0: none yet */
    bool            opened, may_be_empty;  /* it has had a key; it is [global] */
    int             first_global;      /* keys of [global] from here on are this file's own */
    struct job_section *into;
    int             failed;
    char           *error;
    size_t          size;
};

static int complain(struct source *s, int line, const char *what, const char *why)
{
    if (!s->failed) text(s->error, s->size, "%s:%d: %.80s: %s", s->path, line, what, why);
    s->failed = 1;
    return 0;                          /* inih's word for an error */
}

static char *copy(const char *from)
{
    size_t n = strlen(from) + 1;
    return memcpy(must_alloc(n, 1), from, n);
}

/* A comment begins the line or follows a blank. */
static size_t without_comment(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((line[i] == '#' || line[i] == ';') && (!i || line[i - 1] == ' ' || line[i - 1] == '\t')) return i;
    return n;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static void end_section(struct source *s)
{
    if (s->open_line && !s->opened && !s->may_be_empty)
        complain(s, s->open_line, "section", "no key follows; say which kernels and sizes, or remove it");
}

static void begin_section(struct source *s, const char *line, size_t n)
{
    end_section(s);
    if (line[n - 1] != ']') complain(s, s->line, line, "']' is missing at its end");
    if (n - 1 > SECTION_NAME) complain(s, s->line, "section", "its name is longer than 47 characters");
    s->open_line = s->line;
    s->opened = false;
    s->may_be_empty = !strcmp(line, "[global]");
}

/* inih's fgets: hands on one line at a time without indent and comment, so that neither continues the line before. inih tells a
 * handler neither line nor empty sections in every build, and cuts long lines silently: all three are seen to here. */
static char *next_line(char *ret, int room, void *stream)
{
    struct source *s = stream;
    if (s->at == s->end || s->failed) return NULL;
    const char *line = s->at, *newline = memchr(line, '\n', (size_t)(s->end - line));
    size_t      n = (size_t)((newline ? newline : s->end) - line);
    s->at = newline ? newline + 1 : s->end;
    s->line++;
    while (n && blank(*line)) line++, n--;
    n = without_comment(line, n);
    while (n && blank(line[n - 1])) n--;
    if (memchr(line, 0, n)) complain(s, s->line, "line", "holds a NUL byte; this is no text file");
    if ((int)n > room - 2) {
        char why[96];
        complain(s, s->line, "line", text(why, sizeof why, "longer than %d characters; use ranges or several sections", room - 2));
    }
    if (s->failed) return NULL;
    memcpy(ret, line, n);
    ret[n] = 0;
    if (*ret == '[') begin_section(s, ret, n);
    ret[n] = '\n', ret[n + 1] = 0;
    return s->failed ? NULL : ret;
}

static void free_section(struct job_section *section)
{
    for (int i = 0; i < section->n; i++) free(section->key[i].name), free(section->key[i].value);
    free(section->key);
    free(section->name);
}

static void add_key(struct source *s, struct job_section *section, const char *name, const char *value)
{
    if (section->n % 16 == 0) section->key = must_grow(section->key, (size_t)section->n + 16, sizeof *section->key);
    section->key[section->n++] = (struct job_key){copy(name), copy(value), s->path, s->line};
}

/* The section that the line before the key opened. Pointers into job->section don't outlive it: keys come one section at a time. */
static int enter(struct source *s, const char *name)
{
    struct jobfile *job = s->job;
    s->opened = true;
    s->into = &job->global;
    if (!strcmp(name, "global")) return 1;
    if (!*name) return complain(s, s->open_line, "section", "has no name");
    for (int i = 0; i < job->n; i++)
        if (!strcmp(job->section[i].name, name)) {
            char why[128];
            const struct job_section *other = &job->section[i];
            return complain(s, s->open_line, name,
                text(why, sizeof why, "a section of that name stands at %.80s:%d", other->file, other->line));
        }
    if (job->n == MAX_SECTIONS) return complain(s, s->open_line, name, "more than 65536 sections");
    if (job->n % 64 == 0) job->section = must_grow(job->section, (size_t)job->n + 64, sizeof *job->section);
    s->into = &job->section[job->n++];
    *s->into = (struct job_section){.name = copy(name), .file = s->path, .line = s->open_line};
    return 1;
}

static int read_file(const char *path, struct jobfile *, struct source *outer, char *ret_error, size_t size);

static int include(struct source *s, const char *value)
{
    char        path[4096], why[640];
    const char *slash = strrchr(s->path, '/');
    if (s->into != &s->job->global) return complain(s, s->line, "include", "belongs into [global]");
    if (s->depth == MAX_DEPTH) return complain(s, s->line, "include", "files include each other more than 8 deep");
    if (*value == '/' || !slash) text(path, sizeof path, "%s", value);
    else text(path, sizeof path, "%.*s/%s", (int)(slash - s->path), s->path, value);
    int error = read_file(path, s->job, s, why, sizeof why);
    if (error == UNREADABLE) return complain(s, s->line, "include", why);
    if (error) {                       /* it names its own line */
        s->failed = 1;
        text(s->error, s->size, "%s", why);
        return 0;
    }
    s->into = &s->job->global;
    return 1;
}

static int take_key(void *user, const char *section, const char *name, const char *value)
{
    struct source *s = user;
    if (s->failed) return 0;
    if (!s->open_line) return complain(s, s->line, *name ? name : value, "stands before the first section; put it into [global]");
    if (!s->opened && !enter(s, section)) return 0;
    if (!*name) return complain(s, s->line, value, "the key before '=' is missing");
    if (!*value) return complain(s, s->line, name, "the value is missing");
    if (!strcmp(name, "include")) return include(s, value);
    bool repeats = !strcmp(name, "skip") || !strcmp(name, "zip") || !strcmp(name, "variant");
    int  begin = s->into == &s->job->global ? s->first_global : 0;
    for (int i = begin; !repeats && i < s->into->n; i++)
        if (!strcmp(s->into->key[i].name, name) && s->into->key[i].file == s->path) {
            char why[96];
            return complain(
                s, s->line, name, text(why, sizeof why, "is there twice; it stands at line %d, too", s->into->key[i].line));
        }
    add_key(s, s->into, name, value);
    return 1;
}

static int parse(struct source *s)
{
    if (s->end - s->at >= 3 && !memcmp(s->at, "\xef\xbb\xbf", 3)) s->at += 3;
    int line = ini_parse_stream(next_line, s, take_key, s);
    if (!s->failed && line > 0) complain(s, line, "line", "neither [section] nor key = value");
    if (!s->failed && line < 0) complain(s, s->line, "file", "out of memory");
    end_section(s);
    return s->failed;
}

static int begin(struct source *s, const char *path, const char *content, size_t length, struct source *outer)
{
    struct jobfile *job = s->job;
    job->file = must_grow(job->file, (size_t)job->n_files + 1, sizeof *job->file);
    s->path = job->file[job->n_files++] = copy(path);
    s->outer = outer;
    s->depth = outer ? outer->depth + 1 : 0;
    s->at = content;
    s->end = content + length;
    s->first_global = job->global.n;
    return parse(s);
}

int jobfile_parse(const char *path, const char *content, size_t length, struct jobfile *job, char *ret_error, size_t size)
{
    struct source s = {.job = job, .error = ret_error, .size = size};
    return begin(&s, path, content, length, NULL);
}

/* NULL with the reason where the file can't be had whole. */
static char *slurp(const char *path, size_t *ret_length, const char **ret_why)
{
    struct stat st;
    int         fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);   /* a FIFO must not be waited for */
    FILE       *f = fd < 0 ? NULL : fdopen(fd, "rb");
    char       *content = NULL;
    if (!f) return *ret_why = strerror(errno), NULL;
    if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode)) *ret_why = "not a regular file";
    else if (st.st_size > MAX_BYTES) *ret_why = "larger than 1 MB; this is no job file";
    else {
        content = must_alloc((size_t)st.st_size + 1, 1);
        *ret_length = fread(content, 1, (size_t)st.st_size, f);
    }
    fclose(f);
    return content;
}

/* UNREADABLE: the text begins with the path alone. */
static int read_file(const char *path, struct jobfile *job, struct source *outer, char *ret_error, size_t size)
{
    struct source s = {.job = job, .error = ret_error, .size = size};
    size_t        length = 0;
    const char   *why = NULL;
    char         *content = realpath(path, s.real) ? slurp(path, &length, &why) : (why = strerror(errno), NULL);
    if (!content) {
        text(ret_error, size, "%s: can't be read: %s", path, why);
        return UNREADABLE;
    }
    for (const struct source *o = outer; o; o = o->outer)
        if (!strcmp(o->real, s.real)) {
            text(ret_error, size, "%s: includes itself in the end", path);
            free(content);
            return UNREADABLE;
        }
    int failed = begin(&s, path, content, length, outer);
    free(content);
    return failed;
}

int jobfile_read(const char *path, struct jobfile *job, char *ret_error, size_t size)
{
    return read_file(path, job, NULL, ret_error, size);
}

void jobfile_free(struct jobfile *job)
{
    for (int i = 0; i < job->n; i++) free_section(&job->section[i]);
    free_section(&job->global);
    for (int i = 0; i < job->n_files; i++) free(job->file[i]);
    free(job->section);
    free(job->file);
    *job = (struct jobfile){0};
}

const struct job_key *job_find(const struct job_section *section, const char *name)
{
    for (int i = section->n - 1; i >= 0; i--)
        if (!strcmp(section->key[i].name, name)) return &section->key[i];
    return NULL;
}

#include "runfolder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base.h"
#include "csv.h"
#include "samples.h"

/* mkdir -p. 0 or errno. */
static int make_folders(const char *path)
{
    char part[sizeof(((struct runfolder *)0)->path)];
    text(part, sizeof(part), "%s", path);
    for (char *slash = part + 1; *part && (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(part, 0777) && errno != EEXIST)
            return errno;
        *slash = '/';
    }
    if (mkdir(part, 0777) && errno != EEXIST)
        return errno;
    struct stat st;
    return stat(part, &st) ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

static bool exists(const char *folder, const char *name)
{
    char path[600];
    return !access(text(path, sizeof(path), "%s/%s", folder, name), F_OK);
}

/* What a run leaves that a later one must not write over unasked. NULL, or the first such name. */
static const char *occupied(const char *folder)
{
    static const char *const ours[] = {"rows.csv", "samples.csv", "env.json", "plan.ini", "log.txt", "scaling.csv",
        "crossover.csv", "breakdown.csv", "counters.csv", "plots"};
    for (int i = 0; i < COUNT(ours); i++) {
        if (exists(folder, ours[i]))
            return ours[i];
    }
    return NULL;
}

/* Relative where the folder lies under the current one: it is printed, and has to fit on a line. */
static const char *shortened(const char *path)
{
    char here[400];
    size_t n = getcwd(here, sizeof(here)) ? strlen(here) : 0;
    return n && !strncmp(path, here, n) && path[n] == '/' && path[n + 1] ? path + n + 1 : path;
}

/* results/runs/<UTC>-<name>, made new; a second run in the same second gets -2. */
static void make_default(struct runfolder *folder, const char *name)
{
    char parent[440], stamp[32];
    time_t at = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&at, &utc));
    text(parent, sizeof(parent), "%s/results/runs", source_root());
    if (make_folders(parent) || access(parent, W_OK)) {   /* a read-only checkout is fine */
        text(parent, sizeof(parent), "results/runs");
        int error = make_folders(parent);
        if (error)
            die(EXIT_ENVIRONMENT, "%s: can't be made: %s; name another folder with --out", parent, strerror(error));
    }
    for (int turn = 1; turn < 1000; turn++) {
        char suffix[16] = "";
        if (turn > 1)
            text(suffix, sizeof(suffix), "-%d", turn);
        text(folder->path, sizeof(folder->path), "%s/%s-%.60s%s", shortened(parent), stamp, name, suffix);
        if (!mkdir(folder->path, 0777))
            return;
        if (errno != EEXIST)
            die(EXIT_ENVIRONMENT, "%s: can't be made: %s; name another folder with --out", folder->path, strerror(errno));
    }
    die(EXIT_ENVIRONMENT, "%s: a thousand runs of this second stand there; name another folder with --out", parent);
}

/* --force: old plots would pass for this run's. Only what plot_run writes goes. */
static void clear_plots(const char *path)
{
    char plots[600], file[900];
    DIR *dir = opendir(text(plots, sizeof(plots), "%s/plots", path));
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *ending = strrchr(entry->d_name, '.');
        if (ending && (!strcmp(ending, ".svg") || !strcmp(ending, ".gp") || !strcmp(ending, ".dat")))
            unlink(text(file, sizeof(file), "%s/%s", plots, entry->d_name));
    }
    if (dir)
        closedir(dir);
    unlink(text(file, sizeof(file), "%s/breakdown.csv", path));   /* of an older profile, which this run may not be */
    unlink(text(file, sizeof(file), "%s/counters.csv", path));
}

/* Appends: what stands there can't be lost by us. */
static FILE *open_file(const struct runfolder *folder, const char *name, bool fresh)
{
    char path[600];
    text(path, sizeof(path), "%s/%s", folder->path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (fresh ? O_TRUNC : 0), 0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "a");
    if (!file)
        die(EXIT_ENVIRONMENT, "%s: can't be written: %s; name another folder with --out", path, strerror(errno));
    setvbuf(file, NULL, _IOFBF, 1 << 18);  /* a row or a row's samples are one write */
    return file;
}

static off_t end_of(FILE *file)
{
    struct stat st;
    return fstat(fileno(file), &st) || !S_ISREG(st.st_mode) ? -1 : st.st_size;
}

static void resume_rows(struct runfolder *folder, const struct runfolder_options *options)
{
    char path[600], error[700];
    text(path, sizeof(path), "%s/rows.csv", folder->path);
    if (table_read(path, &folder->done, error, sizeof(error)))
        die(EXIT_USAGE, "%s; it can't be resumed: begin anew with another --out, or with --force", error);
    bool same = folder->done.n_dims == options->n_dims;
    for (int d = 0; same && d < options->n_dims; d++)
        same = !strcmp(folder->done.dims[d], options->dims[d]);
    if (!same)
        die(EXIT_USAGE, "%s: its dimension columns are not those of this sweep; resume with the sweep that began it (plan.ini)",
            path);
    if (truncate(path, (off_t)folder->done.bytes))
        die(EXIT_ENVIRONMENT, "%s: can't be cut after its last whole row: %s", path, strerror(errno));
}

/* Samples, and what a profile says, are written before their row: a kill may leave some whose row is measured again, or half a
 * line. */
static void resume_lines(const struct runfolder *folder)
{
    static const struct {
        const char   *name;
        enum csv_file file;
    } of[] = {{"samples.csv", CSV_samples}, {"breakdown.csv", CSV_breakdown}, {"counters.csv", CSV_counters}};
    char path[600], error[700];
    for (int i = 0; i < COUNT(of); i++) {
        text(path, sizeof(path), "%s/%s", folder->path, of[i].name);
        int bad = exists(folder->path, of[i].name) ? lines_keep(path, of[i].file, &folder->done, error, sizeof(error)) : 0;
        if (bad == ENOSPC || bad == EDQUOT)
            die(EXIT_ENVIRONMENT, "%s; make room, then resume", error);
        if (bad && of[i].file != CSV_samples)
            die(EXIT_USAGE, "%s; it can't be resumed: begin anew with another --out, or with --force", error);
        if (bad)
            die(EXIT_USAGE, "%s; move it away, then resume", error);
    }
}

void runfolder_open(struct runfolder *folder, const struct runfolder_options *options)
{
    *folder = (struct runfolder){.n_dims = options->n_dims, .began_s = now_s()};
    if (options->n_dims > COUNT(folder->dims))
        die(EXIT_USAGE, "the ops of this sweep have %d dimensions together, rows.csv has room for %d: sweep fewer ops at once",
            options->n_dims, COUNT(folder->dims));
    memcpy(folder->dims, options->dims, (size_t)options->n_dims * sizeof(folder->dims[0]));
    if (!options->out) {
        make_default(folder, options->name);
    } else {
        if (strlen(options->out) >= sizeof(folder->path) || !options->out[0])
            die(EXIT_USAGE, "--out: a path of 1 to %d bytes, please", (int)sizeof(folder->path) - 1);
        text(folder->path, sizeof(folder->path), "%s", options->out);
        if (options->resume && !occupied(folder->path))
            die(EXIT_USAGE, "--resume %s: no run is there; begin one with --out %s", folder->path, folder->path);
        int error = make_folders(folder->path);
        if (error)
            die(EXIT_ENVIRONMENT, "%s: can't be made: %s; name another folder with --out", folder->path, strerror(error));
    }
    const char *there = occupied(folder->path);
    if (there && !options->force && !options->resume)
        die(EXIT_USAGE, "%s: holds a run already (%s); --resume %s goes on with it, --force writes over it",
            folder->path, there, folder->path);
    bool resume = options->resume && exists(folder->path, "rows.csv");
    if (resume)
        resume_rows(folder, options);
    else
        clear_plots(folder->path);
    resume = resume && folder->done.bytes;
    if (resume)
        resume_lines(folder);
    folder->rows = open_file(folder, "rows.csv", !resume);
    folder->samples = open_file(folder, "samples.csv", !resume);
    folder->log = open_file(folder, "log.txt", !options->resume);
    int error = 0;
    if (end_of(folder->rows) <= 0)
        error = table_write_header(folder->rows, folder->n_dims, folder->dims);
    if (!error && end_of(folder->samples) <= 0)
        error = samples_write_header(folder->samples, folder->n_dims, folder->dims);
    if (error)
        die(EXIT_ENVIRONMENT, "%s: can't be written: %s; make room or name another folder with --out",
            folder->path, strerror(error));
}

/* What was begun is taken back, so that the next row starts on a line of its own and readers see whole rows only. */
static int undo(FILE *file, off_t before, int error)
{
    if (error && before >= 0) {
        __fpurge(file);
        clearerr(file);
        if (ftruncate(fileno(file), before))
            return error;
    }
    return error;
}

int runfolder_row(struct runfolder *folder, const struct row *row)
{
    off_t before = end_of(folder->rows);
    return undo(folder->rows, before, table_write_row(folder->rows, folder->n_dims, folder->dims, row));
}

int runfolder_samples(struct runfolder *folder, const struct row *row, int n, const struct sample *sample)
{
    off_t before = end_of(folder->samples);
    return undo(folder->samples, before, samples_write(folder->samples, folder->n_dims, folder->dims, row, n, sample));
}

int runfolder_log(struct runfolder *folder, const char *format, ...)
{
    va_list args;
    off_t before = end_of(folder->log);
    locale_t locale = c_numbers();
    va_start(args, format);
    errno = 0;
    bool whole = fprintf(folder->log, "%9.3f  ", now_s() - folder->began_s) > 0 && vfprintf(folder->log, format, args) >= 0 &&
        fputc('\n', folder->log) != EOF && !fflush(folder->log);
    int error = whole ? 0 : errno ? errno : EIO;
    va_end(args);
    uselocale(locale);
    return undo(folder->log, before, error);
}

void runfolder_close(struct runfolder *folder)
{
    FILE *files[] = {folder->rows, folder->samples, folder->log};
    for (int i = 0; i < COUNT(files); i++) {
        if (files[i])
            fclose(files[i]);
    }
    table_free(&folder->done);
    folder->rows = folder->samples = folder->log = NULL;
}

bool runfolder_has(const struct runfolder *folder, const struct row *key)
{
    for (int i = 0; i < folder->done.n; i++) {
        if (row_same_key(&folder->done.row[i], key))
            return true;
    }
    return false;
}

static int write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno != EINTR)
            return errno;
        bytes += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

int runfolder_write(const char *path, const char *name, const char *content)
{
    char final[600], begun[620];
    text(final, sizeof(final), "%s/%s", path, name);
    text(begun, sizeof(begun), "%s.begun", final);
    int fd = open(begun, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    int error = write_all(fd, content, strlen(content));
    if (!error && fsync(fd) && errno != EINVAL)
        error = errno;
    if (close(fd) && !error)
        error = errno;
    if (!error && rename(begun, final))
        error = errno;
    if (error)
        unlink(begun);
    return error;
}

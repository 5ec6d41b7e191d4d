#include "supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include "base.h"
#include "nvtx.h"

enum { BOARD_BYTES = 4096, START_TIMEOUT_S = 120, WRAP_TIMEOUT_S = 600, DEATHS = 3 };

/* The words before the worker: those of --wrap, split as a shell would but without running anything. */
static void wrap_words(const char *wrap, wordexp_t *ret)
{
    if (wordexp(wrap ? wrap : "", ret, WRDE_NOCMD | WRDE_UNDEF))
        die(EXIT_USAGE, "--wrap '%s': not a list of words; quote it as for a shell, without substitutions", wrap);
}

static void exec_worker(const struct supervisor *sv, const wordexp_t *wrap, const char *self)
{
    const char *argv[MAX_LIST + 80];
    int n = 0;
    for (size_t i = 0; i < wrap->we_wordc && n < 64; i++) argv[n++] = wrap->we_wordv[i];
    argv[n++] = self;
    argv[n++] = "worker";
    argv[n++] = sv->socket;
    argv[n++] = sv->cli->device;
    for (int i = 0; i < sv->cli->plugins.n; i++) argv[n++] = sv->cli->plugins.word[i];
    argv[n] = NULL;
    setpgid(0, 0);                       /* a Ctrl-C is for the parent, which ends us */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO);  /* whatever a kernel or a tool prints is talk */
    signal(SIGPIPE, SIG_DFL), signal(SIGXFSZ, SIG_DFL);
    if (!wrap->we_wordc) nvtx_listen();  /* a tool has a listener of its own, which it may name only later */
    setenv("OMP_WAIT_POLICY", "passive", 0);   /* a waiting thread that spins takes the core from the one it waits for */
    execvp(argv[0], (char *const *)argv);
    fprintf(stderr, "kbench: %s: can't be run: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static void end_worker(struct supervisor *sv)
{
    if (sv->connection >= 0) close(sv->connection);
    sv->connection = -1;
    if (sv->worker > 0) {
        kill(-sv->worker, SIGKILL);
        kill(sv->worker, SIGKILL);
        while (waitpid(sv->worker, NULL, 0) < 0 && errno == EINTR) {}
    }
    sv->worker = 0;
}

/* Waits for the new worker to connect. False: it ended first, or was interrupted. */
static bool accept_worker(struct supervisor *sv, double timeout_s, int *ret_status)
{
    double until = now_s() + timeout_s;
    fd_set set;
    for (;;) {
        struct timeval tick = {.tv_usec = 50000};
        FD_ZERO(&set);
        FD_SET(sv->listener, &set);
        if (select(sv->listener + 1, &set, NULL, NULL, &tick) > 0) break;
        if (waitpid(sv->worker, ret_status, WNOHANG) == sv->worker) {
            sv->worker = 0;
            return false;
        }
        if (*sv->interrupted) return false;
        if (now_s() > until) die(EXIT_ENVIRONMENT, "worker: not started after %.0f s; is the machine overloaded?", timeout_s);
    }
    sv->connection = channel_accept(sv->listener, sv->memory);
    return sv->connection >= 0;
}

/* Waits for the worker's hello, at its start or after it measured. False: it died, or was interrupted. */
static bool await_hello(struct supervisor *sv, double timeout_s)
{
    double until = now_s() + timeout_s;
    while (!*sv->interrupted) {
        enum message kind;
        void *body;
        size_t size;
        int got = channel_receive(sv->connection, 0.05, &kind, &body, &size);
        if (got < 0) return false;
        if (got == 0 && now_s() > until) die(EXIT_ENVIRONMENT, "worker: no answer from the device; see `kbench doctor`");
        if (got == 0) continue;
        if (kind == MESSAGE_FAULT) die(EXIT_ENVIRONMENT, "%s", (char *)body);
        bool hello = kind == MESSAGE_HELLO && size == sizeof sv->hello;
        struct ceilings before = sv->hello.machine.ceilings;
        if (hello) memcpy(&sv->hello, body, sizeof sv->hello);
        if (hello && sv->hello.machine.ceilings.read_GBps == 0) sv->hello.machine.ceilings = before;
        free(body);
        if (hello) return true;
    }
    return false;
}

static void spawn(struct supervisor *sv)
{
    char self[512];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) die(EXIT_ENVIRONMENT, "/proc/self/exe: %s; kbench needs a mounted /proc", strerror(errno));
    self[length] = 0;
    wordexp_t wrap;
    wrap_words(sv->cli->wrap, &wrap);
    *sv->board = (struct board){.variant = -1};
    sv->starts++;
    fflush(NULL);
    sv->worker = fork();
    if (sv->worker < 0) die(EXIT_ENVIRONMENT, "fork: %s; are there too many processes?", strerror(errno));
    if (sv->worker == 0) exec_worker(sv, &wrap, self);
    wordfree(&wrap);
}

/* hash: of the worker's plug-ins; NULL: of the files as they are now. */
static bool has_our_plugins(struct supervisor *sv, char (*hash)[PLUGIN_HASH_BYTES])
{
    return !sv->registry || plugins_same(sv->registry, sv->cli->plugins.n, sv->cli->plugins.word, hash, sv->refused,
        sizeof sv->refused);
}

/* A worker that says hello; a few tries, since something outside may have killed one. False: interrupted, or sv->refused. */
static bool start_worker(struct supervisor *sv)
{
    double timeout_s = sv->cli->wrap ? WRAP_TIMEOUT_S : START_TIMEOUT_S;
    int status = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
        spawn(sv);
        bool began = accept_worker(sv, timeout_s, &status) && await_hello(sv, timeout_s);
        bool ours = *sv->interrupted || has_our_plugins(sv, began ? sv->hello.plugin_hash : NULL);
        if (began && ours) return true;
        end_worker(sv);
        if (*sv->interrupted || !ours) return false;
    }
    if (sv->cli->wrap) die(EXIT_USAGE, "worker: ended before it began (exit code %d); check the words of --wrap",
        WEXITSTATUS(status));
    die(EXIT_ENVIRONMENT, "worker: died three times before it could begin; see `kbench doctor`");
}

void supervisor_measure(struct supervisor *sv)
{
    if (*sv->interrupted) return;
    if (channel_send(sv->connection, MESSAGE_MEASURE, NULL, 0, NULL, 0))
        die(EXIT_ENVIRONMENT, "worker: died before it measured the device; see `kbench doctor`");
    if (!await_hello(sv, START_TIMEOUT_S) && !*sv->interrupted)
        die(EXIT_ENVIRONMENT, "worker: died while it measured the device; see `kbench doctor`");
}

void supervisor_open(struct supervisor *sv, const struct cli *cli, const struct registry *registry,
    const volatile sig_atomic_t *interrupted)
{
    *sv = (struct supervisor){.cli = cli, .registry = registry, .interrupted = interrupted, .connection = -1};
    sv->memory = memfd_create("kbench", MFD_CLOEXEC);
    if (sv->memory < 0 || ftruncate(sv->memory, BOARD_BYTES))
        die(EXIT_ENVIRONMENT, "memory file: %s; kbench needs Linux 3.17 or newer", strerror(errno));
    sv->board = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, sv->memory, 0);
    if (sv->board == MAP_FAILED) die(EXIT_ENVIRONMENT, "memory file: can't be mapped: %s; free some memory", strerror(errno));
    sv->listener = channel_listen(sv->socket, sizeof sv->socket);
    if (!start_worker(sv) && *sv->refused) die(EXIT_USAGE, "%s", sv->refused);
}

/* A worker whose parent hangs up ends by itself. A tool around it says what it saw only then, so it is given the time. */
static void let_worker_end(struct supervisor *sv)
{
    double until = now_s() + (sv->cli->wrap ? WRAP_TIMEOUT_S : 1);
    if (sv->connection >= 0) close(sv->connection);
    sv->connection = -1;
    while (sv->worker > 0 && now_s() < until && !*sv->interrupted) {
        if (waitpid(sv->worker, NULL, WNOHANG) == sv->worker) sv->worker = 0;
        else usleep(2000);
    }
}

/* The next group has a new one, in which nothing is loaded yet. */
static void renew(struct supervisor *sv)
{
    let_worker_end(sv);
    end_worker(sv);
}

void supervisor_close(struct supervisor *sv)
{
    renew(sv);
    close(sv->listener);
    munmap(sv->board, BOARD_BYTES);
    close(sv->memory);
}

enum end { END_DONE, END_DEATH, END_TIMEOUT, END_INTERRUPTED };

/* Feeds on the worker's messages until the group is over, one way or another. *ret_timed: rows have come, all of them at once. */
static enum end listen_to(struct supervisor *sv, struct job *job, struct outcome *ret, bool *ret_timed, struct done *ret_done)
{
    *ret_timed = false;
    for (;;) {
        if (*sv->interrupted) return END_INTERRUPTED;
        enum message kind;
        void *body;
        size_t size;
        int got = channel_receive(sv->connection, 0.05, &kind, &body, &size);
        double deadline = sv->board->deadline_s;
        if (got == 0 && deadline > 0 && now_s() > deadline) return END_TIMEOUT;
        if (got == 0) continue;
        if (got < 0) return END_DEATH;
        if (kind == MESSAGE_CHECKED && size == sizeof(struct checked)) {
            struct checked checked;
            memcpy(&checked, body, sizeof checked);
            job->decided[checked.variant] = true;
            job->verdict[checked.variant] = checked.verdict;
        }
        if (kind == MESSAGE_ROW) outcome_row(&job->group, body, size, ret), *ret_timed = true;
        if (kind == MESSAGE_SAMPLES && size >= 8) outcome_samples(&job->group, body, size, ret);
        if (kind == MESSAGE_PROFILE) outcome_profile(&job->group, body, size, ret);
        if (kind == MESSAGE_LOADED) outcome_loaded(&job->group, body, size, ret);
        if (kind == MESSAGE_DONE && size == sizeof *ret_done) memcpy(ret_done, body, sizeof *ret_done);
        free(body);
        if (kind == MESSAGE_DONE) return END_DONE;
    }
}

/* A worker that did not finish its group is gone behind this. Returns how it ended, where it did by itself. */
static int bury_worker(struct supervisor *sv, enum end end)
{
    int status = 0;
    if (end == END_TIMEOUT || end == END_INTERRUPTED) {
        end_worker(sv);
        return status;
    }
    double until = now_s() + 2;   /* the socket closes a moment before the process is gone */
    while (waitpid(sv->worker, &status, WNOHANG) == 0 && now_s() < until) usleep(2000);
    if (now_s() >= until) end_worker(sv);
    sv->worker = 0;
    if (sv->connection >= 0) close(sv->connection);
    sv->connection = -1;
    return status;
}

/* What a worker's end decides. at: whose launch it was, -1: nobody's. False: the next worker would die of the same. */
static bool blame(struct job *job, struct outcome *ret, int at, bool timed, struct verdict verdict)
{
    bool someones = at >= 0 && at < job->group.n;
    if (timed && someones && job->traced[at].status == STATUS_OK) {   /* only its trace is lost */
        if (ret[at].profile && *ret[at].profile->note) text(verdict.reason, sizeof verdict.reason, "%s", ret[at].profile->note);
        job->traced[at] = verdict;
        return true;
    }
    if (someones && job->decided[at] && job->verdict[at].status == STATUS_CRASH) return true;
    for (int v = 0; v < job->group.n; v++) {
        if (at >= 0 && v != at) continue;   /* -1: the group can't be prepared */
        job->decided[v] = true;
        job->verdict[v] = verdict;
    }
    return at >= 0;
}

/* Rows that never came say what was decided instead. */
static void fill_decided(const struct job *job, struct outcome *ret)
{
    for (int v = 0; v < job->group.n; v++) {
        if (*ret[v].row.status || !job->decided[v]) continue;
        text(ret[v].row.status, sizeof ret[v].row.status, "%s", status_name[job->verdict[v].status]);
        text(ret[v].row.reason, sizeof ret[v].row.reason, "%s", job->verdict[v].reason);
    }
}

bool supervisor_group(struct supervisor *sv, struct job *job, struct outcome *ret, struct done *ret_done)
{
    *ret_done = (struct done){0};
    for (int v = 0; v < job->group.n; v++) outcome_clear(&ret[v]);
    if (sv->traced) renew(sv);   /* a tracer leaves longer calls behind, although it is off: see profile_time */
    sv->traced = job->profile || job->loaded;
    /* Each attempt decides at least one variant more, gives up a trace, or is one of few deaths in nobody's launch, so it ends. */
    for (int attempt = 0, deaths = 0; attempt <= 2 * job->group.n + DEATHS; attempt++) {
        bool timed = false;
        if (sv->connection < 0 && !start_worker(sv)) return false;
        *sv->board = (struct board){.variant = -1};
        enum end end = END_DEATH;
        if (!channel_send(sv->connection, MESSAGE_JOB, job, sizeof *job, NULL, 0)) end = listen_to(sv, job, ret, &timed, ret_done);
        if (end == END_DONE) return true;

        int at = sv->board->variant, status = bury_worker(sv, end);
        if (end == END_INTERRUPTED) return false;
        if (at < 0 && end == END_DEATH && ++deaths < job->group.n && deaths < DEATHS) continue;   /* was it killed from outside? */
        struct verdict verdict = verdict_of_death(sv->board, status, end == END_TIMEOUT, job->timeout_s);
        if (!blame(job, ret, at, timed, verdict)) break;
    }
    fill_decided(job, ret);
    return true;
}

#include "outcome.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base.h"

struct verdict verdict_of_death(const struct board *board, int status, bool timed_out, double timeout_s)
{
    struct verdict verdict = {.status = timed_out ? STATUS_TIMEOUT : STATUS_CRASH, .err_rel = NAN, .checked_pct = NAN};
    char what[sizeof board->what];
    for (size_t i = 0; i < sizeof what; i++) what[i] = board->what[i];
    what[sizeof what - 1] = 0;
    if (timed_out)
        text(verdict.reason, sizeof verdict.reason, "%s took longer than %g s; --timeout raises the limit", what, timeout_s);
    else if (WIFSIGNALED(status))
        text(verdict.reason, sizeof verdict.reason, "the worker was killed by signal %d (%s) in: %s%s", WTERMSIG(status),
             strsignal(WTERMSIG(status)), what, WTERMSIG(status) == SIGKILL ? "; out of memory?" : "");
    else
        text(verdict.reason, sizeof verdict.reason, "the worker ended with exit code %d in: %s", WEXITSTATUS(status), what);
    return verdict;
}

void outcome_row(const struct group *group, const void *body, size_t size, struct outcome *ret)
{
    int32_t v;
    if (size != sizeof v + sizeof(struct row)) die(EXIT_BUG, "worker: a row of %zu bytes; report it", size);
    memcpy(&v, body, sizeof v);
    if (v < 0 || v >= group->n) die(EXIT_BUG, "worker: a row of variant %d of %d; report it", v, group->n);
    memcpy(&ret[v].row, (const char *)body + sizeof v, sizeof(struct row));
}

void outcome_samples(const struct group *group, const void *body, size_t size, struct outcome *ret)
{
    int32_t head[2];
    memcpy(head, body, sizeof head);
    if (head[0] < 0 || head[0] >= group->n || size != sizeof head + (size_t)head[1] * sizeof(struct sample))
        die(EXIT_BUG, "worker: samples out of form; report it");
    free(ret[head[0]].sample);
    ret[head[0]].n_samples = head[1];
    ret[head[0]].sample = must_alloc((size_t)head[1] + 1, sizeof(struct sample));
    memcpy(ret[head[0]].sample, (const char *)body + sizeof head, (size_t)head[1] * sizeof(struct sample));
}

void outcome_profile(const struct group *group, const void *body, size_t size, struct outcome *ret)
{
    int32_t v;
    if (size != sizeof v + sizeof(struct profile)) die(EXIT_BUG, "worker: a profile of %zu bytes; report it", size);
    memcpy(&v, body, sizeof v);
    if (v < 0 || v >= group->n) die(EXIT_BUG, "worker: a profile of variant %d of %d; report it", v, group->n);
    if (!ret[v].profile) ret[v].profile = must_alloc(1, sizeof *ret[v].profile);
    memcpy(ret[v].profile, (const char *)body + sizeof v, sizeof *ret[v].profile);
}

void outcome_loaded(const struct group *group, const void *body, size_t size, struct outcome *ret)
{
    int32_t v;
    if (size != sizeof v + sizeof(struct loaded)) die(EXIT_BUG, "worker: blocks of %zu bytes; report it", size);
    memcpy(&v, body, sizeof v);
    if (v < 0 || v >= group->n) die(EXIT_BUG, "worker: blocks of variant %d of %d; report it", v, group->n);
    memcpy(&ret[v].loaded, (const char *)body + sizeof v, sizeof ret[v].loaded);
}

void outcome_clear(struct outcome *ret)
{
    *ret = (struct outcome){.loaded = NOT_LOADED};
    row_clear(&ret->row);
}

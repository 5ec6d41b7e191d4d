#include "group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "check.h"
#include "loaded.h"
#include "measures.h"
#include "nvtx.h"
#include "profile.h"
#include "timer.h"

enum { EXIT_STICKY = 98, PREPARE_LIMIT_S = 600 };
static const double RING_BYTES_HOT = 0, RING_BYTES_COLD = 256e6;

/* What runs goes by its name in the timelines of tools. */
static void name_range(struct worker *worker)
{
    char words[320], dims[160], tune[96];
    if (worker->ranged == worker->variant) return;
    if (worker->ranged >= 0) nvtx_pop();
    worker->ranged = worker->variant;
    if (worker->variant < 0) return;
    const struct variant *variant = &worker->job->group.variant[worker->variant];
    const struct entry *entry = registry_find(&worker->registry, variant->kernel);
    problem_text(&worker->workload.problem, false, dims, sizeof dims);
    *tune = 0;
    if (entry) tune_text(entry->kernel, variant->tune, tune, sizeof tune);
    nvtx_push(text(words, sizeof words, "%s%s%s%s%s", variant->kernel, *dims ? " " : "", dims, *tune ? " " : "", tune));
}

/* The step_fn of check and timer: what runs next goes on the board, with the time it may take. */
static void tell_board(void *arg, const char *what)
{
    struct worker *worker = arg;
    char words[sizeof worker->board->what];
    text(words, sizeof words, "%s", what);
    worker->board->deadline_s = 0;
    for (size_t i = 0; i < sizeof words; i++) worker->board->what[i] = words[i];
    worker->board->variant = worker->variant;
    name_range(worker);
    worker->board->deadline_s = now_s() + (worker->variant < 0 ? PREPARE_LIMIT_S : worker->job->timeout_s);
}

/* Keeps a verdict and tells the parent, so that it survives us. After a sticky error nothing works here any more. */
static void decide(struct worker *worker, int v, struct verdict verdict)
{
    struct checked checked = {.variant = v, .verdict = verdict};
    worker->job->decided[v] = true;
    worker->job->verdict[v] = verdict;
    worker_send(worker, MESSAGE_CHECKED, &checked, sizeof checked, NULL, 0);
    if (worker->dev->sticky) _exit(EXIT_STICKY);
}

static const struct kernel *find_oracle(const struct worker *worker, const char *op)
{
    char why[160];
    for (int i = 0; i < worker->registry.n; i++) {
        const struct entry *entry = &worker->registry.entry[i];
        if (!strcmp(entry->kernel->op, op) && entry->kernel->promises & ORACLE &&
            entry->kernel->engine == worker->dev->machine.engine &&
            !registry_no_code(entry, &worker->dev->machine.facts, why, sizeof why))
            return entry->kernel;
    }
    return NULL;
}

/* Why a variant can't even start here; false: it can. */
static bool unsupported(struct worker *worker, const struct variant *variant, struct verdict *ret)
{
    const struct entry *entry = registry_find(&worker->registry, variant->kernel);
    const struct device *device = &worker->dev->machine.facts;
    *ret = (struct verdict){.status = STATUS_UNSUPPORTED, .err_rel = NAN, .checked_pct = NAN};
    if (!entry) return text(ret->reason, sizeof ret->reason, "no kernel of that name in this build");
    if (registry_no_code(entry, device, ret->reason, sizeof ret->reason)) return true;
    const char *why = entry->kernel->unfit ? entry->kernel->unfit(&worker->workload.seen, device) : NULL;
    if (why) text(ret->reason, sizeof ret->reason, "%s", why);
    return why;
}

static void check_variants(struct worker *worker)
{
    struct job *job = worker->job;
    for (int v = 0; v < job->group.n; v++) {
        const struct variant *variant = &job->group.variant[v];
        struct verdict verdict;
        if (job->decided[v]) continue;
        worker->variant = v;
        tell_board(worker, "open");
        if (!unsupported(worker, variant, &verdict)) {
            const struct kernel *kernel = registry_find(&worker->registry, variant->kernel)->kernel;
            struct bound bound;
            int error = bound_open(&bound, &worker->workload, kernel, variant->tune);
            if (error) verdict = verdict_of_error(&bound, error, "open");
            else if (job->once) verdict = check_once(&bound, tell_board, worker);
            else if (kernel->promises & PROBE) verdict = (struct verdict){.status = STATUS_OK, .err_rel = NAN, .checked_pct = NAN};
            else verdict = check_kernel(&bound, tell_board, worker);
            if (!worker->dev->sticky) bound_close(&bound);
        }
        decide(worker, v, verdict);
    }
    worker->variant = -1;
}

static double ring_bytes(const struct worker *worker)
{
    double cold = fmax(RING_BYTES_COLD, 2.0 * (double)worker->dev->machine.facts.l2_bytes);
    return worker->job->group.cache == HOT ? RING_BYTES_HOT : cold;
}

static int move_ring(void *arg, int placement)
{
    struct worker *worker = arg;
    worker->variant = -1;
    tell_board(worker, "ring of input sets");
    double begin = now_s();
    int error = workload_ring(&worker->workload, ring_bytes(worker), placement);
    worker->moved_s += now_s() - begin;
    return error;
}

/* The timer's lanes over those that are right; map[lane] is the variant. */
static int time_variants(struct worker *worker, struct timer *timer, struct bound *bound, int *map)
{
    struct job *job = worker->job;
    struct workload *w = &worker->workload;
    *timer = (struct timer){.dev = worker->dev, .w = w, .timing = job->timing, .seed = job->group.seed, .step = tell_board,
                            .step_arg = worker, .step_owner = &worker->variant, .warm_s = 0.02,
                            .placements = worker->dev->machine.engine == CUDA ? PLACEMENTS : 1, .move = move_ring,
                                .move_arg = worker,
                            .lane = must_alloc(MAX_VARIANTS, sizeof *timer->lane)};
    for (int v = 0; v < job->group.n; v++)
        if (job->verdict[v].status == STATUS_OK) map[timer->n_lanes++] = v;
    if (!timer->n_lanes) return 0;
    w->needed_bytes = 0;
    for (int l = 0; l < timer->n_lanes; l++)
        workload_needs(w, registry_find(&worker->registry, job->group.variant[map[l]].kernel)->kernel->reads);
    TRY(workload_ring(w, ring_bytes(worker), 0));
    for (int l = 0; l < timer->n_lanes; l++) {
        const struct variant *variant = &job->group.variant[map[l]];
        const struct kernel *kernel = registry_find(&worker->registry, variant->kernel)->kernel;
        timer->lane[l] = (struct lane){.bound = &bound[l], .owner = map[l], .verdict = {.status = STATUS_OK}};
        TRY(bound_open(&bound[l], w, kernel, variant->tune));
    }
    return 0;
}

/* Workspaces of all lanes share one block: it must have its last size and place before the first address is used. */
static int share_workspace(struct bound *bound, int n)
{
    for (int pass = 0; pass < 2; pass++)
        for (int l = 0; l < n; l++) TRY(bound_blocks(&bound[l]));
    return 0;
}

static void send_row(struct worker *worker, int v, const struct row *row, const struct lane *lane)
{
    int32_t variant = v, head[2] = {v, lane ? lane->n : 0};
    worker_send(worker, MESSAGE_ROW, &variant, sizeof variant, row, sizeof *row);
    if (head[1]) worker_send(worker, MESSAGE_SAMPLES, head, sizeof head, lane->sample, (size_t)head[1] * sizeof *lane->sample);
}

static void send_rows(struct worker *worker, const struct timer *timer, const int *map)
{
    const struct job *job = worker->job;
    double probe_ns = measures_probe_ns(timer);
    for (int v = 0; v < job->group.n; v++) {
        const struct lane *lane = NULL;
        for (int l = 0; l < timer->n_lanes; l++)
            if (map[l] == v) lane = &timer->lane[l];
        struct row row;
        measures_row(&row, job, v, lane, &worker->workload, probe_ns);
        send_row(worker, v, &row, lane);
    }
}

/* Nobody's fault but the group's: all variants that are not decided share the verdict. */
static void decide_all(struct worker *worker, int error, const char *what)
{
    struct bound nobody = {.w = &worker->workload};
    for (int v = 0; v < worker->job->group.n; v++)
        if (!worker->job->decided[v] || worker->job->verdict[v].status == STATUS_OK)
            decide(worker, v, verdict_of_error(&nobody, error, what));
}

static void send_profile(struct worker *worker, int32_t v, int error, struct bound *bound, struct profile *profile)
{
    if (error) text(profile->note, sizeof profile->note, "%s", verdict_of_error(bound, error, "profile").reason);
    worker_send(worker, MESSAGE_PROFILE, &v, sizeof v, profile, sizeof *profile);
    if (worker->dev->sticky) _exit(EXIT_STICKY);
}

/* What was timed and right, under the tracer and the counters. What they leave behind can touch no time of this group: all calls
 * are timed without them first. The next group has another process (supervisor_group). */
static void profile_lanes(struct worker *worker, struct timer *timer, const int *map)
{
    struct profile *profile = must_alloc(1, sizeof *profile);
    double untraced_ns[MAX_VARIANTS], read_B, write_B;
    for (int l = 0; l < timer->n_lanes; l++) {
        if (timer->lane[l].verdict.status != STATUS_OK) continue;
        worker->variant = map[l];
        if (worker->job->traced[map[l]].status != STATUS_OK) {
            profile_clear(profile);
            text(profile->replay.failed, sizeof profile->replay.failed, "%s", worker->job->traced[map[l]].reason);
            send_profile(worker, map[l], 0, timer->lane[l].bound, profile);
            timer->lane[l].verdict.status = STATUS_CRASH;   /* for what follows; its row has been sent */
            continue;
        }
        int error = profile_time(timer->lane[l].bound, timer->lane[l].summary.median, tell_board, worker, &untraced_ns[l]);
        if (!error) continue;
        profile_clear(profile);
        send_profile(worker, map[l], error, timer->lane[l].bound, profile);
        timer->lane[l].verdict.status = STATUS_CRASH;   /* for what follows; its row has been sent */
    }
    for (int l = 0; l < timer->n_lanes; l++) {
        struct bound *bound = timer->lane[l].bound;
        int v = map[l];
        if (timer->lane[l].verdict.status != STATUS_OK) continue;
        worker->variant = v;
        measures_traffic(bound->kernel, &worker->workload, &read_B, &write_B);
        if (bound->kernel->promises & PROBE) write_B = 0;
        int error = profile_run(bound, worker->job->group.variant[v].kernel, untraced_ns[l], read_B, write_B, tell_board, worker,
            profile);
        send_profile(worker, v, error, bound, profile);
    }
    worker->variant = -1;
    free(profile);
}

static int run_lanes(struct worker *worker, struct timer *timer, const int *map, int *ret_lane)
{
    if (!timer->n_lanes) return 0;
    if (!worker->job->loaded) return timer_run(timer, ret_lane);
    struct loaded *loaded = must_alloc((size_t)timer->n_lanes, sizeof *loaded);
    int error = loaded_run(timer, ret_lane, loaded);
    for (int32_t l = 0; l < timer->n_lanes && !error; l++)
        worker_send(worker, MESSAGE_LOADED, &(int32_t){map[l]}, sizeof(int32_t), &loaded[l], sizeof *loaded);
    free(loaded);
    return error;
}

static void run_timed(struct worker *worker, struct done *done)
{
    struct timer timer = {0};
    struct bound *bound = must_alloc(MAX_VARIANTS, sizeof *bound);
    int map[MAX_VARIANTS], lane = -1, error = 0;
    worker->moved_s = 0;
    double begin = now_s();
    if (worker->job->time) {
        tell_board(worker, "ring of input sets");
        error = time_variants(worker, &timer, bound, map);
        if (!error) error = share_workspace(bound, timer.n_lanes);
        done->ring_s = now_s() - begin;
        begin = now_s();
        if (!error) error = run_lanes(worker, &timer, map, &lane);
        if (error && lane >= 0) {   /* the others are timed again without it, by the next worker */
            decide(worker, map[lane], verdict_of_error(&bound[lane], error, "timed launches"));
            _exit(EXIT_STICKY);
        }
        if (error) decide_all(worker, error, "ring of input sets");
        done->timed_s = now_s() - begin - worker->moved_s;
        done->ring_s += worker->moved_s;
        worker->variant = -1;
    }
    send_rows(worker, &timer, map);
    if (worker->job->profile && !error) profile_lanes(worker, &timer, map);
    for (int l = 0; l < timer.n_lanes && !worker->dev->sticky; l++) bound_close(&bound[l]);
    timer_free(&timer);
    free(timer.lane);
    free(bound);
}

void group_run(struct worker *worker)
{
    struct job *job = worker->job;
    struct done done = {0};
    double begin = now_s();
    struct problem problem = {.op = op_find(job->group.op), .seed = job->group.seed};
    memcpy(problem.dim, job->group.dim, sizeof problem.dim);
    worker->variant = -1;
    tell_board(worker, "inputs and references");
    bool check = job->check || job->once;
    int error = workload_prepare(&worker->workload, &problem, find_oracle(worker, job->group.op), check ? job->reference_s : -1);
    if (error) decide_all(worker, error, "inputs and references");
    done.prepare_s = now_s() - begin;
    if (!error) {
        done.reference_s = worker->workload.head->reference_s;
        check_variants(worker);
        done.check_s = now_s() - begin - done.prepare_s;
    }
    run_timed(worker, &done);
    workload_release(&worker->workload);
    done.total_s = now_s() - begin;
    worker->board->deadline_s = 0;
    name_range(worker);
    worker_send(worker, MESSAGE_DONE, &done, sizeof done, NULL, 0);
}

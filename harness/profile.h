/* One kernel under the tracer and the counters, in passes of its own after the timing: what `kbench profile` adds to a row. */
#ifndef KBENCH_PROFILE_H
#define KBENCH_PROFILE_H

#include "breakdown.h"
#include "check.h"
#include "counters.h"

struct row;

/* Plain data: goes from worker to parent as it stands. */
struct profile {
    struct breakdown replay;      /* of graph replays over the ring; launches 0: not traced */
    struct breakdown eager;       /* of one launch outside of a graph */
    struct counters  counters;    /* of a call, mean over the ring */
    double           read_B, write_B;   /* the fewest that a call must read and write */
    int32_t          calls;       /* in a pass of the counters */
    int32_t          disturbed;   /* such passes, that took longer than the others */
    char             note[240];   /* why there is no trace; or empty */
};

/* Nothing traced, nothing counted. */
void profile_clear(struct profile *);

/* What a call takes on the ring, as rows are timed; on some of it where all of it would take long. about_ns: what its row says;
 * NaN: nobody knows. Of up to three tries the nearest to that, where another place of data doesn't explain how far it is. Before
 * the first profile_run of a process: once a tracer has been on, some short calls take a fifth longer in it, although it is off
 * (`kbench doctor --floors` measures that). */
int profile_time(struct bound *, double about_ns, step_fn *, void *step_arg, double *ret_call_ns);

/* Traces and counts a kernel on the ring. name: what its rows call it, for lack of its own where the clock records; untraced_ns: of
 * profile_time. 0, or the device's error of a launch. What the tracer or the counters lack is words in ret, no error. */
int profile_run(struct bound *, const char *name, double untraced_ns, double read_B, double write_B, step_fn *, void *step_arg,
    struct profile *ret);

/* Whether a time is farther from the row's than another place of data explains. */
bool  profile_apart(double ns, double row_ns);
/* Why the machine does not seem to have been quiet while it was profiled, or "": the tracer's own passes have no canary. */
char *profile_doubt(const struct profile *, const struct row *, char *ret, size_t size);

/* What follows from counters and row. NaN where something is missing. */
struct derived {
    double workspace_B;           /* estimate: written to L2 beyond the outputs, at most what is declared, and read back once */
    double l2_reread;             /* bytes from L2 to SMs, less reads of workspace, over those that must be read */
    double dram_reread;           /* bytes from DRAM likewise; workspace is taken for L2's unless it is larger than L2, then for
                                   * DRAM's, which makes it a lower bound; NaN where that is below 1, and so no bound at all */
    double pct_read_ceiling;      /* DRAM bytes a second, of the measured read ceiling */
    double pct_matrix_ceiling;    /* flop a second, of the measured matrix ceiling */
    double flop_per_B;            /* of DRAM bytes as counted; where they were not, of the fewest bytes */
    char   why[80];               /* why there is no dram_reread though its counters are there, or "" */
    char   doubt[300];            /* of profile_doubt */
};

struct machine;
double profile_flop(const struct row *);   /* NaN of a probe, which moves the op's bytes and leaves its arithmetic out */
struct derived profile_derive(const struct profile *, const struct row *, const struct machine *);

#endif

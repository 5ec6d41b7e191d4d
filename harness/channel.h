/* What parent and worker say to each other: framed plain structs over a Unix socket, and a shared board on which a worker writes
 * what it is about to run, so that its death names the row. Both sides are the same program, so layouts agree. */
#ifndef KBENCH_CHANNEL_H
#define KBENCH_CHANNEL_H

#include "cli.h"
#include "machine.h"
#include "plan.h"
#include "plugin.h"
#include "row.h"
#include "runfolder.h"

enum message {
    MESSAGE_HELLO,    /* worker: struct hello */
    MESSAGE_MEASURE,  /* parent: measure the ceilings and say hello again */
    MESSAGE_JOB,      /* parent: struct job */
    MESSAGE_CHECKED,  /* worker: struct checked, as soon as a variant's check is over */
    MESSAGE_ROW,      /* worker: int32_t variant, struct row */
    MESSAGE_SAMPLES,  /* worker: int32_t variant, int32_t n, struct sample[n] */
    MESSAGE_DONE,     /* worker: struct done; ends the group */
    MESSAGE_PROFILE,  /* worker: int32_t variant, struct profile */
    MESSAGE_LOADED,   /* worker: int32_t variant, struct loaded */
    MESSAGE_FAULT,    /* worker: char[], why the device or group can't be had; the worker ends */
};

struct hello {
    struct machine machine;
    char           why_not_cuda[256];  /* with --device auto: why it fell back to the host */
    char           plugin_hash[MAX_LIST][PLUGIN_HASH_BYTES];   /* of the plug-ins as this worker has opened them, in order */
};

/* What a check found, or why there was none. */
struct verdict {
    enum status status;
    double      err_rel, checked_pct;
    char        reason[320];
};

struct checked {
    int32_t        variant;
    struct verdict verdict;
};

struct timing {
    double  width_pct;     /* stop when (hi - lo) / median is at most this */
    double  cap_s;         /* or when the row has taken this long */
    int32_t rounds;        /* or exactly after so many; 0: by width */
    int32_t min_rounds, max_rounds;
};

struct job {
    struct group    group;
    struct ceilings ceilings;
    struct timing   timing;
    double          timeout_s;               /* one check step or one sample */
    double          reference_s;             /* of the CPU for the references of the problem */
    bool            check, time;
    bool            profile;                 /* what was timed is traced and counted, too */
    bool            loaded;                  /* timed before the tracer, with it, and after it was on; time is true, too */
    bool            once;                    /* under --wrap: one launch, no time */
    bool            decided[MAX_VARIANTS];   /* verdicts of an earlier worker on the same group */
    struct verdict  verdict[MAX_VARIANTS];
    struct verdict  traced[MAX_VARIANTS];    /* not STATUS_OK: an earlier worker died tracing it, so that it is timed alone */
};

/* What is in the process: nothing, twice; by turns nothing any more and the tracer, which has never been on; a tracer that has been
 * on and is off. */
enum { LOADED_FIRST, LOADED_AGAIN, LOADED_GONE, LOADED_OFF, LOADED_TRACED, LOADED_STATES };

/* One variant in each of them. */
struct loaded {
    double  ns[LOADED_STATES];               /* of a call, median of as many rounds; NaN: not timed */
    int32_t disturbed;                       /* blocks of rounds in which other work was seen */
    char    why[240];                        /* why there is no tracer, or "" */
};

#define NOT_LOADED {.ns = {NAN, NAN, NAN, NAN, NAN}}

struct done {
    double prepare_s, check_s, ring_s, timed_s, total_s;   /* untimed work: all but timed_s */
    double reference_s;                                    /* part of prepare_s */
};

/* Shared by parent and worker through a memory file. variant -1: preparing. deadline_s: monotonic clock; 0: none. */
struct board {
    volatile int32_t variant;
    volatile double  deadline_s;
    volatile char    what[96];
};

/* 0, or -1 where the other side is gone. Parts are sent as one frame. */
int channel_send(int fd, enum message, const void *a, size_t a_size, const void *b, size_t b_size);
/* Waits at most timeout_s for a whole frame: 1 got one (malloc'ed body), 0 none yet, -1 the other side is gone. */
int channel_receive(int fd, double timeout_s, enum message *ret_kind, void **ret_body, size_t *ret_size);

/* A socket of a new name; the worker connects to it and is given `memory` (a memory file's descriptor). */
int  channel_listen(char *ret_name, size_t size);
int  channel_accept(int listener, int memory);      /* the connection, or -1 */
int  channel_connect(const char *name, int *ret_memory);

#endif

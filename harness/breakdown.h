/* Where a call's time went: from a device's activity records of some launches to kernels, copies and sets with count, time, gaps
 * and overlap. Pure functions. Records are not trusted: what is lost, impossible, foreign or double is counted, launches with such
 * a record are left out as a whole, and above a limit there is no breakdown. */
#ifndef KBENCH_BREAKDOWN_H
#define KBENCH_BREAKDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum activity_kind { ACTIVITY_KERNEL, ACTIVITY_COPY, ACTIVITY_SET };

/* How a kernel was launched: blocks, threads of a block, blocks of a cluster, in x, y, z; bytes of a block's shared memory. */
struct launch_shape {
    int32_t grid[3], block[3], cluster[3], shared_B;
};

/* One thing that ran on the device. */
struct activity {
    enum activity_kind kind;
    uint32_t           correlation;        /* of the launch; all nodes of one replay share it */
    uint64_t           node;               /* of an executable graph; 0: launched eagerly */
    uint64_t           start_ns, end_ns;   /* the device's clock; 0: not known */
    uint64_t           bytes;              /* of a copy or set */
    const char        *name;               /* of a kernel as the compiler has it, else what it is */
    const char        *range;              /* launched eagerly: the innermost range that stood open then; NULL unknown */
    struct launch_shape       shape;              /* of a kernel; all 0: not known */
};

/* A node of an executable graph, as known since its capture. */
struct capture_node {
    uint64_t    id;
    const char *range;   /* the innermost range that stood open when it was launched; "" none */
};

struct recording {
    int                  n, n_nodes;
    struct activity     *activity;   /* in any order */
    struct capture_node *node;       /* of all graphs; none: unknown */
    int64_t              dropped;    /* records that the tracer lost, as it says itself */
    int                  launches;   /* replays; eager: 1, all records together */
    int                  calls;      /* in each launch */
    int                  chunks;     /* launches, in their order, are of these by turns, and all of one do the same; 0: 1 */
    int                  nodes;      /* kernels, copies and sets in each launch, by its capture; 0: eager, unknown */
    double               untraced_ns;/* time of a call without tracing; NaN unknown */
    bool                 by_clock;   /* recorded by the caller's own clock: nothing of it can be lost */
    char                *names;      /* what the pointers above lead to, or NULL; recording_free's */
};

enum { MAX_PARTS = 40 };

struct part {
    int32_t kind;
    int64_t count, total_ns, min_ns, max_ns;
    int64_t gap_ns;        /* of it, nothing ran just before these */
    int64_t bytes;
    struct launch_shape shape;    /* of all of them; all 0: they differ, or it's not known */
    char    name[160], range[64];
};

/* Sums are over the launches that were used. busy + gap - overlap == span, to the nanosecond. */
struct breakdown {
    int32_t launches, used, calls, n;   /* calls: in each launch; n: parts */
    int64_t span_ns;                    /* first start to last end of each launch */
    int64_t busy_ns;                    /* of all records */
    int64_t gap_ns;                     /* nothing ran */
    int64_t overlap_ns;                 /* busy less the time in which something ran */
    int64_t disturbed_ns;               /* of the span: what launches took beyond the others of their chunk: of other work */
    int32_t disturbed;                  /* such launches */
    int64_t records, dropped, zero_time, reversed, unmatched, duplicates, missing, kernels;
    double  kernels_per_call, untraced_ns, ratio;   /* ratio: span a call over the untraced time; NaN unknown */
    bool    mapped;                     /* nodes were known since capture */
    char    failed[160];                /* empty: it holds */
    struct part part[MAX_PARTS];        /* longest first; what has no room is the last one's */
};

void breakdown_make(const struct recording *, struct breakdown *ret);

double breakdown_call_ns(const struct breakdown *);                          /* span of a call; NaN where there is none */
/* Other work took more of the traced time than a trace can bear: 1 %. */
bool   breakdown_disturbed(const struct breakdown *);
double breakdown_share_pct(const struct breakdown *, int64_t ns);            /* of the span */
/* What a reader calls a kernel: without return type, namespaces, parameters. "gather<64>(float*)" -> "gather<64>" */
char  *kernel_short_name(const char *name, char *ret, size_t size);
/* What it calls a part: its range and then its name, "product: nvjet_64x384..", in at most `most` bytes; the name alone where that
 * says the range already ("relu" of "indexer_relu"). */
char  *part_text(const char *range, const char *name, int most, char *ret, size_t size);

void   recording_free(struct recording *);

#endif

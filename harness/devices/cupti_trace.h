/* What the two halves of the tracer share: cupti.c, which switches it on and hears of launches, and cupti_records.c, which takes
 * what ran. */
#ifndef KBENCH_CUPTI_TRACE_H
#define KBENCH_CUPTI_TRACE_H

#include <pthread.h>

#include "cupti.h"
#include "cupti_api.h"

/* A node as created by a launch under capture, or its copy in an executable graph. */
struct known_node {
    CUgraphNode handle;
    uint64_t    id;
    size_t      range;   /* in names; 0: none */
    bool        runs;    /* of an executable graph */
};

/* A call of the runtime or driver, outside of a capture, by the number that its records have. */
struct known_launch {
    uint32_t correlation;
    size_t   range;      /* in names, not 0 */
};

struct cupti {
    const struct cupti_api *api;
    struct cupti_api        own;      /* filled by dlopen */
    CUpti_SubscriberHandle  subscriber;
    pthread_mutex_t         lock;     /* buffers come back on a thread of CUPTI's */
    bool                    launches; /* ranges of launches are kept, too */
    int                     n, room, n_nodes, node_room, n_launches, launch_room, buffers;
    struct activity        *activity; /* name: an offset into names, until the end */
    struct known_node      *node;
    struct known_launch    *launch;
    char                   *names;    /* texts, each ended by a zero; the first is "" */
    size_t                  names_n, names_room;
    int64_t                 dropped;
};

/* The callbacks of buffers have no argument of their own, and CUPTI has one set of them in a process. */
extern struct cupti *_Atomic cupti_tracing;

/* Adds a text, or finds it: launches repeat a few. Where it stands. */
size_t cupti_keep_name(struct cupti *, const char *name);
/* An empty list of records. */
void   cupti_clear(struct cupti *);
/* Hands over what was collected; offsets become pointers, now that the names stay where they are. */
void   cupti_hand_over(struct cupti *, struct recording *ret);

void CUPTIAPI cupti_buffer_requested(uint8_t **ret, size_t *ret_size, size_t *ret_records);
void CUPTIAPI cupti_buffer_completed(CUcontext, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

#endif

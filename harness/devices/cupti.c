/* Activity records by CUPTI: buffers that its own thread hands back, and nodes of graphs by the ids that it gives them. */
#include "cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "cupti_api.h"
#include "library.h"
#include "nvtx.h"

/* Records as this toolkit has them; later ones of the same major version only grow. */
#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 copy_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
#endif
typedef CUpti_ActivityMemset4 set_record;

enum { BUFFER_BYTES = 4 << 20, RECORD_ALIGN = 8, RECORD_NAME = 160, MOST_RECORDS = 4 << 20 };

/* A node as created by a launch under capture, or its copy in an executable graph. */
struct known_node {
    CUgraphNode handle;
    uint64_t    id;
    size_t      range;   /* in names; 0: none */
    bool        runs;    /* of an executable graph */
};

struct cupti {
    const struct cupti_api *api;
    struct cupti_api        own;      /* filled by dlopen */
    CUpti_SubscriberHandle  subscriber;
    pthread_mutex_t         lock;     /* buffers come back on a thread of CUPTI's */
    int                     n, room, n_nodes, node_room, buffers;
    struct activity        *activity; /* name: an offset into names, until the end */
    struct known_node      *node;
    char                   *names;    /* texts, each ended by a zero; the first is "" */
    size_t                  names_n, names_room;
    int64_t                 dropped;
};

/* The callbacks of buffers have no argument of their own, and CUPTI has one set of them in a process. */
static struct cupti *_Atomic tracing;

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMSET};
static const CUpti_CallbackId graph_events[] = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};

const struct cupti_api *cupti_api_of(const struct cupti *c)
{
    return c->api;
}

/* Adds a text, or finds it: launches repeat a few. Where it stands. */
static size_t keep_name(struct cupti *c, const char *name)
{
    size_t length = strlen(name) + 1;
    for (size_t at = 0; at < c->names_n; at += strlen(c->names + at) + 1)
        if (!strcmp(c->names + at, name)) return at;
    if (c->names_n + length > c->names_room) {
        c->names_room = 2 * (c->names_n + length) + 4096;
        c->names = must_grow(c->names, c->names_room, 1);
    }
    memcpy(c->names + c->names_n, name, length);
    c->names_n += length;
    return c->names_n - length;
}

static void keep_activity(struct cupti *c, struct activity a, const char *name)
{
    if (c->n == MOST_RECORDS) {
        c->dropped++;
        return;
    }
    if (c->n == c->room) {
        c->room = 2 * c->room + 1024;
        c->activity = must_grow(c->activity, (size_t)c->room, sizeof *c->activity);
    }
    a.name = (const char *)(uintptr_t)keep_name(c, name);
    c->activity[c->n++] = a;
}

static const char *copy_name(int kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "copy device to device";
    default: return "copy";
    }
}

static void take_record(struct cupti *c, const CUpti_Activity *record)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
        const kernel_record *k = (const kernel_record *)record;
        keep_activity(c, (struct activity){ACTIVITY_KERNEL, k->correlationId, k->graphNodeId, k->start, k->end, 0, NULL},
            k->name ? k->name : "?");
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const copy_record *m = (const copy_record *)record;
        keep_activity(c, (struct activity){ACTIVITY_COPY, m->correlationId, m->graphNodeId, m->start, m->end, m->bytes, NULL},
            copy_name(m->copyKind));
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const set_record *s = (const set_record *)record;
        keep_activity(c, (struct activity){ACTIVITY_SET, s->correlationId, s->graphNodeId, s->start, s->end, s->bytes, NULL},
            "set");
    }
}

static void CUPTIAPI buffer_requested(uint8_t **ret, size_t *ret_size, size_t *ret_records)
{
    void *p = NULL;
    *ret_records = 0;   /* as many as have room */
    *ret_size = posix_memalign(&p, RECORD_ALIGN, BUFFER_BYTES) ? 0 : BUFFER_BYTES;
    *ret = p;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    struct cupti *c = tracing;
    (void)size;
    if (c && buffer) {
        pthread_mutex_lock(&c->lock);
        CUpti_Activity *record = NULL;
        while (valid && c->api->cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) take_record(c, record);
        size_t dropped = 0;
        if (!c->api->cuptiActivityGetNumDroppedRecords(context, stream, &dropped)) c->dropped += (int64_t)dropped;
        c->buffers++;
        pthread_mutex_unlock(&c->lock);
    }
    free(buffer);
}

static const struct known_node *node_of(const struct cupti *c, CUgraphNode handle)
{
    for (int i = c->n_nodes - 1; i >= 0; i--)   /* the newest: handles are used again */
        if (c->node[i].handle == handle) return &c->node[i];
    return NULL;
}

/* A launch under capture makes a node; instantiation makes its copy, which is what runs. */
static void CUPTIAPI graph_event(void *arg, CUpti_CallbackDomain domain, CUpti_CallbackId event, const void *data)
{
    struct cupti *c = arg;
    if (domain != CUPTI_CB_DOMAIN_RESOURCE || (event != CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED &&
        event != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)) return;
    const CUpti_GraphData *graph = ((const CUpti_ResourceData *)data)->resourceDescriptor;
    struct known_node node = {.handle = graph->node};
    bool on_device = graph->nodeType == CU_GRAPH_NODE_TYPE_KERNEL || graph->nodeType == CU_GRAPH_NODE_TYPE_MEMCPY ||
        graph->nodeType == CU_GRAPH_NODE_TYPE_MEMSET;
    if (!on_device || c->api->cuptiGetGraphNodeId(graph->node, &node.id)) return;
    pthread_mutex_lock(&c->lock);
    if (event == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) {
        const struct known_node *original = node_of(c, graph->originalNode);
        node.runs = true;
        node.range = original ? original->range : 0;
    } else {
        node.range = keep_name(c, nvtx_innermost());
    }
    if (c->n_nodes == c->node_room) {
        c->node_room = 2 * c->node_room + 256;
        c->node = must_grow(c->node, (size_t)c->node_room, sizeof *c->node);
    }
    c->node[c->n_nodes++] = node;
    pthread_mutex_unlock(&c->lock);
}

/* Everything off, whatever of it was on. */
static void let_go(struct cupti *c)
{
    for (int i = 0; i < COUNT(kinds); i++) c->api->cuptiActivityDisable(kinds[i]);
    for (int i = 0; i < COUNT(graph_events); i++)
        c->api->cuptiEnableCallback(0, c->subscriber, CUPTI_CB_DOMAIN_RESOURCE, graph_events[i]);
    c->api->cuptiUnsubscribe(c->subscriber);
    tracing = NULL;
}

int cupti_trace_begin(struct cupti *c, char *ret_why, size_t size)
{
    struct cupti *nobody = NULL;
    if (!__atomic_compare_exchange_n((struct cupti **)&tracing, &nobody, c, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return text(ret_why, size, "a trace is under way already"), -1;
    const char *what = "cuptiSubscribe";
    CUptiResult error = c->api->cuptiSubscribe(&c->subscriber, graph_event, c);
    if (error) {
        tracing = NULL;
        return cupti_error_text(c->api, what, error, ret_why, size), (int)error;
    }
    c->n = c->n_nodes = c->buffers = 0;
    c->names_n = 0;
    c->dropped = 0;
    keep_name(c, "");
    what = "cuptiActivityRegisterCallbacks";
    error = c->api->cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
    if (!error) what = "cuptiEnableCallback";
    for (int i = 0; i < COUNT(graph_events) && !error; i++)
        error = c->api->cuptiEnableCallback(1, c->subscriber, CUPTI_CB_DOMAIN_RESOURCE, graph_events[i]);
    if (!error) what = "cuptiActivityEnable";
    for (int i = 0; i < COUNT(kinds) && !error; i++) error = c->api->cuptiActivityEnable(kinds[i]);
    if (!error) return 0;
    let_go(c);
    return cupti_error_text(c->api, what, error, ret_why, size), (int)error;
}

/* Kernels' names arrive as the linker has them. In place: a short name is never longer. */
static void shorten_names(struct cupti *c)
{
    char *(*demangle)(const char *, char *, size_t *, int *) = NULL;
    void *runtime = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);   /* C++'s own, which a C program may lack */
    if (runtime) library_find(runtime, "__cxa_demangle", &demangle);
    for (size_t at = 0; at < c->names_n;) {
        char *name = c->names + at, shorter[RECORD_NAME];
        size_t length = strlen(name);
        int error = 0;
        char *plain = demangle && !strncmp(name, "_Z", 2) ? demangle(name, NULL, NULL, &error) : NULL;
        kernel_short_name(plain ? plain : name, shorter, sizeof shorter);
        if (plain && strlen(shorter) <= length) memset(name, 0, length), memcpy(name, shorter, strlen(shorter));
        free(plain);
        at += length + 1;
    }
    if (runtime) dlclose(runtime);
}

static bool is_known(const struct recording *r, uint64_t id)
{
    for (int i = r->n_nodes - 1; i >= 0; i--)
        if (r->node[i].id == id) return true;
    return false;
}

/* Hands over what was collected; offsets become pointers, now that the names stay where they are. */
static void hand_over(struct cupti *c, struct recording *ret)
{
    shorten_names(c);
    ret->activity = c->activity, ret->n = c->n, ret->dropped = c->dropped, ret->names = c->names;
    for (int i = 0; i < c->n; i++) ret->activity[i].name = c->names + (uintptr_t)ret->activity[i].name;
    ret->n_nodes = 0;
    ret->node = must_alloc((size_t)c->n_nodes + 1, sizeof *ret->node);
    for (int i = 0; i < c->n_nodes; i++)
        if (c->node[i].runs && !is_known(ret, c->node[i].id))
            ret->node[ret->n_nodes++] = (struct capture_node){c->node[i].id, c->names + c->node[i].range};
    free(c->node);
    c->activity = NULL, c->names = NULL, c->node = NULL;
    c->n = c->room = c->n_nodes = c->node_room = 0;
    c->names_n = c->names_room = 0;
}

int cupti_trace_end(struct cupti *c, struct recording *ret, char *ret_why, size_t size)
{
    CUptiResult error = c->api->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    let_go(c);
    pthread_mutex_lock(&c->lock);
    hand_over(c, ret);
    pthread_mutex_unlock(&c->lock);
    if (error) cupti_error_text(c->api, "cuptiActivityFlushAll", error, ret_why, size);
    return (int)error;
}

struct cupti *cupti_on(const struct cupti_api *api)
{
    struct cupti *c = must_alloc(1, sizeof *c);
    c->api = api;
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

struct cupti *cupti_open(char *ret_why, size_t size)
{
    struct cupti *c = cupti_on(NULL);
    c->api = &c->own;
    if (!cupti_load(&c->own, ret_why, size)) return c;
    cupti_api_close(&c->own);
    cupti_close(c);
    return NULL;
}

int cupti_unload(struct cupti *c, char *ret_why, size_t size)
{
    if (c) cupti_api_close(&c->own);
    cupti_close(c);
    return cupti_absent(ret_why, size);
}

void cupti_close(struct cupti *c)
{
    if (!c) return;
    free(c->activity), free(c->node), free(c->names);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Activity records by CUPTI: buffers that its own thread hands back, and nodes of graphs by the ids that it gives them. */
#include "cupti_trace.h"

#include <stdlib.h>

#include "base.h"
#include "nvtx.h"

struct cupti *_Atomic cupti_tracing;

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMSET};
static const CUpti_CallbackDomain apis[] = {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API};
static const CUpti_CallbackId graph_events[] = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};

const struct cupti_api *cupti_api_of(const struct cupti *c)
{
    return c->api;
}

static const struct known_node *node_of(const struct cupti *c, CUgraphNode handle)
{
    for (int i = c->n_nodes - 1; i >= 0; i--)   /* the newest: handles are used again */
        if (c->node[i].handle == handle) return &c->node[i];
    return NULL;
}

/* Any call, for which ones launch the version of the driver says; a record has the number of the one that did. */
static void api_call(struct cupti *c, const CUpti_CallbackData *call)
{
    const char *range = call->callbackSite == CUPTI_API_ENTER ? nvtx_innermost() : "";
    if (!*range) return;
    pthread_mutex_lock(&c->lock);
    if (c->n_launches == c->launch_room) {
        c->launch_room = 2 * c->launch_room + 64;
        c->launch = must_grow(c->launch, (size_t)c->launch_room, sizeof *c->launch);
    }
    c->launch[c->n_launches++] = (struct known_launch){call->correlationId, cupti_keep_name(c, range)};
    pthread_mutex_unlock(&c->lock);
}

/* A launch under capture makes a node; instantiation makes its copy, which is what runs. */
static void graph_event(struct cupti *c, CUpti_CallbackId event, const void *data)
{
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
        node.range = cupti_keep_name(c, nvtx_innermost());
    }
    if (c->n_nodes == c->node_room) {
        c->node_room = 2 * c->node_room + 256;
        c->node = must_grow(c->node, (size_t)c->node_room, sizeof *c->node);
    }
    c->node[c->n_nodes++] = node;
    pthread_mutex_unlock(&c->lock);
}

static void CUPTIAPI hear(void *arg, CUpti_CallbackDomain domain, CUpti_CallbackId event, const void *data)
{
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API) api_call(arg, data);
    else if (domain == CUPTI_CB_DOMAIN_RESOURCE && (event == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED ||
        event == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)) graph_event(arg, event, data);
}

/* Everything off, whatever of it was on. */
static void let_go(struct cupti *c)
{
    for (int i = 0; i < COUNT(apis) && c->launches; i++) c->api->cuptiEnableDomain(0, c->subscriber, apis[i]);
    for (int i = 0; i < COUNT(kinds); i++) c->api->cuptiActivityDisable(kinds[i]);
    for (int i = 0; i < COUNT(graph_events); i++)
        c->api->cuptiEnableCallback(0, c->subscriber, CUPTI_CB_DOMAIN_RESOURCE, graph_events[i]);
    c->api->cuptiUnsubscribe(c->subscriber);
    cupti_tracing = NULL;
}

int cupti_trace_begin(struct cupti *c, bool eager, char *ret_why, size_t size)
{
    struct cupti *nobody = NULL;
    if (!__atomic_compare_exchange_n((struct cupti **)&cupti_tracing, &nobody, c, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return text(ret_why, size, "a trace is under way already"), -1;
    const char *what = "cuptiSubscribe";
    CUptiResult error = c->api->cuptiSubscribe(&c->subscriber, hear, c);
    if (error) {
        cupti_tracing = NULL;
        return cupti_error_text(c->api, what, error, ret_why, size), (int)error;
    }
    cupti_clear(c);
    c->launches = eager;
    what = "cuptiActivityRegisterCallbacks";
    error = c->api->cuptiActivityRegisterCallbacks(cupti_buffer_requested, cupti_buffer_completed);
    if (!error) what = "cuptiEnableCallback";
    for (int i = 0; i < COUNT(graph_events) && !error; i++)
        error = c->api->cuptiEnableCallback(1, c->subscriber, CUPTI_CB_DOMAIN_RESOURCE, graph_events[i]);
    if (!error && eager) what = "cuptiEnableDomain";
    for (int i = 0; i < COUNT(apis) && !error && eager; i++) error = c->api->cuptiEnableDomain(1, c->subscriber, apis[i]);
    if (!error) what = "cuptiActivityEnable";
    for (int i = 0; i < COUNT(kinds) && !error; i++) error = c->api->cuptiActivityEnable(kinds[i]);
    if (!error) return 0;
    let_go(c);
    return cupti_error_text(c->api, what, error, ret_why, size), (int)error;
}

int cupti_trace_end(struct cupti *c, struct recording *ret, char *ret_why, size_t size)
{
    CUptiResult error = c->api->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    let_go(c);
    pthread_mutex_lock(&c->lock);
    cupti_hand_over(c, ret);
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
    free(c->activity), free(c->node), free(c->launch), free(c->names);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

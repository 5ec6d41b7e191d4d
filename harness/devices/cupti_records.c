/* What ran, from CUPTI's buffers: records, their names, and the ranges that they were launched in. */
#include "cupti_trace.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "library.h"

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

size_t cupti_keep_name(struct cupti *c, const char *name)
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
    a.name = (const char *)(uintptr_t)cupti_keep_name(c, name);
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

/* A launch without clusters has some of none. */
static struct launch_shape shape_of(const kernel_record *k)
{
    struct launch_shape ret = {.grid = {k->gridX, k->gridY, k->gridZ}, .block = {k->blockX, k->blockY, k->blockZ},
        .shared_B = k->staticSharedMemory + k->dynamicSharedMemory};
    if (k->clusterX * k->clusterY * k->clusterZ > 1)
        ret.cluster[0] = (int32_t)k->clusterX, ret.cluster[1] = (int32_t)k->clusterY, ret.cluster[2] = (int32_t)k->clusterZ;
    return ret;
}

static void take_record(struct cupti *c, const CUpti_Activity *record)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
        const kernel_record *k = (const kernel_record *)record;
        keep_activity(c, (struct activity){.kind = ACTIVITY_KERNEL, .correlation = k->correlationId, .node = k->graphNodeId,
            .start_ns = k->start, .end_ns = k->end, .shape = shape_of(k)}, k->name ? k->name : "?");
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const copy_record *m = (const copy_record *)record;
        keep_activity(c, (struct activity){.kind = ACTIVITY_COPY, .correlation = m->correlationId, .node = m->graphNodeId,
            .start_ns = m->start, .end_ns = m->end, .bytes = m->bytes}, copy_name(m->copyKind));
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const set_record *s = (const set_record *)record;
        keep_activity(c, (struct activity){.kind = ACTIVITY_SET, .correlation = s->correlationId, .node = s->graphNodeId,
            .start_ns = s->start, .end_ns = s->end, .bytes = s->bytes}, "set");
    }
}

void CUPTIAPI cupti_buffer_requested(uint8_t **ret, size_t *ret_size, size_t *ret_records)
{
    void *p = NULL;
    *ret_records = 0;   /* as many as have room */
    *ret_size = posix_memalign(&p, RECORD_ALIGN, BUFFER_BYTES) ? 0 : BUFFER_BYTES;
    *ret = p;
}

void CUPTIAPI cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    struct cupti *c = cupti_tracing;
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

static const char *range_of(const struct cupti *c, uint32_t correlation)
{
    for (int i = 0; i < c->n_launches; i++)
        if (c->launch[i].correlation == correlation) return c->names + c->launch[i].range;
    return NULL;
}

void cupti_clear(struct cupti *c)
{
    c->n = c->n_nodes = c->n_launches = c->buffers = 0;
    c->names_n = 0;
    c->dropped = 0;
    cupti_keep_name(c, "");
}

void cupti_hand_over(struct cupti *c, struct recording *ret)
{
    shorten_names(c);
    ret->activity = c->activity, ret->n = c->n, ret->dropped = c->dropped, ret->names = c->names;
    for (int i = 0; i < c->n; i++) {
        struct activity *a = &ret->activity[i];
        a->name = c->names + (uintptr_t)a->name;
        a->range = a->node ? NULL : range_of(c, a->correlation);
    }
    ret->n_nodes = 0;
    ret->node = must_alloc((size_t)c->n_nodes + 1, sizeof *ret->node);
    for (int i = 0; i < c->n_nodes; i++)
        if (c->node[i].runs && !is_known(ret, c->node[i].id))
            ret->node[ret->n_nodes++] = (struct capture_node){c->node[i].id, c->names + c->node[i].range};
    free(c->node), free(c->launch);
    c->activity = NULL, c->names = NULL, c->node = NULL, c->launch = NULL;
    c->n = c->room = c->n_nodes = c->node_room = c->n_launches = c->launch_room = 0;
    c->names_n = c->names_room = 0;
}

/* attn said as plainly as can be, for both engines: the control of the planted kernels, each of which breaks it in one way.
 *
 * Compiled as C for the host engine, and through the one-line .cu beside each file as CUDA, where one thread computes one
 * head and a step is run by one thread. Slow and right; a planted kernel is right.h plus one fault.
 */
#ifndef KBENCH_PLANTED_RIGHT_H
#define KBENCH_PLANTED_RIGHT_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "attn.h"
#include "kernel.h"

/* Faults that sit inside the computation; the others are steps after it. */
enum fault { RIGHT, IGNORES_LENGTH, READS_SLOT_0, UNWRITTEN_TAIL, READS_WORKSPACE };

/* A call in plain values, as a device kernel can take it. */
struct view {
    int64_t    batch, heads, window, topk;
    int64_t    cache_rows[2];      /* of the window cache and the compressed cache */
    struct arg t[ATTN_LSE + 1];
    void      *workspace, *zeroed, *state;
    enum fault fault;
};

static inline struct view view_of(const struct call *c, enum fault fault)
{
    const struct problem *p = c->problem;
    struct view v;
    memset(&v, 0, sizeof v);
    v.batch = p->dim[ATTN_BATCH];
    v.heads = p->dim[ATTN_HEADS];
    v.window = p->dim[ATTN_WINDOW];
    v.topk = p->dim[ATTN_TOPK];
    v.cache_rows[0] = p->op->tensor[ATTN_WINDOW_KV].rows(p);
    v.cache_rows[1] = p->op->tensor[ATTN_TOPK_KV].rows(p);
    for (int t = 0; t <= ATTN_LSE; t++) v.t[t] = c->t[t];
    v.workspace = c->workspace;
    v.zeroed = c->zeroed;
    v.state = c->state;
    v.fault = fault;
    return v;
}

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define ENGINE CUDA
#define ON_DEVICE static inline __device__
#else
#define ENGINE HOST
#define ON_DEVICE static inline
#endif

ON_DEVICE float bf16_get(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float ret;
    memcpy(&ret, &bits, sizeof ret);
    return ret;
}

/* To nearest, ties to even; the planted kernels round no NaN. */
ON_DEVICE uint16_t bf16_of(double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Row `row` of a tensor. */
ON_DEVICE void *row_of(const struct view *v, int t, int64_t row) { return (char *)v->t[t].p + row * v->t[t].stride; }

/* [512] of request b, head h. */
ON_DEVICE uint16_t *out_of(const struct view *v, int64_t b, int64_t h)
{
    return (uint16_t *)row_of(v, ATTN_OUT, b * v->heads + h);
}

/* One float of request b, head h. */
ON_DEVICE float *lse_of(const struct view *v, int64_t b, int64_t h) { return (float *)row_of(v, ATTN_LSE, b) + h; }

/* The slot that entry i of list 0 (window) or 1 (top-k) names, or -1. */
ON_DEVICE int32_t slot_of(const struct view *v, int64_t b, int list, int64_t i)
{
    int32_t slot = ((const int32_t *)row_of(v, list ? ATTN_TOPK_SLOT : ATTN_WINDOW_SLOT, b))[i];
    if (slot < 0 && v->fault == READS_SLOT_0) return 0;
    return slot < v->cache_rows[list] ? slot : -1;
}

ON_DEVICE int64_t entries_of(const struct view *v, int64_t b, int list)
{
    int64_t all = list ? v->topk : v->window;
    int64_t live = ((const int32_t *)row_of(v, ATTN_LENGTH, b))[list];
    return v->fault == IGNORES_LENGTH || live > all ? all : live;
}

/* The request with the most entries: damage to an empty one's zeros might go unseen, and rightly so. */
ON_DEVICE int64_t longest_request(const struct view *v)
{
    int64_t ret = 0, most = -1;
    for (int64_t b = 0; b < v->batch; b++) {
        int64_t entries = entries_of(v, b, 0) + entries_of(v, b, 1);
        if (entries > most) ret = b, most = entries;
    }
    return ret;
}

ON_DEVICE void right_head(const struct view *v, int64_t b, int64_t h)
{
    const uint16_t *q = (const uint16_t *)row_of(v, ATTN_Q, b * v->heads + h);
    double sum = 0, top = -INFINITY, acc[ATTN_D];
    float *partial = (float *)v->workspace + b * v->heads + h;   /* READS_WORKSPACE: a sum that nobody set to zero */
    for (int d = 0; d < ATTN_D; d++) acc[d] = 0;

    for (int list = 0; list < 2; list++) {
        int64_t entries = entries_of(v, b, list);
        for (int64_t i = 0; i < entries; i++) {
            int32_t slot = slot_of(v, b, list, i);
            if (slot < 0) continue;
            const uint16_t *kv = (const uint16_t *)row_of(v, list ? ATTN_TOPK_KV : ATTN_WINDOW_KV, slot);
            double s = 0;
            for (int d = 0; d < ATTN_D; d++) s += (double)bf16_get(q[d]) * bf16_get(kv[d]);
            s /= sqrt((double)ATTN_D);
            double now = fmax(top, s), keep = exp(top - now), weight = exp(s - now);
            if (s != s) weight = s;   /* fmax drops a NaN; the result must not */
            for (int d = 0; d < ATTN_D; d++) acc[d] = acc[d] * keep + weight * bf16_get(kv[d]);
            sum = sum * keep + weight;
            top = now;
        }
    }

    double sink = ((const float *)v->t[ATTN_SINK].p)[h], high = fmax(top, sink);
    double scale = sum == 0 ? 0 : exp(top - high) / (sum * exp(top - high) + exp(sink - high));
    if (v->fault == READS_WORKSPACE) {
        *partial += (float)scale;
        scale = *partial;
    }
    int64_t last = v->fault == UNWRITTEN_TAIL && b == v->batch - 1 && h == v->heads - 1 ? 8 : 0;
    for (int d = 0; d < ATTN_D - last; d++) out_of(v, b, h)[d] = bf16_of(acc[d] * scale);
    *lse_of(v, b, h) = (float)(top + log(sum));
}

/* run_right: the whole of attn. STEP(name) {...}: code that one thread runs on `v`; RUN(name, c, v) runs it after what was run
 * before. planted_alloc: memory of the kernel's own, zeroed, for open. */
#ifdef __CUDACC__

static __global__ void right_heads(struct view v)
{
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < v.batch * v.heads) right_head(&v, i / v.heads, i % v.heads);
}

static inline int run_right(const struct call *c, struct view v)
{
    right_heads<<<(unsigned)((v.batch * v.heads + 31) / 32), 32, 0, c->stream>>>(v);
    return cudaGetLastError();
}

#define STEP(name)                                                   \
    static __device__ void name(const struct view *v);               \
    static __global__ void name##_kernel(struct view v) { name(&v); } \
    static __device__ void name(const struct view *v)
#define RUN(name, c, v) (name##_kernel<<<1, 1, 0, (c)->stream>>>(v), (int)cudaGetLastError())

static inline int planted_alloc(size_t bytes, void **ret)
{
    int error = cudaMalloc(ret, bytes);
    return error ? error : (int)cudaMemset(*ret, 0, bytes);
}
static inline void planted_free(void *p) { cudaFree(p); }

#else

static inline int run_right(const struct call *c, struct view v)
{
    (void)c;
    for (int64_t i = 0; i < v.batch * v.heads; i++) right_head(&v, i / v.heads, i % v.heads);
    return 0;
}

#define STEP(name) static void name(const struct view *v)
#define RUN(name, c, v) ((void)(c), name(&(v)), 0)

static inline int planted_alloc(size_t bytes, void **ret) { return (*ret = calloc(1, bytes)) ? 0 : 1; }
static inline void planted_free(void *p) { free(p); }

#endif

/* A launch that is right, and then does one thing wrong. */
#define LAUNCH_RIGHT_THEN(step)                    \
    static int launch(const struct call *c)        \
    {                                              \
        struct view v = view_of(c, RIGHT);         \
        int error = run_right(c, v);               \
        return error ? error : RUN(step, c, v);    \
    }

/* A launch whose computation has the fault inside. */
#define LAUNCH_WITH(fault)                                        \
    static int launch(const struct call *c)                       \
    {                                                             \
        return run_right(c, view_of(c, fault));                   \
    }

#endif

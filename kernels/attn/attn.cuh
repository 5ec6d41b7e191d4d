/* What the CUDA kernels of op attn share: tensors as a kernel parameter, the joined slot list, softmax in base 2.
 *  The two lists of a request are read as one: entries [0, window) are the live window slots, entries [window, n) the live
 * top-k slots. So a short window leaves no gap in a tile, and a slot past a length is not looked at. All offsets are 64 bits
 * wide.
 */
#ifndef KBENCH_ATTN_CUH
#define KBENCH_ATTN_CUH

#include <math.h>
#include "../device.cuh"
#include "attn.h"
#include "kernel.h"

static constexpr int   ROW_BYTES = ATTN_D * 2;         /* of a cache, of q, of a bf16 out */
static constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;
static constexpr float SCALE_LOG2 = 0.04419417382415922f * LOG2E;  /* 512^-0.5: scores in units of log 2 */

/* A kernel parameter; a constant index makes a constant-bank read. */
struct attn_args {
    struct arg t[ATTN_LSE + 1];
    int32_t    batch, heads, window, topk;  /* window and topk: room in the lists; what counts says length */
};

static inline struct attn_args attn_args_of(const struct call *call) {
    struct attn_args a;
    for (int i = 0; i <= ATTN_LSE; i++)
        a.t[i] = call->t[i];
    a.batch = (int32_t)call->problem->dim[ATTN_BATCH];
    a.heads = (int32_t)call->problem->dim[ATTN_HEADS];
    a.window = (int32_t)call->problem->dim[ATTN_WINDOW];
    a.topk = (int32_t)call->problem->dim[ATTN_TOPK];
    return a;
}

/* Where row `row` of tensor `tensor` starts. */
template <int tensor> static __device__ __forceinline__ char *attn_row(const attn_args &a, int64_t row) {
    return (char *)a.t[tensor].p + row * a.t[tensor].stride;
}

/* How many entries of request b count: of the window list, and of both. */
struct attn_length {
    int32_t window, n;
};

static __device__ __forceinline__ attn_length attn_length_of(const attn_args &a, int64_t b) {
    const int2 both = __ldg((const int2 *)attn_row<ATTN_LENGTH>(a, b));
    const int32_t window = max(both.x, 0);
    return {window, window + max(both.y, 0)};
}

/* Slot of entry i of request b in its cache; negative: a hole, or i is past the end. */
static __device__ __forceinline__ int32_t attn_slot(const attn_args &a, int64_t b, attn_length len, int32_t i) {
    if (i >= len.n)
        return -1;
    return i < len.window ? __ldg((const int32_t *)attn_row<ATTN_WINDOW_SLOT>(a, b) + i)
                          : __ldg((const int32_t *)attn_row<ATTN_TOPK_SLOT>(a, b) + (i - len.window));
}

/* Both lists of a request, for who runs along them: entry i is at i * 4 of either. */
struct attn_lists {
    const char *window, *topk;

    __device__ __forceinline__ int32_t slot(int32_t i, bool in_window) const {
        return __ldg((const int32_t *)(in_window ? window : topk) + i);
    }
};

static __device__ __forceinline__ attn_lists attn_lists_of(const attn_args &a, int64_t b, int32_t window_n) {
    return {attn_row<ATTN_WINDOW_SLOT>(a, b), attn_row<ATTN_TOPK_SLOT>(a, b) - (int64_t)window_n * 4};
}

/* The row that a non-negative slot of entry i names. */
static __device__ __forceinline__ const char *attn_kv(const attn_args &a, attn_length len, int32_t i, int32_t slot) {
    return i < len.window ? attn_row<ATTN_WINDOW_KV>(a, slot) : attn_row<ATTN_TOPK_KV>(a, slot);
}

/* To L2, by THREADS threads, so that nobody waits for memory when it comes up: 128 bytes a thread and step, of request b's slot
 * lists ... */
template <int THREADS> static __device__ __forceinline__ void attn_announce_lists(const attn_args &a, int64_t b, int32_t thread) {
#pragma unroll 1
    for (int at = thread * 128; at < a.topk * 4 + 124; at += THREADS * 128)
        prefetch_l2(attn_row<ATTN_TOPK_SLOT>(a, b) + max(min(at, a.topk * 4 - 4), 0));
#pragma unroll 1
    for (int at = thread * 128; at < a.window * 4 + 124; at += THREADS * 128)
        prefetch_l2(attn_row<ATTN_WINDOW_SLOT>(a, b) + max(min(at, a.window * 4 - 4), 0));
}

/* ... and of q of heads `first` and on, HEADS of them where there are so many. */
template <int THREADS, int HEADS>
static __device__ __forceinline__ void attn_announce(const attn_args &a, int64_t b, int32_t first, int32_t thread) {
    attn_announce_lists<THREADS>(a, b, thread);
#pragma unroll 1
    for (int line = thread; line < HEADS * (ROW_BYTES / 128); line += THREADS)
        if (first + line / 8 < a.heads)
            prefetch_l2(attn_row<ATTN_Q>(a, b * a.heads + first + line / 8) + line % 8 * 128);
}

static __device__ __forceinline__ float attn_sink_log2(const attn_args &a, int32_t head) {
    return __ldg((const float *)a.t[ATTN_SINK].p + head) * LOG2E;
}

static __device__ __forceinline__ float *attn_lse(const attn_args &a, int64_t b, int32_t head) {
    return (float *)attn_row<ATTN_LSE>(a, b) + head;
}

/* From the base m of a row's weights (its maximum or near it; -inf: no entry), its sum of 2^(s - m) and its sink: what to
 * multiply the weighted sum by. A sink far above m must give tiny numbers and no infinity, hence the common maximum. */
static __device__ __forceinline__ float attn_finish(float m, float sum, float sink_log2) {
    if (!(sum > 0))
        return 0;
    const float top = fmaxf(m, sink_log2), scale = exp2f(m - top);
    return __fdividef(scale, sum * scale + exp2f(sink_log2 - top));
}

/* Lane t of each quad gives word t of 4 chunks and gets the 4 words of chunk t. */
static __device__ __forceinline__ uint4 quad_transpose(uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3) {
    const bool upper = threadIdx.x & 2, odd = threadIdx.x & 1;
    const uint32_t x = __shfl_xor_sync(ALL_LANES, upper ? w0 : w2, 2), y = __shfl_xor_sync(ALL_LANES, upper ? w1 : w3, 2);
    if (upper)
        w0 = x, w1 = y;
    else
        w2 = x, w3 = y;
    const uint32_t z = __shfl_xor_sync(ALL_LANES, odd ? w0 : w1, 1), u = __shfl_xor_sync(ALL_LANES, odd ? w2 : w3, 1);
    return odd ? make_uint4(z, w1, u, w3) : make_uint4(w0, z, w2, u);
}

#endif

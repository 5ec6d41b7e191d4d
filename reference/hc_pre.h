/* hc_pre: the linear map before a sublayer of a model with hyper-connections (mHC), and the square sum that normalises its result.
 *
 *   mix[b, n] = sum_k x[b, k] * w[n, k]           24 rows of weights: 4 pre, 4 post, 16 of the mixing matrix
 *   sqsum[b]  = sum_k x[b, k]^2                   what follows divides by sqrt(sqsum / 16384 + eps)
 * x is the residual state of a token, four streams of 4096 side by side: 16384.
 *
 * x and w come twice, as fp32 and as bf16: the same values, which bf16 holds exactly. A kernel's `reads` says which it reads; the
 * others hold NaN for it. In the model x is bf16 and w fp32; frameworks widen x.
 *
 * w is another one in every input set, and so as cold as all else: a step has 86 of these maps, each with weights of its own, and
 * reads each once. Source: DeepSeek-V4's published inference code.
 */
#ifndef KBENCH_HC_PRE_H
#define KBENCH_HC_PRE_H

#include "op.h"

enum hc_pre_dim { HC_PRE_BATCH };

enum hc_pre_tensor {
    HC_PRE_X32,    /* f32  [batch, 16384]   a row is one token, here and in the next */
    HC_PRE_X16,    /* bf16 [batch, 16384] */
    HC_PRE_W32,    /* f32  [24, 16384]      a row is one output, here and in the next */
    HC_PRE_W16,    /* bf16 [24, 16384] */
    HC_PRE_MIX,    /* f32  [batch, 24] */
    HC_PRE_SQSUM,  /* f32  [batch]          4 bytes a row: dense */
};

enum { HC_PRE_K = 16384, HC_PRE_N = 24 };

/* For kernel.reads. */
enum {
    HC_PRE_READS_F32 = 1 << HC_PRE_X32 | 1 << HC_PRE_W32,
    HC_PRE_READS_BF16 = 1 << HC_PRE_X16 | 1 << HC_PRE_W16,
};

/* layout_hash() of the dims and tensors above. */
#define hc_pre_layout 0x1854ac99a3eb53abull

#endif

/* cuBLASLt for library rows: opened at run time, so that one build starts without it; a product's algorithm is chosen once, in the
 * kernel's open, and pinned. Everything lives in the kernel's own state; a launch only describes its matrices and calls.
 *
 * Matrices stand as the library sees them, column by column: a row-major [rows, columns] tensor is a matrix of `columns` rows.
 */
#ifndef KBENCH_LT_H
#define KBENCH_LT_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A toolkit may have been installed without it. */
#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define LT_RANGE_BEGIN(name) nvtxRangePushA(name)
#define LT_RANGE_END() nvtxRangePop()
#endif
#endif
#ifndef LT_RANGE_BEGIN
#define LT_RANGE_BEGIN(name) (void)(name)
#define LT_RANGE_END() (void)0
#endif

/* Functions of the library under their own names without its prefix; those that end in _init fill memory of ours. */
#define LT_FUNCTIONS(F)                                                                                             \
    F(create, cublasLtCreate)                                                                                       \
    F(destroy, cublasLtDestroy)                                                                                     \
    F(version, cublasLtGetVersion)                                                                                  \
    F(desc_init, cublasLtMatmulDescInit_internal)                                                                   \
    F(desc_set, cublasLtMatmulDescSetAttribute)                                                                     \
    F(layout_init, cublasLtMatrixLayoutInit_internal)                                                               \
    F(layout_set, cublasLtMatrixLayoutSetAttribute)                                                                 \
    F(preference_init, cublasLtMatmulPreferenceInit_internal)                                                       \
    F(preference_set, cublasLtMatmulPreferenceSetAttribute)                                                         \
    F(heuristic, cublasLtMatmulAlgoGetHeuristic)                                                                    \
    F(check, cublasLtMatmulAlgoCheck)                                                                               \
    F(config_get, cublasLtMatmulAlgoConfigGetAttribute)                                                             \
    F(matmul, cublasLtMatmul)

struct lt {
    void            *library;
    cublasLtHandle_t handle;
#define LT_MEMBER(member, name) __typeof__(name) *member;
    LT_FUNCTIONS(LT_MEMBER)
#undef LT_MEMBER
};

/* ld and batch_stride in elements. loose: a launch may come with another ld, of 16-byte multiples. */
struct lt_matrix {
    cudaDataType_t type;
    int64_t        rows, columns, ld, batch_stride;
    bool           loose;
};

/* d = alpha * op(a) * op(b), fp32 sums, for each of `batch` matrices. name: of its range, since names of the library's kernels say
 * nothing of the op; NULL: "product". */
struct lt_product {
    const char                     *name;
    cublasLtMatmulDescOpaque_t      desc;
    struct lt_matrix                a, b, d;
    int32_t                         batch;
    cublasLtMatmulHeuristicResult_t choice;
};

#define LT_TRY(call)                                          \
    do {                                                      \
        const cublasStatus_t status_ = (call);                \
        if (status_ != CUBLAS_STATUS_SUCCESS) return status_; \
    } while (0)

/* A cudaError_t for a kernel to return. What the library can't do on this device is no fault of the kernel's. */
static inline int lt_error(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return cudaSuccess;
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH: return cudaErrorNotSupported;
    case CUBLAS_STATUS_ALLOC_FAILED: return cudaErrorMemoryAllocation;
    case CUBLAS_STATUS_INVALID_VALUE: return cudaErrorInvalidValue;
    default: return cudaErrorUnknown;
    }
}

static inline void lt_close(struct lt *lt)
{
    if (lt->handle) lt->destroy(lt->handle);
    if (lt->library) dlclose(lt->library);
    memset(lt, 0, sizeof *lt);
}

/* The library stays in the process when it is closed: loading its hundreds of megabytes takes longer than a row does. */
static inline cublasStatus_t lt_open(struct lt *lt)
{
    static const char *const names[] = {
        "libcublasLt.so.13", "libcublasLt.so.12",
        "/usr/local/cuda/lib64/libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.12",
    };
    memset(lt, 0, sizeof *lt);
    for (size_t i = 0; i < sizeof names / sizeof *names && !lt->library; i++)
        lt->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lt->library) return CUBLAS_STATUS_NOT_SUPPORTED;
    bool whole = true;
    void *symbol;
#define LT_FIND(member, name)                                 \
    symbol = dlsym(lt->library, #name);                       \
    whole = whole && symbol;                                  \
    memcpy(&lt->member, &symbol, sizeof symbol);
    LT_FUNCTIONS(LT_FIND)
#undef LT_FIND
    const cublasStatus_t status = whole ? lt->create(&lt->handle) : CUBLAS_STATUS_NOT_SUPPORTED;
    if (status != CUBLAS_STATUS_SUCCESS) lt_close(lt);
    return status;
}

static inline cublasStatus_t lt_layout(const struct lt *lt, const struct lt_matrix *m, int32_t batch,
                                       cublasLtMatrixLayoutOpaque_t *ret)
{
    LT_TRY(lt->layout_init(ret, sizeof *ret, m->type, (uint64_t)m->rows, (uint64_t)m->columns, m->ld));
    LT_TRY(lt->layout_set(ret, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
    return lt->layout_set(ret, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m->batch_stride, sizeof m->batch_stride);
}

struct lt_layouts {
    cublasLtMatrixLayoutOpaque_t a, b, d;
};

static inline cublasStatus_t lt_layouts_of(const struct lt *lt, const struct lt_product *p, struct lt_layouts *ret)
{
    LT_TRY(lt_layout(lt, &p->a, p->batch, &ret->a));
    LT_TRY(lt_layout(lt, &p->b, p->batch, &ret->b));
    return lt_layout(lt, &p->d, p->batch, &ret->d);
}

/* The matrix as a launch may bring it too: its columns one step of 16 bytes further apart. */
static inline struct lt_matrix lt_loosened(struct lt_matrix m)
{
    const int64_t step = m.type == CUDA_R_32F ? 4 : 8;
    if (m.loose) m.ld += step, m.batch_stride += step * m.columns;
    return m;
}

static inline cublasStatus_t lt_prefer(const struct lt *lt, size_t room, cublasLtMatmulPreferenceOpaque_t *ret)
{
    const uint32_t aligned = 16;
    /* Not INPLACE: its order of additions is not fixed. */
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    LT_TRY(lt->preference_init(ret, sizeof *ret));
    LT_TRY(lt->preference_set(ret, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
    LT_TRY(lt->preference_set(ret, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions));
    LT_TRY(lt->preference_set(ret, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &aligned, sizeof aligned));
    LT_TRY(lt->preference_set(ret, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &aligned, sizeof aligned));
    LT_TRY(lt->preference_set(ret, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &aligned, sizeof aligned));
    return lt->preference_set(ret, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &aligned, sizeof aligned);
}

/* In the kernel's open, with a, b, d and batch filled in: the library's first choice among those that also take loosened matrices
 * and need at most `room` bytes of workspace. compute: CUBLAS_COMPUTE_32F, or a faster way to multiply fp32. */
static inline cublasStatus_t lt_choose_by(const struct lt *lt, struct lt_product *p, bool transpose_a, cublasComputeType_t compute,
                                          size_t room)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t  found[16], loose;
    struct lt_product                other = *p;
    struct lt_layouts                at, moved;
    const cublasOperation_t          turned = CUBLAS_OP_T;
    int                              n = 0;
    other.a = lt_loosened(p->a), other.b = lt_loosened(p->b), other.d = lt_loosened(p->d);
    LT_TRY(lt->desc_init(&p->desc, sizeof p->desc, compute, CUDA_R_32F));
    if (transpose_a) LT_TRY(lt->desc_set(&p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned));
    LT_TRY(lt_layouts_of(lt, p, &at));
    LT_TRY(lt_layouts_of(lt, &other, &moved));
    LT_TRY(lt_prefer(lt, room, &preference));
    LT_TRY(lt->heuristic(lt->handle, &p->desc, &at.a, &at.b, &at.d, &at.d, &preference, 16, found, &n));
    for (int i = 0; i < n; i++) {
        p->choice = found[i];
        if (found[i].state != CUBLAS_STATUS_SUCCESS || found[i].workspaceSize > room) continue;
        const cublasStatus_t status =
            lt->check(lt->handle, &p->desc, &moved.a, &moved.b, &moved.d, &moved.d, &found[i].algo, &loose);
        if (status == CUBLAS_STATUS_SUCCESS && loose.workspaceSize <= room) return CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

static inline cublasStatus_t lt_choose(const struct lt *lt, struct lt_product *p, bool transpose_a, size_t room)
{
    return lt_choose_by(lt, p, transpose_a, CUBLAS_COMPUTE_32F, room);
}

/* Enqueues the product with the pinned algorithm. `d` is not read. */
static inline cublasStatus_t lt_multiply(const struct lt *lt, const struct lt_product *p, float alpha, const void *a, const void *b,
                                         void *d, void *workspace, size_t room, cudaStream_t stream)
{
    const float       zero = 0;
    struct lt_layouts at;
    LT_TRY(lt_layouts_of(lt, p, &at));
    LT_RANGE_BEGIN(p->name ? p->name : "product");
    const cublasStatus_t ret = lt->matmul(lt->handle, (cublasLtMatmulDesc_t)&p->desc, &alpha, a, &at.a, b, &at.b, &zero, d, &at.d,
                                          d, &at.d, &p->choice.algo, workspace, room, stream);
    LT_RANGE_END();
    return ret;
}

static inline uint32_t lt_config(const struct lt *lt, const struct lt_product *p, cublasLtMatmulAlgoConfigAttributes_t what,
                                 size_t size)
{
    uint32_t ret = 0;   /* the library stores 2 or 4 bytes, the low ones first */
    size_t   written;
    return lt->config_get(&p->choice.algo, what, &ret, size, &written) == CUBLAS_STATUS_SUCCESS ? ret : 0;
}

/* The pinned algorithm in the library's own numbers (cublasLt.h lists them), for the record. */
static inline const char *lt_describe(const struct lt *lt, const struct lt_product *p, char *ret, size_t size)
{
    snprintf(ret, size, "algo %u tile %u stages %u split_k %u reduction %u swizzle %u custom %u inner %u cluster %u workspace %zu",
             lt_config(lt, p, CUBLASLT_ALGO_CONFIG_ID, 4), lt_config(lt, p, CUBLASLT_ALGO_CONFIG_TILE_ID, 4),
             lt_config(lt, p, CUBLASLT_ALGO_CONFIG_STAGES_ID, 4), lt_config(lt, p, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4),
             lt_config(lt, p, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4), lt_config(lt, p, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4),
             lt_config(lt, p, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4), lt_config(lt, p, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2),
             lt_config(lt, p, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2), p->choice.workspaceSize);
    return ret;
}

#endif

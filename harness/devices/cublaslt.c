/* The library's bf16 matrix product, as a measured ceiling. Opened at run time, so that one build starts without it. */
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "base.h"
#include "cuda_ceilings.h"
#include "cuda_kernels.h"
#include "library.h"

enum { WORKSPACE = 64 << 20 };

/* Same names as the library's, so that a reader finds them. */
struct lt {
    void *library;
    cublasStatus_t (*cublasLtCreate)(cublasLtHandle_t *);
    cublasStatus_t (*cublasLtDestroy)(cublasLtHandle_t);
    cublasStatus_t (*cublasLtMatmulDescCreate)(cublasLtMatmulDesc_t *, cublasComputeType_t, cudaDataType_t);
    cublasStatus_t (*cublasLtMatmulDescDestroy)(cublasLtMatmulDesc_t);
    cublasStatus_t (*cublasLtMatrixLayoutCreate)(cublasLtMatrixLayout_t *, cudaDataType_t, uint64_t, uint64_t, int64_t);
    cublasStatus_t (*cublasLtMatrixLayoutDestroy)(cublasLtMatrixLayout_t);
    cublasStatus_t (*cublasLtMatmulPreferenceCreate)(cublasLtMatmulPreference_t *);
    cublasStatus_t (*cublasLtMatmulPreferenceDestroy)(cublasLtMatmulPreference_t);
    cublasStatus_t (*cublasLtMatmulPreferenceSetAttribute)(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                           const void *, size_t);
    cublasStatus_t (*cublasLtMatmulAlgoGetHeuristic)(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t *, int *);
    cublasStatus_t (*cublasLtMatmul)(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *, cublasLtMatrixLayout_t,
                                     const void *, cublasLtMatrixLayout_t, const void *, const void *, cublasLtMatrixLayout_t,
                                         void *,
                                     cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t);
};

static void *open_library(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        "/usr/local/cuda/lib64/libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.12"};
    return library_open(COUNT(names), names);
}

static bool open_lt(struct lt *lt)
{
    lt->library = open_library();
    if (!lt->library) return false;
#define FIND(name) \
    if (!library_find(lt->library, #name, &lt->name)) return false
    FIND(cublasLtCreate);
    FIND(cublasLtDestroy);
    FIND(cublasLtMatmulDescCreate);
    FIND(cublasLtMatmulDescDestroy);
    FIND(cublasLtMatrixLayoutCreate);
    FIND(cublasLtMatrixLayoutDestroy);
    FIND(cublasLtMatmulPreferenceCreate);
    FIND(cublasLtMatmulPreferenceDestroy);
    FIND(cublasLtMatmulPreferenceSetAttribute);
    FIND(cublasLtMatmulAlgoGetHeuristic);
    FIND(cublasLtMatmul);
#undef FIND
    return true;
}

struct product {
    const struct lt                *lt;
    cublasLtHandle_t                handle;
    cublasLtMatmulDesc_t            desc;
    cublasLtMatrixLayout_t          layout;
    cublasLtMatmulPreference_t      preference;
    cublasLtMatmulHeuristicResult_t choice;
    void                           *a, *b, *c, *workspace;
};

static int set_up(struct product *p, int n)
{
    const struct lt *lt = p->lt;
    size_t room = WORKSPACE;
    int found = 0;
    TRY(cudaMalloc(&p->workspace, WORKSPACE));
    TRY(lt->cublasLtCreate(&p->handle));
    TRY(lt->cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    TRY(lt->cublasLtMatrixLayoutCreate(&p->layout, CUDA_R_16BF, (uint64_t)n, (uint64_t)n, n));
    TRY(lt->cublasLtMatmulPreferenceCreate(&p->preference));
    TRY(lt->cublasLtMatmulPreferenceSetAttribute(p->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
    TRY(lt->cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->layout, p->layout, p->layout, p->layout, p->preference, 1,
        &p->choice,
                                           &found));
    return !found;
}

static void tear_down(struct product *p)
{
    if (p->preference) p->lt->cublasLtMatmulPreferenceDestroy(p->preference);
    if (p->layout) p->lt->cublasLtMatrixLayoutDestroy(p->layout);
    if (p->desc) p->lt->cublasLtMatmulDescDestroy(p->desc);
    if (p->handle) p->lt->cublasLtDestroy(p->handle);
    cudaFree(p->workspace);
}

static int multiply(const struct product *p, cudaStream_t stream)
{
    const float one = 1, zero = 0;
    return p->lt->cublasLtMatmul(p->handle, p->desc, &one, p->a, p->layout, p->b, p->layout, &zero, p->c, p->layout, p->c,
        p->layout,
                                 &p->choice.algo, p->workspace, WORKSPACE, stream);
}

static int best_ms(const struct product *p, cudaStream_t stream, int repeats, float *ret)
{
    cudaEvent_t begin, end;
    TRY(cudaEventCreate(&begin));
    TRY(cudaEventCreate(&end));
    *ret = INFINITY;
    for (int i = 0; i <= repeats; i++) {   /* the first one loads code */
        float ms;
        TRY(cudaEventRecord(begin, stream));
        TRY(multiply(p, stream));
        TRY(cudaEventRecord(end, stream));
        TRY(cudaEventSynchronize(end));
        TRY(cudaEventElapsedTime(&ms, begin, end));
        if (i) *ret = fminf(*ret, ms);
    }
    TRY(cudaEventDestroy(begin));
    return cudaEventDestroy(end);
}

double cublaslt_GFLOPs(struct dev *dev, int n, void *a, void *b, void *c, int repeats)
{
    struct lt lt = {0};
    struct product product = {.lt = &lt, .a = a, .b = b, .c = c};
    float ms = INFINITY;
    if (open_lt(&lt)) {
        if (!set_up(&product, n) && best_ms(&product, dev->stream, repeats, &ms)) ms = INFINITY;
        tear_down(&product);
    }
    if (lt.library) dlclose(lt.library);
    return 2.0 * n * n * n / (ms * 1e6);
}

/* Ops indexer and indexer_fp8 as written, in double precision: a block a (request, page), 16 heads of one entry a thread.
 */
#ifndef KBENCH_INDEXER_ORACLE_CUH
#define KBENCH_INDEXER_ORACLE_CUH

#include "indexer.cuh"

static constexpr int ORACLE_THREADS = 256, ORACLE_CHUNK = 32, ORACLE_HEADS = 16;

struct oracle_shared {
    double q[INDEXER_HEADS][ORACLE_CHUNK], k[ORACLE_CHUNK][INDEXER_PAGE + 1], part[ORACLE_THREADS / INDEXER_PAGE][INDEXER_PAGE];
};

/* F: element d of head `head` of request b, element d of an entry of a page, and the entry's scale. Past the live length the op
 * leaves logits open, and an oracle says so. */
template <class F> static __device__ __forceinline__ void oracle_page(const indexer_args &a, oracle_shared &sh) {
    const int32_t pages = a.width / INDEXER_PAGE, b = (int32_t)(blockIdx.x / pages), page = (int32_t)(blockIdx.x % pages);
    const int32_t length = indexer_length(a, b), tid = (int32_t)threadIdx.x, entry = tid % INDEXER_PAGE, group = tid / INDEXER_PAGE;
    double *logit = (double *)indexer_row<INDEXER_LOGITS>(a, b) + (int64_t)page * INDEXER_PAGE + entry;
    if (group == 0 && page * INDEXER_PAGE + entry >= length)
        *logit = __longlong_as_double((long long)UNSPECIFIED_BITS);
    if (page * INDEXER_PAGE >= length)
        return;
    const int32_t slot = indexer_slot(a, b, page);

    double dot[ORACLE_HEADS] = {};
    for (int32_t first = 0; first < INDEXER_D; first += ORACLE_CHUNK) {
        __syncthreads();
        for (int32_t i = tid; i < INDEXER_HEADS * ORACLE_CHUNK; i += ORACLE_THREADS) {
            const int32_t row = i / ORACLE_CHUNK, d = i % ORACLE_CHUNK;
            sh.q[row][d] = F::query(a, (int64_t)b * INDEXER_HEADS + row, first + d);
            sh.k[d][row] = F::key(a, slot, row, first + d);
        }
        __syncthreads();
        for (int32_t d = 0; d < ORACLE_CHUNK; d++) {
            const double k = sh.k[d][entry];
#pragma unroll
            for (int h = 0; h < ORACLE_HEADS; h++)
                dot[h] += sh.q[group * ORACLE_HEADS + h][d] * k;
        }
    }
    const float *w = (const float *)indexer_row<INDEXER_W>(a, b) + group * ORACLE_HEADS;
    double sum = 0;
#pragma unroll
    for (int h = 0; h < ORACLE_HEADS; h++)
        sum += (double)w[h] * fmax(dot[h], 0.0);
    sh.part[group][entry] = sum;
    __syncthreads();
    if (group == 0 && page * INDEXER_PAGE + entry < length) {
        double all = 0;
#pragma unroll
        for (int g = 0; g < ORACLE_THREADS / INDEXER_PAGE; g++)
            all += sh.part[g][entry];
        *logit = all * F::scale(a, slot, entry);
    }
}

#endif

/* The first kernel of the chain for bf16 keys: pages of every request, live or not, in a row. A block copies a page of 16 KB, all
 * its loads in flight.
 */
#ifndef KBENCH_INDEXER_GATHER_PAGES_CUH
#define KBENCH_INDEXER_GATHER_PAGES_CUH

#include "chain.cuh"

static __global__ void __launch_bounds__(CHAIN_THREADS)
    indexer_gather_pages(const __grid_constant__ indexer_args a, uint4 *to) {
    constexpr int CHUNKS = INDEXER_D * 2 / 16, EACH = INDEXER_PAGE * CHUNKS / CHAIN_THREADS;
    const unsigned pages = (unsigned)(a.width / INDEXER_PAGE);
    const int64_t slot = max(indexer_slot(a, (int32_t)(blockIdx.x / pages), (int32_t)(blockIdx.x % pages)), 0);
    const int row = (int)threadIdx.x / CHUNKS, chunk = (int)threadIdx.x % CHUNKS;
    uint4 v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
        v[i] = load16_once(indexer_row<INDEXER_KEYS>(a, slot * INDEXER_PAGE + i * (CHAIN_THREADS / CHUNKS) + row) + chunk * 16);
    to += (int64_t)blockIdx.x * (INDEXER_PAGE * CHUNKS) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        __stcs(to + i * CHAIN_THREADS, v[i]);
}

static inline int chain_gather(const struct call *call, const indexer_args &a, void *to) {
    const int64_t blocks = (int64_t)a.batch * (a.width / INDEXER_PAGE);
    indexer_gather_pages<<<(unsigned)blocks, CHAIN_THREADS, 0, call->stream>>>(a, (uint4 *)to);
    return cudaGetLastError();
}

#endif

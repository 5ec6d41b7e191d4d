/* topk/gather: the loads of op topk alone, each live score and its part of the page table once, several blocks a row.
 * Moves 4 bytes an entry and 4 a page to registers; one word a block goes to slot, so that nothing is dead.
 * Limit: the memory's rate, or at small batches the latency of length and score one after the other.
 */
#include "topk.cuh"

static constexpr int THREADS = 256, ROUNDS = 4;  /* 16 KB of scores a block in flight */

static __global__ void __launch_bounds__(THREADS) topk_gather(const __grid_constant__ topk_args a, int32_t blocks) {
    const int64_t b = blockIdx.x / blocks;
    const int32_t part = (int32_t)(blockIdx.x % blocks), step = blocks * THREADS * 4;
    const char *score = (const char *)a.score.p + b * a.score.stride;
    const char *table = (const char *)a.page_table.p + b * a.page_table.stride;
    const int32_t length = __ldg((const int32_t *)((const char *)a.length.p + b * a.length.stride));

    uint32_t sum = 0;
    for (int32_t first = (part * THREADS + (int32_t)threadIdx.x) * 4; first < length; first += ROUNDS * step) {
        uint4 v[ROUNDS] = {};
        uint32_t page[ROUNDS] = {};
#pragma unroll
        for (int j = 0; j < ROUNDS; j++)
            if (first + j * step < length) {
                v[j] = load16_once(score + (int64_t)(first + j * step) * 4);
                page[j] = __ldg((const uint32_t *)table + (first + j * step) / TOPK_PAGE);
            }
#pragma unroll
        for (int j = 0; j < ROUNDS; j++)
            sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w ^ page[j];
    }
    sum = __reduce_xor_sync(ALL_LANES, sum);
    __shared__ uint32_t all;
    if (threadIdx.x == 0)
        all = 0;
    __syncthreads();
    if (lane_id() == 0)
        atomicXor(&all, sum);
    __syncthreads();
    if (threadIdx.x == 0)
        ((uint32_t *)((char *)a.slot.p + b * a.slot.stride))[part % a.k] = all;
}

/* As many blocks as the widest row has work for, two an SM at most. */
static int launch(const struct call *call) {
    const topk_args a = topk_args_of(call);
    const int64_t batch = call->problem->dim[TOPK_BATCH], most = (2 * call->device->sm_count + batch - 1) / batch;
    const int64_t useful = (a.width + THREADS * 4 - 1) / (THREADS * 4);
    const int32_t blocks = (int32_t)(useful < most ? useful : most);
    topk_gather<<<(unsigned)(batch * blocks), THREADS, 0, call->stream>>>(a, blocks);
    return cudaGetLastError();
}

KERNEL = {
    FOR_OP(topk),
    .note = "the loads alone, each live score once: what memory allows",
    .engine = CUDA,
    .promises = PROBE,
    .launch = launch,
};

/* What blocks hand on through device memory: to the kernel that follows and may have begun, and to the last block of their own. */
#ifndef KBENCH_WAITS_GRID_CUH
#define KBENCH_WAITS_GRID_CUH

#include "waits.cuh"

static constexpr int GRID_BLOCKS = 32;

/* Parts to the workspace, late; who reads them may be there long before. */
static __global__ void __launch_bounds__(READERS) wait_parts(wait_data d) {
#if HAS_BULK
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
    wait_linger();
    wait_linger();
    const uint32_t at = blockIdx.x * READERS + threadIdx.x;
    d.work[at] = d.in[at].x;
}

template <int FORM> static __global__ void __launch_bounds__(READERS) wait_dependent(wait_data d) {
#if HAS_BULK
    if (FORM != EARLY)
        asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    uint32_t sum = 0;
    for (int i = 0; i < GRID_BLOCKS; i++)
        sum = wait_fold(sum, __ldcg(d.work + i * READERS + threadIdx.x), 0);
    d.out[threadIdx.x] = sum;
}

/* The block that draws the last ticket merges the parts of all. EARLY: no fence between a part and its ticket; REUSED: the ticket
 * is drawn before all threads of the block have left their part. */
template <int FORM> static __global__ void __launch_bounds__(READERS) wait_ticket(wait_data d) {
    __shared__ uint32_t last;
    const uint32_t at = blockIdx.x * READERS + threadIdx.x;
    const auto draw = [&] {
        if (threadIdx.x == 0)
            last = atomicAdd(d.count, 1) == gridDim.x - 1;
    };
    if (FORM == REUSED)
        draw();
    if (warp_id() == 3)
        wait_linger();
    d.work[at] = d.in[at].x;
    if (FORM != EARLY)
        __threadfence();
    __syncthreads();
    if (FORM != REUSED)
        draw();
    __syncthreads();
    if (!last)
        return;
    if (FORM != EARLY)
        __threadfence();
    uint32_t sum = 0;
    for (int i = 0; i < (int)gridDim.x; i++)
        sum = wait_fold(sum, __ldcg(d.work + i * READERS + threadIdx.x), 0);
    d.out[threadIdx.x] = sum;
}

#endif

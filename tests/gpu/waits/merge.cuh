/* Shared memory that copies have filled, that then is read, and that at last takes what another block of the cluster stores. */
#ifndef KBENCH_WAITS_MERGE_CUH
#define KBENCH_WAITS_MERGE_CUH

#include "product.cuh"
#include "ring.cuh"
#include "topk/peers.cuh"

/* All pairs of blocks do the same, and the first one's results count: racecheck reports the right form of the products only in
 * some runs, be it of one pair or of many. */
static constexpr unsigned MERGE_PAIRS = 16;

/* A word of each thread, to the same place in block `rank`. */
static __device__ __forceinline__ void merge_store(uint32_t shared, uint32_t rank, uint32_t word) {
#if HAS_BULK
    asm volatile("{ .reg .u32 a; mapa.shared::cluster.u32 a, %0, %1; st.shared::cluster.u32 [a], %2; }" ::"r"(shared), "r"(rank),
                 "r"(word) : "memory");
#endif
}

/* What is left of a tile: by threads a chain over what they read, by wgmma some of the sums. */
template <bool PRODUCT> static __device__ __forceinline__ uint32_t merge_read(uint32_t tile) {
    if (!PRODUCT)
        return wait_take<false>(0, tile);
    float c[32];
    wgmma_publish();
    __syncthreads();
    product_of<1>(c, tile, true);
    wgmma_wait(c);
    return wait_fold(__float_as_uint(c[0]), __float_as_uint(c[1]), __float_as_uint(c[31]));
}

/* Each block of two reads a tile of its own (block b tile b), then gives the other a word a thread, into the tile. EARLY: reads
 * what it was given before the other must have stored it; REUSED: stores while the other may still read the tile. */
template <int FORM, bool PRODUCT> static __global__ void __launch_bounds__(READERS) wait_merge(wait_data d) {
    __shared__ __align__(1024) uint4 tile[TILE_PIECES];
    const peers_cluster peers = peers_cluster::here();
    const int      thread = (int)threadIdx.x, rank = (int)peers.rank();
    const uint32_t at = shared_address(tile), mine = at + thread * 4, takes = at + wait_piece(thread, 0) * 4;
    peers.sync();
    if (rank == 1)
        wait_linger();
    for (int i = thread; i < TILE_PIECES; i += READERS)
        copy16_async(at + (PRODUCT ? i ^ i / 8 % 8 : i) * 16, d.in + rank * TILE_PIECES + i, true);
    copy_wait_all();
    __syncthreads();
    if (FORM == REUSED && rank == 1)
        wait_linger(), wait_linger();
    uint32_t sum = merge_read<PRODUCT>(at);
    if (FORM != REUSED)
        peers.sync();
    else
        __syncthreads();
    if (rank == 1)
        wait_linger();
    merge_store(mine, (uint32_t)rank ^ 1, block_word(d, 2 + rank, thread));
    if (FORM != EARLY)
        peers.sync();
    sum = wait_fold(sum, load4_shared(takes), 0);
    peers.sync();
    if (blockIdx.x < 2)
        d.out[rank * READERS + thread] = sum;
}

/* Each block of two multiplies a tile of its own, stores a word a thread over it, and takes one of the other's. EARLY: before the
 * other must have stored it; REUSED: puts another word there while the other may still read. */
template <int FORM> static __global__ void __launch_bounds__(READERS) wait_taken(wait_data d) {
    __shared__ __align__(1024) uint4 tile[TILE_PIECES];
    const peers_cluster peers = peers_cluster::here();
    const int       thread = (int)threadIdx.x, rank = (int)peers.rank();
    const uint32_t  at = shared_address(tile);
    const uint32_t *words = (const uint32_t *)tile;
    peers.arrive();
    for (int i = thread; i < TILE_PIECES; i += READERS)
        copy16_async(wait_place<true>(at, i), d.in + rank * TILE_PIECES + i, true);
    copy_wait_all();
    __syncthreads();
    uint32_t sum = merge_read<true>(at);
    __syncthreads();
    peers.wait();
    if (rank == 1)
        wait_linger();
    store4_shared(at + thread * 4, block_word(d, 2 + rank, thread));
    if (FORM != EARLY)
        peers.sync();
    if (FORM == REUSED && rank == 0)
        wait_linger(), wait_linger();
    sum = wait_fold(sum, peers.load4(words + wait_piece(thread, 0), (uint32_t)rank ^ 1), 0);
    if (FORM != REUSED)
        peers.sync();
    else
        __syncthreads();
    store4_shared(at + thread * 4, 0);
    peers.sync();
    if (blockIdx.x < 2)
        d.out[rank * READERS + thread] = sum;
}

#endif

/* Scores of a run of entries of one request, by the 8 warps of a block: op indexer's product, for kernels that select.
 *
 * A warp takes tiles of 16 entries, entries on the M side of mma.sync and all 64 heads on the N side. q stays in registers, 128
 * of each thread, and so do all sums; keys come through a ring in shared memory that is private to each thread: it copies just
 * the 16-byte pieces that it will multiply, so there is nothing to wait for but its own copies. That the dims of a piece are
 * neighbours in memory, and not where mma.sync has them, is no matter: q's are in the same order, and a sum has none.
 */
#ifndef KBENCH_INDEX_SELECT_SCORE_CUH
#define KBENCH_INDEX_SELECT_SCORE_CUH

#include "indexer/indexer.cuh"

static constexpr int SCORE_WARPS = 8, SCORE_THREADS = SCORE_WARPS * WARP;
static constexpr int TILE = 16, PAGE_TILES = INDEXER_PAGE / TILE;
static constexpr int KEY_PIECES = 4;                        /* pieces of 16 bytes that a thread has of a key, 64 bytes apart */
static constexpr int N_TILES = INDEXER_HEADS / 8;

template <int STAGES> struct score_ring {
    uint4  piece[SCORE_WARPS][STAGES][2 * KEY_PIECES][WARP];   /* of entries g, and of g + 8 */
    float2 w[SCORE_WARPS][INDEXER_HEADS / 2];                  /* each warp its own: nothing to wait for */
};

/* What a thread has of q: pieces of heads 8n + g. */
struct score_query {
    uint4 q[N_TILES][KEY_PIECES];

    __device__ __forceinline__ void load(const indexer_args &a, int32_t b) {
        const int g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
        for (int n = 0; n < N_TILES; n++) {
            const char *row = indexer_row<INDEXER_Q>(a, (int64_t)b * INDEXER_HEADS + n * 8 + g) + t * 16;
#pragma unroll
            for (int c = 0; c < KEY_PIECES; c++)
                q[n][c] = __ldg((const uint4 *)(row + c * 64));
        }
    }
};

/* Entries of every `step`-th page of request b from page `first` on, as one list. Page numbers are asked for before it is known how
 * many entries there are; then limit(). put(entry, score) is called for each once, by any thread; entries count in the list. */
template <int STAGES> struct scorer {
    static constexpr int AHEAD = STAGES - 1;

    const indexer_args &a;
    uint32_t            ring, w;  /* shared, of this thread: [STAGES][2 * KEY_PIECES][WARP]; weights of heads 2t and 2t + 1 */
    const int32_t      *table;    /* at the first page */
    int32_t             step, room;          /* room: pages of the table from there on */
    int32_t             end, mine;           /* entries; tiles of this warp */
    int32_t             pages, coming;       /* of 32 of these, and of the next 32 */

    __device__ __forceinline__ scorer(const indexer_args &args, score_ring<STAGES> &r, int32_t b, int32_t first, int32_t step_)
        : a(args), ring(shared_address(&r.piece[warp_id()][0][0][lane_id()])), w(shared_address(&r.w[warp_id()][lane_id() % 4])),
          table((const int32_t *)indexer_row<INDEXER_PAGE_TABLE>(args, b) + first), step(step_) {
        room = a.width / INDEXER_PAGE - first;
        coming = page_of(lane_id());
    }
    __device__ __forceinline__ void limit(int32_t entries) {
        end = entries;
        mine = max((end + TILE - 1) / TILE - warp_id() + SCORE_WARPS - 1, 0) / SCORE_WARPS;
    }

    __device__ __forceinline__ int32_t entry(int32_t tile) const {
        return (tile * SCORE_WARPS + warp_id()) * TILE;
    }
    __device__ __forceinline__ int32_t page_of(int32_t tile) const {
        const int32_t at = entry(tile) / INDEXER_PAGE * step;
        return at < room ? __ldg(table + at) : 0;
    }

    /* Starts the copies of a tile; tiles are asked for in order. */
    __device__ __forceinline__ void copy(int32_t tile) {
        if (tile < mine) {
            if (tile % WARP == 0) {
                pages = coming;
                if (tile + WARP < mine)
                    coming = page_of(tile + WARP + lane_id());
            }
            const int64_t page = __shfl_sync(ALL_LANES, pages, tile % WARP);
            const int g = lane_id() / 4, t = lane_id() % 4, e = entry(tile);
            const char *key = indexer_row<INDEXER_KEYS>(a, page * INDEXER_PAGE + e % INDEXER_PAGE + g) + t * 16;
            const uint32_t to = ring + tile % STAGES * (2 * KEY_PIECES * WARP * 16);
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int c = 0; c < KEY_PIECES; c++)
                    copy16_async(to + (half * KEY_PIECES + c) * WARP * 16, key + half * 8 * a.t[INDEXER_KEYS].stride + c * 64,
                        e + half * 8 + g < end);
        }
        copy_commit();
    }

    __device__ __forceinline__ void multiply(const score_query &query, int32_t tile, float (&sum)[N_TILES][4]) const {
        const uint32_t from = ring + tile % STAGES * (2 * KEY_PIECES * WARP * 16);
#pragma unroll
        for (int c = 0; c < KEY_PIECES; c++) {
            const uint4 k0 = load16_shared(from + c * WARP * 16), k8 = load16_shared(from + (KEY_PIECES + c) * WARP * 16);
            const uint32_t first[4] = {k0.x, k8.x, k0.y, k8.y}, second[4] = {k0.z, k8.z, k0.w, k8.w};
#pragma unroll
            for (int n = 0; n < N_TILES; n++)
                mma_bf16(sum[n], first, query.q[n][c].x, query.q[n][c].y);
#pragma unroll
            for (int n = 0; n < N_TILES; n++)
                mma_bf16(sum[n], second, query.q[n][c].z, query.q[n][c].w);
        }
    }

    /* Lane t = 0 of four gets the score of entry g, t = 1 that of entry g + 8. */
    __device__ __forceinline__ float weigh(const float (&sum)[N_TILES][4]) const {
        float s[2] = {0, 0};
#pragma unroll
        for (int n = 0; n < N_TILES; n++) {
            const uint2 pair = load8_shared(w + n * 32);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                s[half] = fmaf(fmaxf(sum[n][half * 2], 0.f), __uint_as_float(pair.x), s[half]);
                s[half] = fmaf(fmaxf(sum[n][half * 2 + 1], 0.f), __uint_as_float(pair.y), s[half]);
            }
        }
        const bool odd = lane_id() % 2;
        const float mine = (odd ? s[1] : s[0]) + __shfl_xor_sync(ALL_LANES, odd ? s[0] : s[1], 1);
        return mine + __shfl_xor_sync(ALL_LANES, mine, 2);
    }

    /* q is asked for while the first page numbers are on their way, and is there when the first keys are. */
    template <class PUT> __device__ __forceinline__ void run(int32_t b, PUT put) {
        const int g = lane_id() / 4, t = lane_id() % 4;
        const float2 weight = __ldg((const float2 *)indexer_row<INDEXER_W>(a, b) + lane_id());
        score_query query;
        query.load(a, b);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            copy(i);
        store8_shared(w + (lane_id() - t) * 8, weight.x, weight.y);
        __syncwarp();
        for (int32_t tile = 0; tile < mine; tile++) {
            copy(tile + AHEAD);
            copy_wait<AHEAD>();
            float sum[N_TILES][4] = {};
            multiply(query, tile, sum);
            const float score = weigh(sum);
            const int32_t e = entry(tile) + t * 8 + g;
            if (t < 2 && e < end)
                put(e, score);
        }
        copy_wait<0>();
        __syncwarp();  /* nobody overwrites weights that others still read */
    }
};

#endif

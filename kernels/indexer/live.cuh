/* The persistent indexer: one block an SM takes its share of the live pages (indexer.cuh) and nothing depends on the width.
 *
 * One or four warps copy pages into a ring and q of each request into a smaller one; teams of warps take the pages in turn, and a
 * page is a team's from arrival to logits. A page comes with a note: request, page, live entries, buffer of q. While a block finds
 * out its share, it asks L2 for a few pages that live (live_ahead.cuh; WGMMA, NARROW and DIRECT).
 *
 *   WGMMA   a team is a warpgroup. bf16: keys and q go from the copy engine to the tensor cores. e4m3: exact products of halves;
 *           keys pass through registers, which convert them, and each team converts q of a request once
 *   NARROW  likewise for e4m3 without a conversion: fp8 products, whose sums keep 13 bits, so that scores near 0 are wrong
 *   BULK    a team is two warps of 32 entries each by mma.sync, the copy engine fills the rings: sm_90 and newer
 *   DIRECT  no copies, no rings: for a single request see live_direct.cuh, for more direct_block.cuh. The best on sm_90a for a
 *           single request, and for any number where keys pass through registers anyway
 *   ASYNC   as BULK, but four warps copy 16 bytes at a time: sm_80 and newer
 */
#ifndef KBENCH_INDEXER_LIVE_CUH
#define KBENCH_INDEXER_LIVE_CUH

#include <stdio.h>
#include <stdlib.h>
#include "live_ring.cuh"

/* A warpgroup's scores of pages; weights stay in registers as long as the request does. */
template <class F> struct live_team {
    const live_plan   &plan;
    const live_places &at;
    int                team, member;
    float              weight[INDEXER_HEADS / 4];

    __device__ __forceinline__ uint32_t own(void) const {
        return at.own + (uint32_t)(team * F::OWN);
    }

    /* Another request, whose q comes to buffer `buffer`. */
    __device__ __forceinline__ void take(int buffer, uint32_t parity) {
        barrier_wait(at.ready + buffer * 8, parity);
        score_weights(at.w + buffer * LIVE_LINE, weight);
        if constexpr (F::OWN > 0) {
            warpgroup_sync(team);  /* all warps' products with the q before are done */
            F::convert(at.q + buffer * F::BYTES, own(), member);
            wgmma_publish();
            warpgroup_sync(team);
        }
    }

    __device__ __forceinline__ void page(int stage, int buffer, int live, float *logits) {
        const uint32_t keys = at.keys + stage * F::BYTES, empty = at.empty + stage * 8;
        const float scale = score_scale<F>(at.scales + stage * F::SCALES, member * 16);
        float c[INDEXER_HEADS / 2], sum[2];
        if constexpr (F::OWN > 0) {
            uint32_t k[SCORE_STEPS][4];
            F::keys(keys, member * 16, k);
            __syncwarp();
            if (lane_id() == 0)
                barrier_arrive(empty);
            wgmma_begin();
            F::multiply(c, k, wgmma_rows(own()));
            wgmma_commit();
            wgmma_wait(c);
        } else {
            wgmma_begin();
            F::multiply(c, wgmma_rows(keys), wgmma_rows(at.q + buffer * F::BYTES));
            wgmma_commit();
            wgmma_wait(c);
            __syncwarp();  /* all lanes have read the note */
            if (lane_id() == 0)
                barrier_arrive(empty);
        }
        score_fold_row(c, weight, sum);
        score_write(logits, member * 16, live, scale, sum);
    }

    __device__ __forceinline__ void run(const indexer_args &a) {
        take(0, 0);
        int32_t request = (int32_t)load4_shared(at.first);
        for (live_position from = {team, 0};; from.advance(plan.teams, plan.stages)) {
            barrier_wait(at.full + from.stage * 8, from.parity);
            const uint4 note = load16_shared(at.notes + from.stage * 16);
            const int live = (int)note.z, buffer = (int)note.w >> 1;
            if (live == 0)
                break;
            if (request != (int32_t)note.x) {
                request = (int32_t)note.x;
                take(buffer, note.w & 1);
            }
            page(from.stage, buffer, live, indexer_logits(a, request, (int32_t)note.y));
        }
    }
};

/* What multiplies by mma.sync: one warp of team `team`, half a page. */
template <class F, int PATH>
static __device__ __forceinline__ void live_multiply(const indexer_args &a, const live_plan &plan, const live_places &at) {
    using warps = live_warps<PATH>;
    const int team = warp_id() / warps::TEAM, member = warp_id() % warps::TEAM;
    for (live_position from = {team, 0};; from.advance(plan.teams, plan.stages)) {
        barrier_wait(at.full + from.stage * 8, from.parity);
        const uint4 note = load16_shared(at.notes + from.stage * 16);
        const int live = (int)note.z, buffer = (int)note.w >> 1;
        if (live == 0)
            break;
        barrier_wait(at.ready + buffer * 8, note.w & 1);
        float *const logits = indexer_logits(a, (int32_t)note.x, (int32_t)note.y);
        const uint32_t keys = at.keys + from.stage * F::BYTES, q = at.q + buffer * F::BYTES, w = at.w + buffer * LIVE_LINE;
        const uint32_t scales = at.scales + from.stage * F::SCALES, empty = at.empty + from.stage * 8;
        float sum[2][2];
        score_entries<F, 2>(keys, q, w, member * 32, sum);
        const float scale[2] = {score_scale<F>(scales, member * 32), score_scale<F>(scales, member * 32 + 16)};
        __syncwarp();
        if (lane_id() == 0)
            barrier_arrive(empty);
        score_write(logits, member * 32, live, scale[0], sum[0]);
        score_write(logits, member * 32 + 16, live, scale[1], sum[1]);
    }
}

/* While the lengths are on their way: barriers, page numbers for L2. */
template <int PATH>
static __device__ __forceinline__ void live_prepare(const indexer_args &a, const live_plan &plan, const live_places &at) {
    using warps = live_warps<PATH>;
    if (warp_id() == 0) {
        /* full, empty and ready lie in a row. A loop, since ptxas makes a predicate of an if, and synccheck looks at none. */
        for (int32_t i = lane_id(); i < 2 * plan.stages + plan.queries; i += WARP)
            barrier_init(at.full + i * 8, i >= plan.stages && i < 2 * plan.stages ? warps::TEAM : warps::FILLED);
        barrier_init_done();
    } else if (a.batch > 1) {
        indexer_ask(a, (int32_t)threadIdx.x - WARP);
    }
}

template <class F, int PATH>
static __global__ void __launch_bounds__(live_warps<PATH>::MOST, 1)
    indexer_live(const __grid_constant__ indexer_args a, const __grid_constant__ live_plan plan,
                 const __grid_constant__ CUtensorMap key_map, const __grid_constant__ CUtensorMap q_map) {
    extern __shared__ __align__(1024) char shared_bytes[];
    using warps = live_warps<PATH>;
    if constexpr (PATH == LIVE_ASYNC || (PATH == LIVE_BULK && HAS_BULK) || HAS_WGMMA) {
        const live_places at(plan, shared_bytes);
        const int copier = warp_id() - plan.teams * warps::TEAM;
        uint4 lengths = make_uint4(0, 0, 0, 0);
        int32_t slot = 0;
        uint32_t inverse = 0;
        const bool asks = PATH == LIVE_WGMMA && plan.ahead > 0 && a.batch > 1 && warp_id() == 1;
        live_ahead<F> pages;
        if (copier < 0) {
            live_prepare<PATH>(a, plan, at);
            if (asks)
                pages.begin(a, plan.ahead);
        } else {
            const int32_t page = (int32_t)blockIdx.x + lane_id() * (int32_t)gridDim.x;
            lengths = indexer_load4(a, lane_id() * 4);
            if (a.batch == 1 && page < a.width / INDEXER_PAGE)
                slot = (int32_t)load4_now(indexer_row<INDEXER_PAGE_TABLE>(a, 0) + (int64_t)page * 4);
            if (copier == 0 && PATH != LIVE_ASYNC && lane_id() == 0) {
                bulk_prefetch_map(&key_map);
                bulk_prefetch_map(&q_map);
            }
            inverse = indexer_inverse((int32_t)gridDim.x);
        }
        __syncthreads();  /* at one place for all warps, or synccheck sees them part */
        if (copier < 0) {
            if (asks)
                pages.end(a);
            if constexpr (PATH == LIVE_WGMMA)
                live_team<F>{plan, at, warp_id() / warps::TEAM, warp_id() % warps::TEAM}.run(a);
            else
                live_multiply<F, PATH>(a, plan, at);
            return;
        }
        live_copier<F, PATH> c = {a, plan, at, key_map, q_map, copier, 0, {0, 1}, {plan.queries - 1, 1}, -1, 0};
        if (a.batch == 1)
            c.begin(0, true);
        c.run(live_share_of(a, indexer_clamp4(a, lengths), inverse), slot);
    }
}

/* From open. best: for any batch; path: for this one. */
struct live_state {
    tensor_map_encode *encode;
    int                best, path;
};

template <class F> static const void *live_kernel(int path) {
    switch (path) {
    case LIVE_WGMMA: return (const void *)indexer_live<F, LIVE_WGMMA>;
    case LIVE_NARROW: return (const void *)indexer_live<typename F::narrow, LIVE_WGMMA>;
    case LIVE_DIRECT: return (const void *)indexer_direct<typename F::direct>;
    case LIVE_BULK: return (const void *)indexer_live<F, LIVE_BULK>;
    default: return (const void *)indexer_live<F, LIVE_ASYNC>;
    }
}

/* Which paths there is code for: a body that an architecture lacks is empty and needs few registers. */
template <class F> static int live_open(const struct problem *p, const struct device *d, void **ret) {
    struct live_state *state = (struct live_state *)calloc(1, sizeof *state);
    int error = state ? cudaSuccess : cudaErrorMemoryAllocation;
    *ret = state;
    if (error == cudaSuccess && d->sm >= 90)
        state->encode = tensor_map_encoder();
    for (int path = LIVE_NARROW; path >= LIVE_WGMMA && error == cudaSuccess; path--) {
        cudaFuncAttributes code = {};
        if (path == LIVE_DIRECT || (path != LIVE_ASYNC && !state->encode))
            continue;
        error = cudaFuncGetAttributes(&code, live_kernel<F>(path));
        if (error == cudaSuccess)
            error = cudaFuncSetAttribute(live_kernel<F>(path), cudaFuncAttributeMaxDynamicSharedMemorySize, (int)d->smem_bytes);
        if (code.numRegs > 32 && path != LIVE_NARROW)
            state->best = path;
    }
    if (error == cudaSuccess && state->best == LIVE_WGMMA)
        error = cudaFuncSetAttribute(indexer_direct_many<typename F::direct>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)DIRECT_SHARED);
    if (error != cudaSuccess) {
        free(state);
        *ret = NULL;
        return error;
    }
    const bool direct = F::OWN > 0 || p->dim[INDEXER_BATCH] == 1;  /* keys pass through registers anyway, or nothing is shared */
    state->path = state->best == LIVE_WGMMA && direct ? LIVE_DIRECT : state->best;
    return error;
}

static inline void live_close(void *state) {
    free(state);
}

static inline const char *live_describe(void *state, char *ret, size_t size) {
    static const char *const words[] = {"", "wgmma, bulk copies", "mma.sync, bulk copies", "mma.sync, asynchronous copies",
                                        "wgmma, keys straight to registers"};
    snprintf(ret, size, "%s", words[((struct live_state *)state)->path]);
    return ret;
}

enum { LIVE_TUNE_PATH, LIVE_TUNE_TEAMS, LIVE_TUNE_STAGES, LIVE_TUNE_AHEAD };

/* Tunables: path of enum live_path up to `paths`, teams, pages in the ring, and one more than the pages that a block asks L2 for
 * ahead (by WGMMA, NARROW and DIRECT, of more than one request); 0: whichever is best. */
#define LIVE_TUNABLES(paths) \
    {{"path", {0}, 0, paths}, {"teams", {0}, 0, LIVE_TEAMS}, {"stages", {0}, 0, 64}, {"ahead", {0}, 0, 17}}

template <class F> static int live_launch(const struct call *call) {
    const struct live_state *state = (const struct live_state *)call->state;
    const int path = call->tune[LIVE_TUNE_PATH] ? call->tune[LIVE_TUNE_PATH] : state->path;
    const bool wgmma = path == LIVE_WGMMA || path == LIVE_NARROW, direct = path == LIVE_DIRECT;
    if (path < state->best || ((wgmma || direct) && state->best != LIVE_WGMMA))
        return cudaErrorNotSupported;
    indexer_args a = indexer_args_of(call);
    const int32_t ahead = call->tune[LIVE_TUNE_AHEAD] ? call->tune[LIVE_TUNE_AHEAD] - 1 : F::AHEAD;
    if (direct) {
        const unsigned blocks = (unsigned)call->device->sm_count;
        if (a.batch == 1)
            indexer_direct<typename F::direct><<<blocks, DIRECT_THREADS, 0, call->stream>>>(a);
        else
            indexer_direct_many<typename F::direct><<<blocks, DIRECT_THREADS, DIRECT_SHARED, call->stream>>>(a, ahead);
        return cudaGetLastError();
    }
    const int32_t teams = call->tune[LIVE_TUNE_TEAMS] ? call->tune[LIVE_TUNE_TEAMS] : LIVE_TEAMS;
    /* As many bytes for both formats. A longer ring was never faster on an H200, and a tenth slower where contexts are short. */
    const int32_t enough = path == LIVE_WGMMA ? 8 / F::HALVES : 0;
    const int32_t stages = call->tune[LIVE_TUNE_STAGES] ? call->tune[LIVE_TUNE_STAGES] : enough;
    live_plan plan = live_plan_of<F>(call->device->smem_bytes, teams, stages, path == LIVE_WGMMA ? F::OWN : 0);
    plan.ahead = ahead;
    CUtensorMap key_map = {}, q_map = {};
    if (path != LIVE_ASYNC && !(tensor_map_rows(state->encode, a.t[INDEXER_KEYS].p, F::map_stride(a), F::HALVES, &key_map) &&
                                tensor_map_rows(state->encode, a.t[INDEXER_Q].p, a.t[INDEXER_Q].stride, F::HALVES, &q_map)))
        return cudaErrorInvalidValue;
    const int threads = wgmma               ? (plan.teams * live_warps<LIVE_WGMMA>::TEAM + live_warps<LIVE_WGMMA>::COPY) * WARP
                        : path == LIVE_BULK ? (plan.teams * live_warps<LIVE_BULK>::TEAM + live_warps<LIVE_BULK>::COPY) * WARP
                                            : (plan.teams * live_warps<LIVE_ASYNC>::TEAM + live_warps<LIVE_ASYNC>::COPY) * WARP;
    void *args[] = {&a, &plan, &key_map, &q_map};
    return cudaLaunchKernel(live_kernel<F>(path), dim3((unsigned)call->device->sm_count), dim3((unsigned)threads), args, plan.bytes,
                            call->stream);
}

#endif

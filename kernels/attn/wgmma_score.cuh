/* Of wgmma.cuh: the warpgroup that makes scores and weights. Warp w has heads 16 w and on, a thread two of them, and of each 8 keys
 * two: S never leaves the registers. Beginning the products of the next tile before the weights of one are made was no faster on an
 * H200: both share the tensor cores with the sums, and those are the limit.
 */
#ifndef KBENCH_ATTN_WGMMA_SCORE_CUH
#define KBENCH_ATTN_WGMMA_SCORE_CUH

template <class S> struct wgmma_scorer {
    static constexpr int NT = S::TILE / 8;

    const attn_args &a;
    wgmma_shared<S> &sh;
    float    s[S::TILE / 2], m[2], sum[2];
    uint32_t kept[S::KEPT > 0 ? S::KEPT : 1][4], put;

    __device__ __forceinline__ wgmma_scorer(const attn_args &args, wgmma_shared<S> &shared) : a(args), sh(shared) {
        put = pinned(wgmma_weights_of(sh));
    }

    static __device__ __forceinline__ int warp() {
        return warp_id() % (S::TEAM / WARP);
    }
    /* The thread's head `half`, 0 or 1. */
    static __device__ __forceinline__ int head(int half) {
        return warp() * 16 + half * 8 + lane_id() / 4;
    }
    static __device__ __forceinline__ void sync() {
        wgmma_team_sync(1);
    }

    /* Whether q of k-step `step` is in registers: they and those that aren't take turns. */
    static __device__ __forceinline__ constexpr bool is_kept(int step) {
        return (step + 1) * S::KEPT / S::STEPS > step * S::KEPT / S::STEPS;
    }

    /* As attn_length_of finds them. */
    __device__ __forceinline__ int2 load_lengths(const wgmma_work &work, int32_t item) const {
        return __ldg((const int2 *)attn_row<ATTN_LENGTH>(a, wgmma_request_of(work, item)));
    }

    /* Heads past the end are 0. */
    __device__ __forceinline__ void begin_query(int64_t b, int32_t first) const {
        const int thread = (int)threadIdx.x % S::TEAM, row = thread / 8, part = thread % 8;
        const uint32_t to = shared_address(sh.q[0]) + row * 128 + (part ^ row % 8) * 16;
#pragma unroll 1
        for (int h = 0; h < S::HEADS; h += S::TEAM / 8) {
            const int32_t head = first + h + row;
            const char *q = attn_row<ATTN_Q>(a, b * a.heads + min(head, a.heads - 1)) + part * 16;
#pragma unroll
            for (int panel = 0; panel < S::PANELS; panel++)
                copy16_async(to + panel * S::Q_PANEL_BYTES + h * 128, q + panel * 128, head < a.heads);
        }
    }

    __device__ __forceinline__ void end_query() {
        copy_wait_all();
        wgmma_publish();
        sync();
        const int lane = lane_id();
        const uint32_t from = shared_address(sh.q[0]) + (warp() * 16 + lane % 16) * 128;
#pragma unroll
        for (int step = 0; step < S::STEPS; step++)
            if (is_kept(step))
                load_matrix4(kept[step * S::KEPT / S::STEPS],
                             from + step / 4 * S::Q_PANEL_BYTES + ((step % 4 * 2 + lane / 16) ^ lane % 8) * 16);
    }

    __device__ __forceinline__ void scores(int stage) {
        const uint64_t q = wgmma_rows_at(shared_address(sh.q[0])), k = wgmma_rows_at(shared_address(sh.kv[stage]));
        wgmma_publish();
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < S::STEPS; step++) {
            const uint64_t key = k + step / 4 * (S::PANEL_BYTES >> 4) + step % 4 * 2;
            const uint64_t query = q + step / 4 * (S::Q_PANEL_BYTES >> 4) + step % 4 * 2;
            if (step == 0)
                wgmma_scores<true>(s, query, key);
            else if (is_kept(step))
                wgmma_scores<false>(s, kept[step * S::KEPT / S::STEPS], key);
            else
                wgmma_scores<false>(s, query, key);
        }
        wgmma_commit();
        wgmma_wait<0>();
        wgmma_hold(s);
    }

    /* To those who sum: weights s, as bf16, and what the sums so far are to be multiplied by. */
    __device__ __forceinline__ void give(wgmma_turn<S::BUFFERS> token, float old0, float old1) {
        barrier_wait(shared_address(&sh.taken[token.at]), token.parity ^ 1);
        const uint32_t to = put + token.at * S::P_BYTES;
#pragma unroll
        for (int n = 0; n < NT; n += 2) {
            const float *x = s + 4 * n;
            store_matrix4(to ^ n * 16, bf16_pack(x[0], x[1]), bf16_pack(x[2], x[3]), bf16_pack(x[4], x[5]), bf16_pack(x[6], x[7]));
        }
        if (lane_id() % 4 == 0) {
            sh.old[token.at][head(0)] = old0;
            sh.old[token.at][head(1)] = old1;
        }
        wgmma_publish();
        barrier_arrive(shared_address(&sh.given[token.at]));  /* each lane: see wgmma_arrive */
    }

    /* From scores to weights. Every weight of the largest score so far is exactly 1. */
    __device__ __forceinline__ void weights(int stage, wgmma_turn<S::BUFFERS> token) {
        const uint32_t bias = shared_address(&sh.bias[stage][lane_id() % 4 * 2]);
        float top[2] = {m[0], m[1]}, base[2], old[2];
#pragma unroll
        for (int n = 0; n < NT; n++) {
            const uint2 x = load8_shared(bias + n * 32);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                s[4 * n + i] = s[4 * n + i] * SCALE_LOG2 + __uint_as_float(i % 2 ? x.y : x.x);
                top[i / 2] = fmaxf(top[i / 2], s[4 * n + i]);
            }
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            top[half] = fmaxf(top[half], __shfl_xor_sync(ALL_LANES, top[half], 1));
            top[half] = fmaxf(top[half], __shfl_xor_sync(ALL_LANES, top[half], 2));
            base[half] = top[half] == -INFINITY ? 0.f : top[half];
            old[half] = exp2_fast(m[half] - base[half]);
            m[half] = top[half];
            sum[half] *= old[half];
        }
#pragma unroll
        for (int i = 0; i < S::TILE / 2; i++) {
            s[i] = exp2_fast(s[i] - base[i % 4 / 2]);
            sum[i % 4 / 2] += s[i];
        }
        give(token, old[0], old[1]);
    }

    /* What the weights lost as bf16, as bf16. */
    __device__ __forceinline__ void remainders(wgmma_turn<S::BUFFERS> token) {
#pragma unroll
        for (int i = 0; i < S::TILE / 2; i += 2) {
            const uint32_t w = bf16_pack(s[i], s[i + 1]);
            s[i] -= bf16_lo(w);
            s[i + 1] -= bf16_hi(w);
        }
        give(token, 1, 1);
    }

    /* Of an item's n entries, of a request whose list is short or not. */
    __device__ __forceinline__ void tiles(int32_t n, bool is_short, wgmma_turn<S::STAGES> &from, wgmma_turn<S::BUFFERS> &token) {
#pragma unroll 1
        for (; n > 0; n -= S::TILE) {
            barrier_wait(shared_address(&sh.full[from.at]), from.parity);
            scores(from.at);
            weights(from.at, token);
            token.next();
            if (is_short) {
                remainders(token);
                token.next();
            }
            from.next();
        }
    }

    /* lse and the factor that ends the sums, or m and l. */
    __device__ __forceinline__ void finish(const partials &p, int64_t b, int32_t first, int32_t split,
                                           wgmma_turn<S::BUFFERS> token) const {
        float all[2], factor[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            all[half] = sum[half] + __shfl_xor_sync(ALL_LANES, sum[half], 1);
            all[half] += __shfl_xor_sync(ALL_LANES, all[half], 2);
            factor[half] = attn_finish(m[half], all[half], attn_sink_log2(a, min(first + head(half), a.heads - 1)));
        }
        barrier_wait(shared_address(&sh.taken[token.at]), token.parity ^ 1);
        if (lane_id() % 4 == 0)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int32_t h = first + head(half);
                sh.old[token.at][head(half)] = factor[half];
                if (h < a.heads && p.splits == 1)
                    *attn_lse(a, b, h) = all[half] > 0 ? m[half] * LN2 + logf(all[half]) : -INFINITY;
                else if (h < a.heads)
                    *partial_ml(p, b * a.heads + h, split) = make_float2(m[half], all[half]);
            }
        barrier_arrive(shared_address(&sh.given[token.at]));
    }

    /* In the place of finish, behind a cluster's last tiles: m and l to all of its blocks; the first writes lse. */
    template <int CLUSTER> __device__ __forceinline__ void merge(int64_t b, int32_t first) const {
        using merge = wgmma_merge<S, CLUSTER>;
        float factor[CLUSTER], all[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            all[half] = sum[half] + __shfl_xor_sync(ALL_LANES, sum[half], 1);
            all[half] += __shfl_xor_sync(ALL_LANES, all[half], 2);
        }
        merge::begun();
        for (int half = 0; half < 2; half++)
            merge::send_ml(sh, head(half), m[half], all[half]);
        merge::meet();
        for (int half = 0; half < 2; half++)
            if (wgmma_cluster_rank() == 0 && lane_id() % 4 == 0 && first + head(half) < a.heads)
                *attn_lse(a, b, first + head(half)) = merge::factors(sh, head(half), 0, factor);
        merge::leave();
    }

    template <int CLUSTER> __device__ __forceinline__ void run(const wgmma_work &work, const partials &p) {
        wgmma_turn<S::STAGES> from = {0, 0};
        wgmma_turn<S::BUFFERS> token = {0, 0};
        int32_t item = (int32_t)blockIdx.x;
        int2 lengths = load_lengths(work, item);  /* not looked at before q is on its way */
#pragma unroll 1
        for (int32_t coming; item < work.items; item = coming) {
            const int64_t b = wgmma_request_of(work, item);
            const int32_t first = item / work.splits % work.groups * S::HEADS;
            sync();  /* all scores of the item before are made */
            begin_query(b, first);
            const int32_t n = max(lengths.x, 0) + max(lengths.y, 0);
            const wgmma_range range = wgmma_range_of<S>(work, item, n);
            coming = item + (int32_t)gridDim.x;
            if (coming < work.items)
                lengths = load_lengths(work, coming);
            m[0] = m[1] = -INFINITY;
            sum[0] = sum[1] = 0;
            end_query();
            tiles(range.end - range.begin, n <= WGMMA_SHORT, from, token);
            if constexpr (CLUSTER > 1) {
                merge<CLUSTER>(b, first);
                return;
            }
            finish(p, b, first, item % work.splits, token);
            token.next();
        }
    }
};

#endif

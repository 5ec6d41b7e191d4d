/* Of wgmma.cuh: the warpgroup that makes scores and weights. Warp w has heads 16 w and on, a thread two of them, and of each 8 keys
 * two: S never leaves the registers. Two tiles' scores have room, so that products of one and weights of the other go on side by
 * side.
 */
#ifndef KBENCH_ATTN_WGMMA_SCORE_CUH
#define KBENCH_ATTN_WGMMA_SCORE_CUH

template <int I> struct wgmma_constant {
    static constexpr int value = I;
};
/* f of constants 0 to N - 1. */
template <int N, int I = 0, class F> static __device__ __forceinline__ void wgmma_each(F &&f) {
    if constexpr (I < N) {
        f(wgmma_constant<I>());
        wgmma_each<N, I + 1>(f);
    }
}

template <class S> struct wgmma_scorer {
    static constexpr int NT = S::TILE / 8;

    const attn_args &a;
    wgmma_shared<S> &sh;
    float    s[S::AHEAD ? 2 : 1][S::TILE / 2], m[2], sum[2];
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

    /* Products of k-steps [FROM, TO) of a tile's scores. */
    template <int FROM, int TO> __device__ __forceinline__ void steps(float (&c)[S::TILE / 2], uint32_t query, int stage) {
        __syncwarp();  /* else the assembler gathers the products of all calls in one place */
        const uint64_t q = wgmma_rows_at(query), k = wgmma_rows_at(shared_address(sh.kv[stage]));
        wgmma_each<TO - FROM>([&](auto at) {
            constexpr int step = FROM + decltype(at)::value;
            const uint64_t key = k + step / 4 * (S::PANEL_BYTES >> 4) + step % 4 * 2;
            if constexpr (is_kept(step))
                wgmma_scores<step == 0>(c, kept[step * S::KEPT / S::STEPS], key);
            else
                wgmma_scores<step == 0>(c, q + step / 4 * (S::Q_PANEL_BYTES >> 4) + step % 4 * 2, key);
        });
    }

    /* Begins the scores of the tile at `stage`, which is there, without waiting for them. */
    template <int STEPS> __device__ __forceinline__ void begin(float (&c)[S::TILE / 2], uint32_t query, int stage) {
        wgmma_publish();
        wgmma_fence();
        steps<0, STEPS>(c, query, stage);
    }

    /* From scores c to weights. Every weight of the largest score so far is exactly 1. AHEAD: the products of the next tile's
     * scores, of which the first 8 have begun, are given out in between: it is not said how many can wait in line, and whoever
     * gives out all of them first may stand there until most are done. */
    template <bool AHEAD>
    __device__ __forceinline__ void weights(float (&c)[S::TILE / 2], int stage, wgmma_turn<S::BUFFERS> token,
                                            float (&next)[S::TILE / 2], int next_stage) {
        const uint32_t bias = shared_address(&sh.bias[stage][lane_id() % 4 * 2]);
        float top[2] = {m[0], m[1]}, base[2], old[2];
        wgmma_each<NT>([&](auto at) {
            constexpr int n = decltype(at)::value;
            const uint2 x = load8_shared(bias + n * 32);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                c[4 * n + i] = c[4 * n + i] * SCALE_LOG2 + __uint_as_float(i % 2 ? x.y : x.x);
                top[i / 2] = fmaxf(top[i / 2], c[4 * n + i]);
            }
            if constexpr (AHEAD)
                steps<8 + n * 8 / NT, 8 + (n + 1) * 8 / NT>(next, shared_address(sh.q[0]), next_stage);
        });
#pragma unroll
        for (int half = 0; half < 2; half++)
            top[half] = fmaxf(top[half], __shfl_xor_sync(ALL_LANES, top[half], 1));
        if constexpr (AHEAD)
            steps<16, 18>(next, shared_address(sh.q[0]), next_stage);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            top[half] = fmaxf(top[half], __shfl_xor_sync(ALL_LANES, top[half], 2));
            base[half] = top[half] == -INFINITY ? 0.f : top[half];
            old[half] = exp2_fast(m[half] - base[half]);
            m[half] = top[half];
            sum[half] *= old[half];
        }
        if constexpr (AHEAD)
            steps<18, 20>(next, shared_address(sh.q[0]), next_stage);
        wgmma_each<NT>([&](auto at) {
            constexpr int n = decltype(at)::value;
#pragma unroll
            for (int i = 4 * n; i < 4 * n + 4; i++) {
                c[i] = exp2_fast(c[i] - base[i % 4 / 2]);
                sum[i % 4 / 2] += c[i];
            }
            if constexpr (AHEAD)
                steps<20 + n * 12 / NT, 20 + (n + 1) * 12 / NT>(next, shared_address(sh.q[0]), next_stage);
        });
        if constexpr (AHEAD)
            wgmma_commit();
        barrier_wait(shared_address(&sh.taken[token.at]), token.parity ^ 1);
        const uint32_t to = S::weights_at(put, token.at);
#pragma unroll
        for (int n = 0; n < NT; n += 2) {
            const float *x = c + 4 * n;
            store_matrix4(to ^ n * 16, bf16_pack(x[0], x[1]), bf16_pack(x[2], x[3]), bf16_pack(x[4], x[5]), bf16_pack(x[6], x[7]));
        }
        if (lane_id() % 4 == 0) {
            sh.old[token.at][head(0)] = old[0];
            sh.old[token.at][head(1)] = old[1];
        }
        wgmma_publish();
        wgmma_arrive(sh.given[token.at]);
    }

    /* A tile whose scores c have begun. Those of the next, if there is one, begin before its weights are made where it has come by
     * then, else behind them. Returns whether there is one. */
    __device__ __forceinline__ bool tile(float (&c)[S::TILE / 2], float (&next)[S::TILE / 2], wgmma_turn<S::STAGES> &from,
                                         wgmma_turn<S::BUFFERS> &token, bool more) {
        const int stage = from.at;
        from.next();
        const wgmma_turn<S::BUFFERS> now = token;
        token.next();
        const uint32_t q = shared_address(sh.q[0]), full = shared_address(&sh.full[from.at]);
        wgmma_wait<0>();
        wgmma_hold(c);
        if (more && wgmma_team_all(1, wgmma_has_ended(full, from.parity))) {
            begin<8>(next, q, from.at);
            weights<true>(c, stage, now, next, from.at);
            return true;
        }
        weights<false>(c, stage, now, next, from.at);
        if (!more)
            return false;
        barrier_wait(full, from.parity);
        begin<S::STEPS>(next, q, from.at);
        wgmma_commit();
        return true;
    }

    /* Of an item's n entries. */
    __device__ __forceinline__ void tiles(int32_t n, wgmma_turn<S::STAGES> &from, wgmma_turn<S::BUFFERS> &token) {
        if constexpr (S::AHEAD) {
            if (n > 0) {
                barrier_wait(shared_address(&sh.full[from.at]), from.parity);
                begin<S::STEPS>(s[0], pinned(shared_address(sh.q[0])), from.at);  /* else its descriptors are kept for the loop */
                wgmma_commit();
                while (tile(s[0], s[1], from, token, n > S::TILE) && tile(s[1], s[0], from, token, n > 2 * S::TILE))
                    n -= 2 * S::TILE;
            }
        } else {
#pragma unroll 1
            for (; n > 0; n -= S::TILE) {
                barrier_wait(shared_address(&sh.full[from.at]), from.parity);
                begin<S::STEPS>(s[0], shared_address(sh.q[0]), from.at);
                wgmma_commit();
                wgmma_wait<0>();
                wgmma_hold(s[0]);
                weights<false>(s[0], from.at, token, s[0], 0);
                from.next();
                token.next();
            }
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
        wgmma_arrive(sh.given[token.at]);
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
        merge::meet();
        for (int half = 0; half < 2; half++)
            merge::send_ml(sh, head(half), m[half], all[half]);
        merge::meet();
        for (int half = 0; half < 2; half++)
            if (wgmma_cluster_rank() == 0 && lane_id() % 4 == 0 && first + head(half) < a.heads)
                *attn_lse(a, b, first + head(half)) = merge::factors(sh, head(half), 0, factor);
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
            const wgmma_range range = wgmma_range_of<S>(work, item, max(lengths.x, 0) + max(lengths.y, 0));
            coming = item + (int32_t)gridDim.x;
            if (coming < work.items)
                lengths = load_lengths(work, coming);
            m[0] = m[1] = -INFINITY;
            sum[0] = sum[1] = 0;
            end_query();
            tiles(range.end - range.begin, from, token);
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

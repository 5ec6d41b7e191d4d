/* Of wgmma.cuh: the two warpgroups that make the weighted sums. Warp w of team j has heads 16 w and on, elements 256 j and on; a
 * thread of each 8 elements two, of heads g and g + 8.
 */
#ifndef KBENCH_ATTN_WGMMA_SUM_CUH
#define KBENCH_ATTN_WGMMA_SUM_CUH

template <class S> struct wgmma_sums {
    float o[2][64];  /* of 128 elements of d each */

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < 128; i++)
            o[i / 64][i % 64] = 0;
    }

    /* Most tiles bring a warp of few heads no new maximum, and then nothing is done. */
    __device__ __forceinline__ void scale(float f0, float f1) {
        if (!__any_sync(ALL_LANES, f0 != 1 || f1 != 1))
            return;
#pragma unroll
        for (int i = 0; i < 128; i++)
            o[i / 64][i % 64] *= i % 4 < 2 ? f0 : f1;
    }

    /* weight: address of the tile's weights; value: of its keys, of the team's first panel. */
    __device__ __forceinline__ void tile(uint32_t weight, uint32_t value) {
        const uint64_t w = wgmma_rows_at(weight), v = wgmma_columns_at<S::PANEL_BYTES>(value);
        wgmma_hold(o[0]);
        wgmma_hold(o[1]);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < S::TILE / 16; k++)
#pragma unroll
            for (int part = 0; part < 2; part++)
                wgmma_values(o[part], w + k * 2, v + k * (16 * 128 >> 4) + part * (2 * S::PANEL_BYTES >> 4));
        wgmma_commit();
        wgmma_wait<0>();
        wgmma_hold(o[0]);
        wgmma_hold(o[1]);
    }

    /* The sums of a part as they are. Lanes 2 i and 2 i + 1 change two sums each, so that a store takes 64 bytes a head. to: of the
     * thread's first head and four elements; 8 heads on: + eight. */
    __device__ __forceinline__ void write_part(float *to, int64_t eight, bool there0, bool there1) const {
        const bool odd = threadIdx.x % 2;
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int n = 0; n < 32; n += 2) {
                const float *x = o[n / 16] + n % 16 * 4 + half * 2, *y = x + 4;
                const float u = __shfl_xor_sync(ALL_LANES, odd ? x[0] : y[0], 1);
                const float v = __shfl_xor_sync(ALL_LANES, odd ? x[1] : y[1], 1);
                const float4 four = odd ? make_float4(u, v, y[0], y[1]) : make_float4(x[0], x[1], u, v);
                if (half ? there1 : there0)
                    __stcg((float4 *)(to + half * eight + n * 8), four);
            }
    }

    /* As bf16, times f0 and f1: 64 bytes a quad and store. to: of the thread's first head and the quad's first element, plus 16
     * bytes a lane. */
    __device__ __forceinline__ void write_bf16(char *to, int64_t eight, bool there0, bool there1, float f0, float f1) const {
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int n = 0; n < 32; n += 4) {
                const float *x = o[n / 16] + n % 16 * 4 + half * 2, f = half ? f1 : f0;
                const uint4 v = quad_transpose(bf16_pack(x[0] * f, x[1] * f), bf16_pack(x[4] * f, x[5] * f),
                                               bf16_pack(x[8] * f, x[9] * f), bf16_pack(x[12] * f, x[13] * f));
                if (half ? there1 : there0)
                    *(uint4 *)(to + half * eight + n * 16) = v;
            }
    }
};

template <class S, int CLUSTER>
static __device__ __forceinline__ void wgmma_sum(const attn_args &a, wgmma_shared<S> &sh, const wgmma_work &work,
                                                 const partials &p) {
    const int team = (int)threadIdx.x / S::TEAM, lane = lane_id(), head = warp_id() % 4 * 16 + lane / 4;
    const uint32_t weight = shared_address(sh.p[0]), value = pinned(shared_address(sh.kv[0]) + team * (S::STAGE_BYTES / 2));
    if (team == 0)  /* it has nothing else to do yet; else each of the ring's first tiles waits for its line of the list */
        attn_announce_lists<S::TEAM>(a, wgmma_request_of(work, (int32_t)blockIdx.x), (int32_t)threadIdx.x);
    wgmma_sums<S> sums;
    wgmma_turn<S::STAGES> from = {0, 0};
    wgmma_turn<S::BUFFERS> token = {0, 0};
    int32_t n = attn_length_of(a, wgmma_request_of(work, (int32_t)blockIdx.x)).n, item = (int32_t)blockIdx.x;
#pragma unroll 1
    for (int32_t coming; item < work.items; item = coming) {
        const wgmma_range range = wgmma_range_of<S>(work, item, n);
        const bool is_short = n <= WGMMA_SHORT;
        coming = item + (int32_t)gridDim.x;
        if (coming < work.items)
            n = attn_length_of(a, wgmma_request_of(work, coming)).n;
        sums.clear();
#pragma unroll 1
        for (int32_t i = range.begin; i < range.end; i += S::TILE) {
            for (int token_of_tile = 0; token_of_tile <= is_short; token_of_tile++) {
                barrier_wait(shared_address(&sh.given[token.at]), token.parity);
                wgmma_publish();
                if (i > range.begin)
                    sums.scale(sh.old[token.at][head], sh.old[token.at][head + 8]);
                sums.tile(weight + token.at * S::P_BYTES, value + from.at * S::STAGE_BYTES);
                wgmma_arrive(sh.taken[token.at]);
                token.next();
            }
            if (lane == 0)
                barrier_arrive(shared_address(&sh.empty[from.at]));
            from.next();
        }
        if constexpr (CLUSTER > 1) {
            using merge = wgmma_merge<S, CLUSTER>;
            merge::begun();
            merge::keep(sums.o, sh, team);
            merge::meet();
            merge::write(a, sh, wgmma_request_of(work, item), item / work.splits % work.groups * S::HEADS, team);
            merge::leave();
            return;
        }
        barrier_wait(shared_address(&sh.given[token.at]), token.parity);
        const float f0 = sh.old[token.at][head], f1 = sh.old[token.at][head + 8];
        wgmma_arrive(sh.taken[token.at]);
        token.next();
        const int32_t first = item / work.splits % work.groups * S::HEADS + head;
        const int64_t row = (int64_t)wgmma_request_of(work, item) * a.heads + first;
        const uint32_t place = pinned((uint32_t)(team * 4 + lane % 4));  /* else its offsets would wait in registers all the time */
        if (p.splits == 1)
            sums.write_bf16(attn_row<ATTN_OUT>(a, row) + place / 4 * 512 + place % 4 * 16, 8 * a.t[ATTN_OUT].stride,
                            first < a.heads, first + 8 < a.heads, f0, f1);
        else
            sums.write_part(partial_o(p, row, item % work.splits) + place / 4 * 256 + place % 4 / 2 * 4 + place % 2 * 8,
                            (int64_t)8 * p.splits * ATTN_D, first < a.heads, first + 8 < a.heads);
    }
}

#endif

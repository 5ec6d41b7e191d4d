/* Of wgmma.cuh: the parts of a row merged by the blocks that made them, a cluster, through each other's shared memory: no second
 * kernel, no partial sums through L2. Block r of C takes elements 512 / C * r and on of all 64 heads; the ring, which nobody needs
 * any more, has just the room for them. So a block has one item only.
 */
#ifndef KBENCH_ATTN_WGMMA_MERGE_CUH
#define KBENCH_ATTN_WGMMA_MERGE_CUH

/* N: blocks of 8 elements of d in a slice. In the ring: [slice][warp, of 16 heads][block][lane] of the 4 sums that a lane has. */
template <class S, int C> struct wgmma_merge {
    static constexpr int N = ATTN_D / 8 / C, BLOCK_BYTES = WARP * 16, WARP_BYTES = N * BLOCK_BYTES, PART_BYTES = 4 * WARP_BYTES;
    static_assert(C * PART_BYTES <= S::STAGES * S::STAGE_BYTES && N % 4 == 0, "no such cluster");

    /* Three meetings of all threads of the cluster. Each thread of a block begins; */
    static __device__ __forceinline__ void begin() {
        wgmma_cluster_arrive();
    }
    /* all blocks have begun: what is sent to them arrives (send_ml); */
    static __device__ __forceinline__ void begun() {
        wgmma_cluster_wait();
    }
    /* all sums lie where they are merged; */
    static __device__ __forceinline__ void meet() {
        wgmma_cluster_sync();
    }
    /* nobody reads another block's any more, so that each may end. */
    static __device__ __forceinline__ void leave() {
        wgmma_cluster_arrive();
        wgmma_cluster_wait();
    }

    /* The thread's sums into its block's ring, by the 8 warps that have made sums, when all of them have. Each takes what is its
     * slice from the other blocks in write(): nobody stores into a block whose copies and products another barrier orders. What is
     * stored here comes behind the products' reads, which ended in a wgmma_wait that is a fence of their proxy too, and behind the
     * copies, since every full stage has been multiplied. team: of the sums, 0 or 1. */
    static __device__ __forceinline__ void keep(const float (&o)[2][64], const wgmma_shared<S> &sh, int team) {
        const uint32_t to = shared_address(sh.kv[0]) + team * (C / 2) * PART_BYTES + warp_id() % 4 * WARP_BYTES + lane_id() * 16;
        asm volatile("bar.sync 2, %0;" ::"n"(S::SUMMERS * S::TEAM) : "memory");
#pragma unroll
        for (int slice = 0; slice < C / 2; slice++)
#pragma unroll
            for (int n = 0; n < N; n++)
                wgmma_store16(to + slice * PART_BYTES + n * BLOCK_BYTES, o[(slice * N + n) / 16] + (slice * N + n) % 16 * 4);
    }

    /* m and l of head `head` to all blocks, by the four lanes of a quad. */
    static __device__ __forceinline__ void send_ml(const wgmma_shared<S> &sh, int head, float m, float l) {
        const uint32_t to = shared_address(&sh.ml[wgmma_cluster_rank()][head]);
#pragma unroll
        for (int c = lane_id() % 4; c < C; c += 4)
            wgmma_cluster_store8(wgmma_cluster_address(to, c), m, l);
    }

    /* Of head `head`, local: factor[c] is what part c is to be multiplied by. Returns the lse. */
    static __device__ __forceinline__ float factors(const wgmma_shared<S> &sh, int head, float sink_log2, float (&factor)[C]) {
        float top = -INFINITY, all = 0;
#pragma unroll
        for (int c = 0; c < C; c++)
            top = fmaxf(top, sh.ml[c][head].x);
        const float base = top == -INFINITY ? 0.f : top;
#pragma unroll
        for (int c = 0; c < C; c++) {
            factor[c] = exp2f(sh.ml[c][head].x - base);
            all += sh.ml[c][head].y * factor[c];
        }
        const float f = attn_finish(top, all, sink_log2);
#pragma unroll
        for (int c = 0; c < C; c++)
            factor[c] *= f;
        return all > 0 ? top * LN2 + logf(all) : -INFINITY;
    }

    /* The block's slice of out from all blocks' parts, by the 8 warps that have made sums; first: the group's first head. */
    static __device__ __forceinline__ void write(const attn_args &a, const wgmma_shared<S> &sh, int64_t b, int32_t first,
                                                 int team) {
        const int lane = lane_id(), warp = warp_id() % 4, head = warp * 16 + lane / 4;
        const uint32_t slice = shared_address(sh.kv[0]) + wgmma_cluster_rank() * PART_BYTES + warp * WARP_BYTES + lane * 16;
        uint32_t from[C];
        float factor[2][C];
#pragma unroll
        for (int c = 0; c < C; c++)
            from[c] = wgmma_cluster_address(slice, c);
#pragma unroll
        for (int half = 0; half < 2; half++)
            factors(sh, head + half * 8, attn_sink_log2(a, min(first + head + half * 8, a.heads - 1)), factor[half]);
        char *out = attn_row<ATTN_OUT>(a, b * a.heads + first + head) + wgmma_cluster_rank() * (ROW_BYTES / C) + lane % 4 * 16;
#pragma unroll 1
        for (int n = team * 4; n < N; n += 8) {
            float o[4][4] = {};
#pragma unroll
            for (int c = 0; c < C; c++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const float4 v = wgmma_cluster_load16(from[c] + (n + j) * BLOCK_BYTES);
                    o[j][0] += v.x * factor[0][c];
                    o[j][1] += v.y * factor[0][c];
                    o[j][2] += v.z * factor[1][c];
                    o[j][3] += v.w * factor[1][c];
                }
#pragma unroll
            for (int half = 0; half < 2; half++) {
                uint32_t w[4];
#pragma unroll
                for (int j = 0; j < 4; j++)
                    w[j] = bf16_pack(o[j][half * 2], o[j][half * 2 + 1]);
                const uint4 v = quad_transpose(w[0], w[1], w[2], w[3]);
                if (first + head + half * 8 < a.heads)
                    *(uint4 *)(out + half * 8 * a.t[ATTN_OUT].stride + n * 16) = v;
            }
        }
    }
};

#endif

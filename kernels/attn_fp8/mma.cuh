/* Tiled attention over entries in fp8 by mma.sync: entries are copied as they are into a ring in shared memory and become operands
 * in registers. No tile in 16 bits is ever written, because e4m3 is exact in half and its scale can wait:
 *
 *   scores   the 64 products of a group are summed by themselves and then multiplied by the scale, a float. q is brought into
 *            half's range by a power of two per head and warp, which loses nothing above 2^-28 of the warp's largest element.
 *   sum      the scale goes to the weight: half(weight) * 2^(scale - unit), where unit is the warp's own for its group and grows
 *            with the scales it meets. An entry whose scale is far below takes a pass of its own: see fp8_sums.
 *
 * A warp that takes elements of one group for the sum has one scale an entry; half has three more bits of mantissa than bf16, which
 * is what a row of few different values needs. Roped elements are bf16 as they come, and so are their weights.
 *
 * The warps of a block share out the work three times:
 *   scores   S[heads][tile]: warp (kw, dw) of KEY_WARPS x DIM_WARPS takes NT * 8 keys and one or two groups of d, so that its part
 *            of q lives in registers for good. The DIM_WARPS partial sums of a score meet in shared memory.
 *   weights  P[heads][tile]: warp w takes heads w * HPW .. and all keys, so that maximum and sum stay inside a warp.
 *   sum      O[heads][512] += P * KV: warp w takes a group of d, or half of one (the last: the rope), all heads and keys.
 */
#ifndef KBENCH_ATTN_FP8_MMA_CUH
#define KBENCH_ATTN_FP8_MMA_CUH

#include "attn/combine.cuh"
#include "mma_scores.cuh"
#include "mma_sums.cuh"

/* LPH lanes share a head: the base of its weights and the lane's own part of its running sum. The base follows the maximum only
 * where that has left it by more than LAG (base 2), so that hardly any tile after the first has sums to scale. Weights of 2^LAG are
 * as exact in half as 1. */
template <class S> struct fp8_softmax {
    static constexpr float LAG = FP8_LAG;
    float m, sum, sink, unit[S::DIM_WARPS];  /* unit: of the partial scores, with the factor that makes them exponents of 2 */

    static __device__ __forceinline__ int head() {
        return (int)(threadIdx.x / S::LPH);
    }

    /* After a barrier behind q's arrangement. */
    __device__ __forceinline__ void take_units(const fp8_shared<S> &sh) {
#pragma unroll
        for (int dw = 0; dw < S::DIM_WARPS; dw++)
            unit[dw] = sh.q_scale[dw][head()] * SCALE_LOG2;
    }

    __device__ __forceinline__ void clear(const fp8_args &a, int32_t first) {
        m = -INFINITY;
        sum = 0;
        sink = attn_sink_log2(a, min(first + head(), a.heads - 1));
    }

    /* After a barrier: all partial scores in, in a fixed order; weights P of the tile and the factor for the older sums out. */
    __device__ __forceinline__ void tile(fp8_shared<S> &sh, const fp8_places<S> &at, int stage, int buffer) {
        const int lane = (int)(threadIdx.x % S::LPH);
        float s[S::VEC], top = m;
#pragma unroll
        for (int e = 0; e < S::VEC; e++)
            s[e] = sh.bias[stage][lane * S::VEC + e];
#pragma unroll
        for (int dw = 0; dw < S::DIM_WARPS; dw++) {
            float x[S::VEC];
            load_vec(at.take + buffer * S::SCORE_BYTES + dw * S::PLANE_BYTES, x);
#pragma unroll
            for (int e = 0; e < S::VEC; e++)
                s[e] = fmaf(x[e], unit[dw], s[e]);
        }
#pragma unroll
        for (int e = 0; e < S::VEC; e++)
            top = fmaxf(top, s[e]);
#pragma unroll
        for (int step = S::LPH / 2; step > 0; step /= 2)
            top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, step));
        top = top > m + LAG ? top : m;
        const float base = top == -INFINITY ? 0.f : top, old = exp2_fast(m - base);
        m = top;
        sum *= old;
        if (lane == 0)
            sh.old[buffer][head()] = old;
        const bool grew = __any_sync(ALL_LANES, old != 1);
        if (lane_id() == 0)
            sh.grew[buffer][warp_id()] = grew;
        const uint32_t put = at.put + buffer * 2 * S::P_BYTES;
#pragma unroll
        for (int e = 0; e < S::VEC; e++) {
            s[e] = exp2_fast(s[e] - base);
            sum += s[e];
        }
        if constexpr (S::VEC == 4) {
            store8_shared(put, __uint_as_float(half_pack(s[0], s[1])), __uint_as_float(half_pack(s[2], s[3])));
            store8_shared(put + S::P_BYTES, __uint_as_float(bf16_pack(s[0], s[1])), __uint_as_float(bf16_pack(s[2], s[3])));
        } else {
            store4_shared(put, half_pack(s[0], s[1]));
            store4_shared(put + S::P_BYTES, bf16_pack(s[0], s[1]));
        }
    }

    /* The same of tile k of an item. */
    __device__ __forceinline__ void step(fp8_shared<S> &sh, const fp8_places<S> &at, int stage, int32_t k) {
        if (k == 0)
            take_units(sh);
        tile(sh, at, stage, k & 1);
    }

    /* The head's whole sum, in all its lanes. */
    __device__ __forceinline__ float total() const {
        float all = sum;
#pragma unroll
        for (int step = S::LPH / 2; step > 0; step /= 2)
            all += __shfl_xor_sync(ALL_LANES, all, step);
        return all;
    }

    /* The factor that ends the sums to sh.factor, and the lse. */
    __device__ __forceinline__ void finish(const fp8_args &a, fp8_shared<S> &sh, int64_t b, int32_t first) const {
        const float all = total();
        if (threadIdx.x % S::LPH == 0) {
            sh.factor[head()] = attn_finish(m, all, sink);
            if (first + head() < a.heads)
                *attn_lse(a, b, first + head()) = all > 0 ? m * LN2 + logf(all) : -INFINITY;
        }
    }

    /* The same for a part: nothing is divided yet. */
    __device__ __forceinline__ void leave(const fp8_args &a, const partials &parts, int64_t b, int32_t first, int32_t split) const {
        const float all = total();
        if (threadIdx.x % S::LPH == 0 && first + head() < a.heads)
            *partial_ml(parts, b * a.heads + first + head(), split) = make_float2(m, all);
    }

private:
    static __device__ __forceinline__ void load_vec(uint32_t from, float (&ret)[S::VEC]) {
        if constexpr (S::VEC == 4) {
            const uint4 v = load16_shared(from);
            ret[0] = __uint_as_float(v.x), ret[1] = __uint_as_float(v.y);
            ret[2] = __uint_as_float(v.z), ret[3] = __uint_as_float(v.w);
        } else {
            const uint2 v = load8_shared(from);
            ret[0] = __uint_as_float(v.x), ret[1] = __uint_as_float(v.y);
        }
    }
};

/* A named barrier among the warps that compute: scores of a tile and weights of the one before are there. */
template <class S> static __device__ __forceinline__ void fp8_meet(void) {
    asm volatile("bar.sync 1, %0;" ::"n"(S::COMPUTE) : "memory");
}

/* What the warps that compute do: all items of a block. SPLIT: results go to `parts`, else to out and lse.
 *
 * One barrier a tile: between two of them the weights of a tile, the products of the tile before it and the scores of the one after
 * it are made. Half of the warps on each quarter of an SM begin with the weights and half end with them, so that the tensor cores
 * are busy meanwhile. The weights stand in the code twice and the barrier once: warps that meet from two places are divergence to a
 * checker. */
template <class S, bool SPLIT>
static __device__ __forceinline__ void fp8_compute(const fp8_args &a, const fp8_work &work, const partials &parts,
                                                   fp8_shared<S> &sh) {
    const bool early = warp_id() < S::WARPS / 2;
    const fp8_places<S> at(sh);
    fp8_query<S> q;
    fp8_softmax<S> softmax;
    fp8_sums<S> sums;
    fp8_position<S> front = {0, 0}, middle = front, back = front;  /* tiles k + 1, k and k - 1 of the loop below */
    q.fetch(a, fp8_request_of(work, (int32_t)blockIdx.x), (int32_t)blockIdx.x % work.groups * S::HEADS);

#pragma unroll 1
    for (int32_t item = (int32_t)blockIdx.x; item < work.items; item += (int32_t)gridDim.x) {
        const int32_t b = fp8_request_of(work, item), first = item % work.groups * S::HEADS;
        const fp8_range range = fp8_range_of<S>(work, item, attn_length_of(a, b).n);
        const int32_t tiles = max(range.hi - range.lo + S::TILE - 1, 0) / S::TILE;
        softmax.clear(a, first);
        sums.clear();
        q.arrange(sh);
        /* k: the tile whose scores are there after the barrier. The first round only makes scores, the last only products. */
#pragma unroll 1
        for (int32_t k = -1; k <= tiles; k++) {
            const bool weighs = (uint32_t)k < (uint32_t)tiles;
            fp8_meet<S>();
            if (__any_sync(ALL_LANES, early && weighs))  /* a vote, so that the branch is known to be the warp's */
                softmax.step(sh, at, middle.stage, k);
            if (k > 0) {
                sums.tile(sh, at, back.stage, (k - 1) & 1);
                __syncwarp();
                if (lane_id() == 0)
                    barrier_arrive(shared_address(&sh.empty[back.stage]));
            }
            back = middle;
            middle = front;
            if (k + 1 < tiles) {
                barrier_wait(shared_address(&sh.full[front.stage]), front.parity);
                fp8_scores<S>(sh, q, at, front.stage, (k + 1) & 1);
                front = front.next();
            } else if (k + 1 == tiles && item + (int32_t)gridDim.x < work.items) {
                const int32_t next = item + (int32_t)gridDim.x;  /* the last scores are made: q of the next item, behind the sums */
                q.fetch(a, fp8_request_of(work, next), next % work.groups * S::HEADS);
            }
            if (__any_sync(ALL_LANES, !early && weighs))
                softmax.step(sh, at, back.stage, k);
        }
        if constexpr (SPLIT) {
            const int32_t split = item / work.groups % work.splits;
            softmax.leave(a, parts, b, first, split);
            sums.leave(a, parts, b, first, split);
        } else {
            softmax.finish(a, sh, b, first);
            fp8_meet<S>();
            sums.write_bf16(a, b, first, sh.factor);
        }
    }
}

/* 32 heads need more registers than 12 warps share out evenly: there has to be a way to move them. Without it the body is empty. */
template <class S> static constexpr bool fp8_fits_registers = S::MT == 1 || MOVES_REGISTERS;

/* Body of the kernels. */
template <class S, bool SPLIT>
static __device__ __forceinline__ void fp8_run(const fp8_args &a, const fp8_work &work, const partials &parts, fp8_shared<S> &sh) {
    if constexpr (fp8_fits_registers<S>) {
        fp8_init(sh);
        if (warp_id() >= S::WARPS) {
            registers_give<S::FOR_COPIES>();
            fp8_producer<S> producer(a, work);
            producer.run(sh);
        } else {
            registers_take<S::FOR_ARITHMETIC>();
            fp8_compute<S, SPLIT>(a, work, parts, sh);
        }
    }
}

/* Host: makes room for a kernel in shared memory. ret_there: whether there is code in it for this device. */
static inline int fp8_open(const void *kernel, int64_t shared, bool *ret_there) {
    cudaFuncAttributes code;
    int error = cudaFuncGetAttributes(&code, kernel);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    *ret_there = error == cudaSuccess && code.numRegs > 64;
    return error;
}

#endif

#include "cuda_kernels.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

static __global__ void empty_kernel() {}

static __global__ void spin_kernel(uint64_t ns)
{
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        __nanosleep(200);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < ns);
}

static __global__ void spin_cycles_kernel(long long cycles, uint64_t *ret)
{
    uint64_t begin_ns = 0, end_ns;
    long long begin = clock64(), now;
    if (ret) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin_ns));
    do now = clock64();
    while (now - begin < cycles);
    if (!ret) return;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end_ns));
    ret[0] = (uint64_t)(now - begin);
    ret[1] = end_ns - begin_ns;
}

static __device__ uint64_t mix(uint64_t word, uint64_t i)
{
    uint64_t x = (word ^ (i * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;
    return x ^ (x >> 32);
}

static __global__ void hash_kernel(const uint64_t *src, size_t words, unsigned long long *sum)
{
    uint64_t part = 0;
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride) part += mix(src[i], i);
    for (int lane = 16; lane; lane /= 2) part += __shfl_xor_sync(~0u, part, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, part);
}

static __global__ void scatter_kernel(uint32_t *dst, int64_t stride_words, int64_t row_words, const int64_t *row,
                                      const uint32_t *packed)
{
    int64_t to = row[blockIdx.x] * stride_words, from = (int64_t)blockIdx.x * row_words;
    for (int64_t i = threadIdx.x; i < row_words; i += blockDim.x) dst[to + i] = packed[from + i];
}

/* Each thread keeps eight 16-byte loads in flight; the grid walks the block in order, so that pages open once. */
static __global__ __launch_bounds__(512) void read_kernel(const uint4 *src, size_t n, uint32_t *out)
{
    enum { DEEP = 8 };
    uint32_t sum = 0;
    size_t step = (size_t)gridDim.x * blockDim.x * DEEP;
    for (size_t at = (size_t)blockIdx.x * blockDim.x * DEEP + threadIdx.x; at < n; at += step) {
        uint4 v[DEEP];
#pragma unroll
        for (int j = 0; j < DEEP; j++) {
            size_t i = at + (size_t)j * blockDim.x;
            v[j] = i < n ? __ldcs(src + i) : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int j = 0; j < DEEP; j++) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
    if (sum == 0x12345679u) *out = sum;   /* unlikely, and unknown to the compiler */
}

/* The centred sum of the four bytes of a hash, scaled to a deviation of about one. */
static __global__ void random_kernel(__nv_bfloat16 *dst, size_t n)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        uint32_t x = (uint32_t)(mix(i, 7) >> 16);
        dst[i] = __float2bfloat16((float)((int)((x & 255) + (x >> 8 & 255) + (x >> 16 & 255) + (x >> 24)) - 510) * (1.0f / 147.8f));
    }
}

static __global__ void latency_kernel(const int32_t *slot, const uint4 *rows, uint4 *out)
{
    int32_t row = *slot;
    out[threadIdx.x] = rows[(int64_t)row * 32 + threadIdx.x];
}

static __global__ void poison_kernel(int words)
{
    extern __shared__ uint32_t shared[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) shared[i] = 0xffffffffu;
    __syncthreads();
    if (shared[(threadIdx.x * 7) % words] == 1) __trap();   /* keeps the stores */
}

int cuda_empty(cudaStream_t stream)
{
    empty_kernel<<<1, 32, 0, stream>>>();
    return cudaGetLastError();
}

int cuda_spin(uint64_t ns, cudaStream_t stream)
{
    spin_kernel<<<1, 1, 0, stream>>>(ns);
    return cudaGetLastError();
}

int cuda_spin_cycles(uint64_t cycles, uint64_t *ret, cudaStream_t stream)
{
    spin_cycles_kernel<<<1, 1, 0, stream>>>((long long)cycles, ret);
    return cudaGetLastError();
}

int cuda_hash(const void *src, size_t words, uint64_t *sum, cudaStream_t stream)
{
    size_t blocks = (words + 1023) / 1024;
    hash_kernel<<<blocks < 2048 ? (unsigned)(blocks ? blocks : 1) : 2048, 256, 0, stream>>>(
        (const uint64_t *)src, words, (unsigned long long *)sum);
    return cudaGetLastError();
}

int cuda_scatter(void *dst, int64_t stride, int64_t row_bytes, const int64_t *row, int64_t n, const void *packed,
    cudaStream_t stream)
{
    if (!n) return cudaSuccess;
    scatter_kernel<<<(unsigned)n, 128, 0, stream>>>((uint32_t *)dst, stride / 4, row_bytes / 4, row, (const uint32_t *)packed);
    return cudaGetLastError();
}

int cuda_read(const void *src, size_t bytes, int blocks, uint32_t *out, cudaStream_t stream)
{
    read_kernel<<<blocks, 512, 0, stream>>>((const uint4 *)src, bytes / 16, out);
    return cudaGetLastError();
}

int cuda_random_bf16(void *dst, size_t n, cudaStream_t stream)
{
    random_kernel<<<1024, 256, 0, stream>>>((__nv_bfloat16 *)dst, n);
    return cudaGetLastError();
}

int cuda_latency(const int32_t *slot, const void *rows, void *out, cudaStream_t stream)
{
    latency_kernel<<<1, 32, 0, stream>>>(slot, (const uint4 *)rows, (uint4 *)out);
    return cudaGetLastError();
}

int cuda_poison_shared(int sm_count, int smem_bytes, cudaStream_t stream)
{
    cudaError_t error = cudaFuncSetAttribute(poison_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem_bytes);
    if (error) return error;
    poison_kernel<<<sm_count * 2, 512, smem_bytes, stream>>>(smem_bytes / 4);
    return cudaGetLastError();
}

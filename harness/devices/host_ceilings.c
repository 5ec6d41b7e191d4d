#include "host_ceilings.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#endif

#include "base.h"

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))   /* chosen before ASan runs, hence not there */
#else
#define CLONES
#endif

enum { MATRIX_VECTOR, MATRIX_AVX512_BF16, MATRIX_AMX };

static void read_name(char *ret, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    text(ret, size, "CPU");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon) continue;
        colon[strcspn(colon, "\n")] = 0;
        text(ret, size, "%s", colon + 2);
        break;
    }
    if (file) fclose(file);
}

static int64_t last_level_cache(void)
{
    int64_t best = 0;
    for (int i = 0; i < 8; i++) {
        char path[96];
        long long value = 0;
        char unit = 0;
        text(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fscanf(file, "%lld%c", &value, &unit) >= 1) value *= unit == 'K' ? 1024 : unit == 'M' ? 1 << 20 : 1;
        fclose(file);
        if (value > best) best = value;
    }
    return best ? best : 32 << 20;
}

/* The best matrix unit that this process may use. */
static int matrix_unit(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1) && !syscall(SYS_arch_prctl, 0x1023, 18))
        return MATRIX_AMX;
    if (__builtin_cpu_supports("avx512bf16")) return MATRIX_AVX512_BF16;
#endif
    return MATRIX_VECTOR;
}

void host_describe(struct machine *ret)
{
    static const char *const unit[] = {"vector fp32", "avx512_bf16", "amx_bf16"};
    char model[64];
    *ret = (struct machine){.engine = HOST, .sm_clock_MHz = -1, .memory_clock_MHz = -1, .power_W = -1, .temperature_C = -1};
    read_name(model, sizeof model);
    int threads = omp_get_max_threads();
    text(ret->name, sizeof ret->name, "%s, %d threads", model, threads);
    text(ret->uuid, sizeof ret->uuid, "host");
    text(ret->toolkit, sizeof ret->toolkit, "gcc " __VERSION__);
    text(ret->features, sizeof ret->features, "matrix unit %s, LLC %lld MB", unit[matrix_unit()],
        (long long)(last_level_cache() >> 20));
    ret->facts = (struct device){.sm_count = threads, .l2_bytes = last_level_cache(),
                                 .memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)};
}

CLONES static float sum_floats(const float *x, int64_t n)
{
    float part[64] = {0};
    for (int64_t i = 0; i + 64 <= n; i += 64)
        for (int j = 0; j < 64; j++) part[j] += x[i + j];
    for (int j = 1; j < 64; j++) part[0] += part[j];
    return part[0];
}

/* Read-only stream and copy over a block that no cache holds; best of eight passes, since other work only ever takes away. */
static void measure_memory(struct ceilings *ret, float *block, int64_t n)
{
    double read_s = INFINITY, copy_s = INFINITY;
    int64_t half = n / 2, chunk = 1 << 18;
    volatile float sink = 0;
    for (int pass = 0; pass < 8; pass++) {
        double begin = now_s();
        float sum = 0;
#pragma omp parallel for reduction(+ : sum)
        for (int64_t at = 0; at < n; at += chunk) sum += sum_floats(block + at, n - at < chunk ? n - at : chunk);
        sink = sum;
        double middle = now_s();
#pragma omp parallel for
        for (int64_t at = 0; at < half; at += chunk)
            memcpy(block + at, block + half + at, (size_t)(half - at < chunk ? half - at : chunk) * sizeof *block);
        double end = now_s();
        read_s = fmin(read_s, middle - begin);
        copy_s = fmin(copy_s, end - middle);
    }
    (void)sink;
    ret->read_GBps = (double)n * sizeof *block / read_s * 1e-9;
    ret->copy_GBps = (double)half * 2 * sizeof *block / copy_s * 1e-9;
}

enum { STEPS = 200000 };

typedef float lanes __attribute__((vector_size(64), aligned(64)));

/* Independent chains of multiply-adds, all in registers: flop done by `steps` rounds. */
CLONES static double vector_flop(int64_t steps, float *out)
{
    enum { CHAINS = 8 };
    lanes chain[CHAINS], factor = {0}, summand = {0};
    factor += 0.999f;
    summand += 0.001f;
#pragma GCC unroll 8
    for (int i = 0; i < CHAINS; i++) chain[i] = summand * (float)(i + 1);
    for (int64_t s = 0; s < steps; s++) {
#pragma GCC unroll 8
        for (int i = 0; i < CHAINS; i++) chain[i] = chain[i] * factor + summand;
    }
#pragma GCC unroll 8
    for (int i = 0; i < CHAINS; i++) *out += chain[i][0];
    return (double)steps * CHAINS * 16 * 2;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bf16"))) static double bf16_flop(int64_t steps, float *out)
{
    __m512 sum[16];
    __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f803f80), b = (__m512bh)_mm512_set1_epi32(0x38003800);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) sum[i] = _mm512_setzero_ps();
    for (int64_t s = 0; s < steps; s++) {
#pragma GCC unroll 16   /* in registers: a loop over an array would wait for memory */
        for (int i = 0; i < 16; i++) sum[i] = _mm512_dpbf16_ps(sum[i], a, b);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) *out += _mm512_reduce_add_ps(sum[i]);
    return (double)steps * 16 * 64;
}

__attribute__((target("amx-tile,amx-bf16"))) static double amx_flop(int64_t steps, float *out)
{
    uint8_t config[64] __attribute__((aligned(64))) = {1};
    for (int t = 0; t < 8; t++) {
        config[16 + 2 * t] = 64;
        config[48 + t] = 16;
    }
    static const uint16_t zeros[512] __attribute__((aligned(64)));
    float back[256] __attribute__((aligned(64)));
    __asm__ volatile("" : : "r"(config) : "memory");   /* the intrinsic does not say that it reads all 64 bytes */
    _tile_loadconfig(config);
    _tile_loadd(4, zeros, 64);
    _tile_loadd(5, zeros, 64);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t s = 0; s < steps; s++) {
        _tile_dpbf16ps(0, 4, 5);
        _tile_dpbf16ps(1, 4, 5);
        _tile_dpbf16ps(2, 4, 5);
        _tile_dpbf16ps(3, 4, 5);
    }
    _tile_stored(0, back, 64);
    _tile_release();
    *out += back[0];
    return (double)steps * 4 * 16 * 16 * 32 * 2;
}
#endif

/* One burst of the matrix unit on one thread: flop. */
static double matrix_burst(int unit, float *sink)
{
#if defined(__x86_64__)
    if (unit == MATRIX_AMX) return amx_flop(STEPS, sink);
    if (unit == MATRIX_AVX512_BF16) return bf16_flop(STEPS, sink);
#endif
    (void)unit;
    return vector_flop(STEPS, sink);
}

/* All threads at once, each with the best of many short bursts: a ceiling must not know of the other work on the machine. */
static void measure_matrix(struct ceilings *ret)
{
    int unit = matrix_unit();
    double sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        float sink = 0;
        double best = 0;
        for (int burst = 0; burst < 40; burst++) {
            double begin = now_s(), flop = matrix_burst(unit, &sink);
            best = fmax(best, flop / (now_s() - begin));
        }
        __asm__ volatile("" : : "g"(&sink) : "memory");
        sum += best;
    }
    ret->matrix_GFLOPs = sum * 1e-9;
}

/* A chain of dependent loads over the block: what one access costs that no cache helps. */
static void measure_latency(struct ceilings *ret, uint32_t *block, int64_t n)
{
    enum { HOPS = 20000 };
    uint64_t at = 1;
    double begin = now_s();
    for (int i = 0; i < HOPS; i++)
        at = (at * 6364136223846793005ull + 1442695040888963407ull + block[(at >> 20) % (uint64_t)n]) | 1;
    double hop_ns = (now_s() - begin) / HOPS * 1e9;
    __asm__ volatile("" : : "r"(at));
    ret->latency_ns = 2 * hop_ns;   /* an index, then the row that it names */
}

static void measure_floor(struct ceilings *ret)
{
    enum { LAUNCHES = 2000 };
    int sink = 0;
    double begin = now_s();
    for (int i = 0; i < LAUNCHES; i++) {
#pragma omp parallel reduction(+ : sink)
        sink += 1;
    }
    ret->floor_ns = (now_s() - begin) / LAUNCHES * 1e9;
    struct timespec resolution;
    clock_getres(CLOCK_MONOTONIC, &resolution);
    ret->event_ns = (double)resolution.tv_nsec;
}

int host_ceilings(struct dev *dev, struct ceilings *ret)
{
    int64_t bytes = 4 * dev->machine.facts.l2_bytes;
    bytes = bytes < (256 << 20) ? 256 << 20 : bytes > (1ll << 30) ? 1ll << 30 : bytes;
    void *block;
    TRY(dev->ops->alloc(dev, (size_t)bytes, &block));
    dev->ops->set(dev, block, 1, (size_t)bytes);
    measure_memory(ret, block, bytes / (int64_t)sizeof(float));
    measure_latency(ret, block, bytes / (int64_t)sizeof(uint32_t));
    dev->ops->free(dev, block);
    measure_matrix(ret);
    measure_floor(ret);
    return 0;
}

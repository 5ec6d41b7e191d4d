/* The host kernels of attention, on every path that this processor has, against the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "attn_fp8/host_rows.h"
#include "fp8_pages.h"
#include "ways.h"

static struct problem problem(int64_t batch, int64_t heads, int64_t ctx, int64_t window, int64_t topk, int64_t ratio,
                              int64_t ragged)
{
    return (struct problem){&op_attn, {batch, heads, ctx, window, topk, ratio, ragged}, 11};
}

/* The same with caches in fp8. */
static struct problem in_fp8(struct problem p)
{
    p.op = &op_attn_fp8;
    p.dim[ATTN_FP8_WINDOW_PAGE] = 256;
    p.dim[ATTN_FP8_TOPK_PAGE] = 64;
    return p;
}

static void check_problem(struct problem p, uint32_t set, int64_t pad) { check_both(&p, set, pad); }

static void heads_from_8_to_128(void **state)
{
    (void)state;
    const int64_t heads[] = {8, 9, 16, 24, 64, 72, 128};
    for (int i = 0; i < 7; i++) check_problem(problem(2, heads[i], 4000, 128, 200, 4, 0), (uint32_t)i, 48);
}

static void lists_of_any_length(void **state)
{
    (void)state;
    const int64_t lists[][2] = {
        {128, 512}, {128, 37}, {0, 100}, {100, 0}, {1, 0}, {0, 1}, {1, 1}, {3, 14}, {65, 513}, {16, 112}, {16, 113}, {0, 1000},
    };
    for (int i = 0; i < 12; i++) check_problem(problem(2, 16, 6000, lists[i][0], lists[i][1], 4, 0), (uint32_t)i, 0);
}

static void contexts_of_any_length(void **state)
{
    (void)state;
    const int64_t ctx[] = {0, 1, 3, 4, 127, 128, 129, 2047, 2048, 2052};
    for (int i = 0; i < 10; i++) check_problem(problem(2, 16, ctx[i], 128, 512, 4, 0), (uint32_t)i, 16);
    check_problem(problem(2, 16, 9000, 128, 512, 128, 0), 2, 16);
}

/* With holes, garbage past the lengths, an empty request, one of a single token, and padded rows. */
static void ragged_batches(void **state)
{
    (void)state;
    for (uint32_t set = 0; set < 4; set++) check_problem(problem(9, 16, 3000, 128, 200, 4, 1), set, 32);
    check_problem(problem(3, 64, 3000, 128, 512, 4, 1), 0, 112);
    check_problem(problem(40, 8, 700, 20, 30, 4, 1), 0, 16);
}

/* One dominating entry, and a sink that leaves nothing: factors run over the whole range of float. */
static void extreme_logits(void **state)
{
    (void)state;
    const float factor[] = {0, 1e-3f, 8, 200};
    for (int f = 0; f < 8; f++) {
        struct problem p = problem(2, 16, 3000, 64, 200, 4, 0);
        if (f % 2) p = in_fp8(p);
        struct bound b = bind_problem(&p, 0, 0);
        uint16_t    *q = b.dense[ATTN_Q];
        for (int i = 0; i < 2 * 16 * ATTN_D; i++) q[i] = bf16_from_f32(f32_from_bf16(q[i]) * factor[f / 2]);
        const float sinks[16] = {-INFINITY, 0, 100, -100, 50, 1e4f, -1e4f, 20};
        memcpy(b.dense[ATTN_SINK], sinks, sizeof sinks);
        char what[40];
        snprintf(what, sizeof what, "queries times %g", (double)factor[f / 2]);
        check_ways(&b, what);
        bind_free(&b);
    }
}

static void nothing_but_holes(void **state)
{
    (void)state;
    for (int fp8 = 0; fp8 < 2; fp8++) {
        struct problem p = problem(3, 16, 3000, 64, 200, 4, 0);
        if (fp8) p = in_fp8(p);
        struct bound b = bind_problem(&p, 0, 0);
        memset(b.dense[ATTN_WINDOW_SLOT], 0xff, 3 * 64 * 4);
        memset((int32_t *)b.dense[ATTN_TOPK_SLOT] + 200, 0xff, 200 * 4);
        check_ways(&b, "holes");
        for (int w = 0; w < WAYS; w++) {
            if (!way_is_for(&ways[w], p.op) || !way_runs(&ways[w], &b, 4)) continue;
            const float *lse = (float *)((char *)b.arg[ATTN_LSE].p + b.arg[ATTN_LSE].stride);
            for (int i = 0; i < 16; i++) assert_true(lse[i] == -INFINITY);
        }
        bind_free(&b);
    }
}

/* The largest shares of bf16 rounding: few entries that weigh about the same, in many rows. */
static void few_entries_stay_in_tolerance(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 12; n += n < 4 ? 1 : 4) check_problem(problem(16, 64, 4 * n, 0, n, 4, 0), (uint32_t)n, 0);
}

static void repeats_bit_for_bit(void **state)
{
    (void)state;
    for (int fp8 = 0; fp8 < 2; fp8++) {
        struct problem p = problem(3, 64, 3000, 128, 512, 4, 1);
        if (fp8) p = in_fp8(p);
        struct bound a = bind_problem(&p, 2, 0), b = bind_problem(&p, 2, 0);
        for (int i = 0; i < WAYS; i++)
            for (int repeat = 0; repeat < 3 && way_is_for(&ways[i], p.op); repeat++) {
                if (!way_runs(&ways[i], &a, 16) || !way_runs(&ways[i], &b, 16)) break;
                assert_memory_equal(a.arg[ATTN_OUT].p, b.arg[ATTN_OUT].p, (size_t)(3 * 64 * ATTN_D * 2));
                assert_memory_equal(a.arg[ATTN_LSE].p, b.arg[ATTN_LSE].p, 3 * 64 * 4);
            }
        bind_free(&a);
        bind_free(&b);
    }
}

/* Inputs are left alone, holes and unnamed rows included. */
static void inputs_stay(void **state)
{
    (void)state;
    for (int fp8 = 0; fp8 < 2; fp8++) {
        struct problem p = problem(3, 16, 3000, 128, 200, 4, 1);
        if (fp8) p = in_fp8(p);
        struct bound a = bind_problem(&p, 2, 16), b = bind_problem(&p, 2, 16);
        for (int i = 0; i < WAYS; i++)
            if (way_is_for(&ways[i], p.op)) way_runs(&ways[i], &b, 4);
        for (int t = 0; t <= ATTN_SINK; t++)
            assert_memory_equal(a.arg[t].p, b.arg[t].p, (size_t)(p.op->tensor[t].rows(&p) * a.arg[t].stride));
        bind_free(&a);
        bind_free(&b);
    }
}

/* A path is refused exactly where the processor lacks it, and the portable ones never are. */
static void paths_are_the_processors(void **state)
{
    (void)state;
    for (int fp8 = 0; fp8 < 2; fp8++) {
        struct problem p = problem(1, 8, 100, 16, 16, 4, 0);
        if (fp8) p = in_fp8(p);
        struct bound b = bind_problem(&p, 0, 0);
        for (int i = 0; i < WAYS; i++) {
            if (!way_is_for(&ways[i], p.op)) continue;
            bool runs = way_runs(&ways[i], &b, 1);
            print_message("%s: %s\n", ways[i].name, runs ? "runs here" : "not on this processor");
            if (ways[i].tune[0] <= PORTABLE || ways[i].tune[0] == ANY) assert_true(runs);
#ifdef __x86_64__
            if (ways[i].tune[0] == AVX512_BF16) assert_int_equal(runs, !!__builtin_cpu_supports("avx512bf16"));
#endif
        }
        bind_free(&b);
    }
}

/* Every code under every scale: bf16 nearest to the value, NaN for NaN; exact for all scales that the header promises it for. */
static void conversion_to_bf16(void **state)
{
    (void)state;
    uint8_t  data[ATTN_FP8_DATA], scales[8];
    uint16_t got[ATTN_D];
    for (int scale = 0; scale < 256; scale++)
        for (int first = 0; first < 256; first += 64) {
            memset(scales, 127, 7);
            scales[scale % 7] = (uint8_t)scale;
            for (int d = 0; d < ATTN_FP8_DATA; d++) data[d] = (uint8_t)(d % 64 + first);
            fp8_convert(data, scales, got);
            for (int d = 0; d < 448; d++) {
                double want = f64_from_e4m3(data[d]) * f64_from_ue8m0(scales[d / 64]), x = dtype_load(BF16, got, d);
                if (isnan(want))
                    assert_true(isnan(x));
                else
                    assert_int_equal(got[d], bf16_from_f64(want));
                if (scales[d / 64] >= 10 && scales[d / 64] <= 246) assert_true(isnan(want) || x == want);
            }
            assert_memory_equal(got + 448, data + 448, 128);
        }
}

#if defined __x86_64__ && !defined __SANITIZE_ADDRESS__
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default")))
static float plain_dot(const float *q, const uint16_t *row)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < ATTN_D; i++) sum += q[i] * f32_from_bf16(row[i]);
    return sum;
}

/* What any per-head kernel does at the least: a dot product with every row of every head, in the order of the lists. */
static float plain_loop(const struct bound *b)
{
    float sum = 0, q[ATTN_D];
    for (int i = 0; i < ATTN_D; i++) q[i] = (float)i;
    for (int64_t h = 0; h < b->p.dim[ATTN_HEADS]; h++)
        for (int list = 0; list < 2; list++)
            for (int32_t i = 0; i < ((int32_t *)b->dense[ATTN_LENGTH])[list]; i++)
                sum += plain_dot(q, (uint16_t *)b->arg[ATTN_WINDOW_KV + list].p +
                                        (int64_t)((int32_t *)b->dense[ATTN_WINDOW_SLOT + list])[i] * ATTN_D);
    return sum;
}

/* The baseline is decently written: at least half of the plain loop's bytes a second, from the same level of cache. */
static void perhead_keeps_up_with_a_plain_loop(void **state)
{
    (void)state;
    struct problem p = problem(1, 64, 8192, 128, 512, 4, 0);
    struct bound   b = bind_problem(&p, 0, 0);
    struct device  device = device_of(1);
    double plain = INFINITY, perhead = INFINITY, bytes = 64 * 640 * 1024.0;
    volatile float sink = 0;
    for (int i = 0; i < 15; i++) {
        double begin = seconds();
        sink = sink + plain_loop(&b);
        double between = seconds();
        assert_int_equal(bind_launch(&b, &kernel_attn_host_perhead, &device, ways[0].tune), 0);
        double end = seconds();
        plain = between - begin < plain ? between - begin : plain;
        perhead = end - between < perhead ? end - between : perhead;
    }
    print_message("KV bytes re-read: host_perhead %.1f GB/s, plain loop %.1f GB/s\n", bytes / perhead * 1e-9, bytes / plain * 1e-9);
    assert_true(perhead <= 2 * plain);
    bind_free(&b);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_from_8_to_128), cmocka_unit_test(lists_of_any_length), cmocka_unit_test(contexts_of_any_length),
        cmocka_unit_test(ragged_batches), cmocka_unit_test(extreme_logits), cmocka_unit_test(nothing_but_holes),
        cmocka_unit_test(few_entries_stay_in_tolerance), cmocka_unit_test(repeats_bit_for_bit), cmocka_unit_test(inputs_stay),
        cmocka_unit_test(paths_are_the_processors), cmocka_unit_test(conversion_to_bf16),
#if defined __x86_64__ && !defined __SANITIZE_ADDRESS__
        cmocka_unit_test(perhead_keeps_up_with_a_plain_loop),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* dtype.h: all values of each format there and back, and every rounding decided by an independent rule; rng.h: permutations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "dtype.h"
#include "rng.h"

static double bf16_value(unsigned x) { return f32_from_bf16((uint16_t)x); }
static double f16_value(unsigned x) { return f64_from_f16((uint16_t)x); }
static double e4m3_value(unsigned x) { return f64_from_e4m3((uint8_t)x); }
static double e2m1_value(unsigned x) { return f64_from_e2m1((uint8_t)x); }
static unsigned bf16_bits(double x) { return bf16_from_f64(x); }
static unsigned f16_bits(double x) { return f16_from_f64(x); }
static unsigned e4m3_bits(double x) { return e4m3_from_f64(x); }
static unsigned e2m1_bits(double x) { return e2m1_from_f64(x); }
static unsigned bf16_bits_of_float(double x) { return bf16_from_f32((float)x); }

/* Positive patterns 0..last are finite and ascending; `sign` is the sign bit. Between neighbours the nearer one is taken, and the
 * even one from the middle; a hair beside the middle goes to its side. */
static void check_format(double (*value)(unsigned), unsigned (*bits)(double), unsigned last, unsigned sign)
{
    for (unsigned x = 0; x <= last; x++) {
        double here = value(x), next = value(x + 1);
        assert_int_equal(bits(here), x);
        assert_int_equal(bits(-here), x | sign);
        assert_true(value(x | sign) == -here);
        if (x == last) break;
        assert_true(next > here);
        double middle = here + (next - here) / 2, hair = (next - here) / 64;
        assert_int_equal(bits(middle), x % 2 ? x + 1 : x);
        assert_int_equal(bits(middle - hair), x);
        assert_int_equal(bits(middle + hair), x + 1);
        assert_int_equal(bits(-middle), (x % 2 ? x + 1 : x) | sign);
    }
}

static void formats_round_trip(void **state)
{
    (void)state;
    check_format(bf16_value, bf16_bits, 0x7f7f, 0x8000);
    check_format(bf16_value, bf16_bits_of_float, 0x7f7f, 0x8000);
    check_format(f16_value, f16_bits, 0x7bff, 0x8000);
    check_format(e4m3_value, e4m3_bits, 0x7e, 0x80);
    check_format(e2m1_value, e2m1_bits, 0x7, 0x8);
}

static void landmarks(void **state)
{
    (void)state;
    assert_true(f64_from_f16(0x3c00) == 1 && f64_from_f16(0x7bff) == 65504 && f64_from_f16(0x0001) == 0x1p-24);
    assert_true(f64_from_e4m3(0x38) == 1 && f64_from_e4m3(0x7e) == 448 && f64_from_e4m3(0x01) == 0x1p-9);
    const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (int i = 0; i < 8; i++) assert_true(f64_from_e2m1((uint8_t)i) == e2m1[i]);
    assert_true(f32_from_bf16(0x3f80) == 1 && f32_from_bf16(0x4049) == 3.140625f);
}

static void past_the_largest(void **state)
{
    (void)state;
    assert_int_equal(bf16_from_f64(INFINITY), 0x7f80);
    assert_int_equal(bf16_from_f32(-INFINITY), 0xff80);
    assert_int_equal(bf16_from_f64(1e300), 0x7f80);
    assert_int_equal(bf16_from_f32(0x1.ffp127f), 0x7f80);
    assert_int_equal(f16_from_f64(65519.99), 0x7bff);
    assert_int_equal(f16_from_f64(65520), 0x7c00);
    assert_int_equal(e4m3_from_f64(1e9), 0x7e);
    assert_int_equal(e4m3_from_f64(-INFINITY), 0xfe);
    assert_int_equal(e2m1_from_f64(-100), 0xf);
    for (unsigned x = 0x7f81; x <= 0x7fff; x++) assert_true(isnan(f32_from_bf16(bf16_from_f32(f32_from_bf16((uint16_t)x)))));
    assert_true(isnan(f32_from_bf16(bf16_from_f32(f32_of_bits(0x7f800001)))));   /* NaN only in the bits that are dropped */
    assert_true(isnan(f64_from_f16(f16_from_f64(NAN))) && isnan(f64_from_e4m3(e4m3_from_f64(NAN))));
    assert_true(isinf(f64_from_f16(0xfc00)) && isnan(f64_from_f16(0x7c01)));
    assert_int_equal(e2m1_from_f64(NAN), 0x7);
}

/* Rounding through float first would give the middle, and then the even neighbour. */
static void rounds_once(void **state)
{
    (void)state;
    assert_int_equal(bf16_from_f64(1 + 0x1p-8 + 0x1p-40), 0x3f81);
    assert_int_equal(f16_from_f64(1 + 0x1p-11 + 0x1p-40), 0x3c01);
    assert_int_equal(e4m3_from_f64(1 + 0x1p-4 + 0x1p-40), 0x39);
}

static void scales(void **state)
{
    (void)state;
    for (int x = 0; x < 255; x++) {
        double value = f64_from_ue8m0((uint8_t)x);
        assert_true(value == ldexp(1, x - 127));
        assert_int_equal(ue8m0_ceil(value), x);
        if (x > 0) assert_int_equal(ue8m0_ceil(value * 0.75), x);
        if (x < 254) assert_int_equal(ue8m0_ceil(value * (1 + 0x1p-40)), x + 1);
    }
    assert_int_equal(ue8m0_ceil(0), 0);
    assert_int_equal(ue8m0_ceil(-1), 0);
    assert_int_equal(ue8m0_ceil(INFINITY), 254);
    assert_true(isnan(f64_from_ue8m0(ue8m0_ceil(NAN))));
}

static void loads_by_dtype(void **state)
{
    (void)state;
    const float    f32[] = {1.5f, -2};
    const uint16_t bf16[] = {0, 0x3f80}, f16[] = {0, 0x3c00};
    const uint8_t  e4m3[] = {0, 0x38};
    const int32_t  i32[] = {0, -7};
    const int64_t  i64[] = {0, (int64_t)1 << 40};
    assert_true(dtype_load(F32, f32, 1) == -2 && dtype_load(BF16, bf16, 1) == 1 && dtype_load(F16, f16, 1) == 1);
    assert_true(dtype_load(E4M3, e4m3, 1) == 1 && dtype_load(I32, i32, 1) == -7 && dtype_load(I64, i64, 1) == 0x1p40);
    assert_true(dtype_load(BYTES, e4m3, 1) == 0x38);
    assert_int_equal(dtype_bytes(F32) + dtype_bytes(F16) * 10 + dtype_bytes(E4M3) * 100 + dtype_bytes(I64) * 1000, 8124);
}

static void permutations_are_bijections(void **state)
{
    (void)state;
    const uint32_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 64, 65, 1000, 4096, 4097, 65537};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            uint32_t n = sizes[s], fixed = 0;
            uint64_t key = rng_key(seed, 1, 2, 3);
            uint8_t *seen = calloc(n, 1);
            for (uint32_t i = 0; i < n; i++) {
                uint32_t to = rng_permute(key, n, i);
                assert_true(to < n && !seen[to]);
                seen[to] = 1;
                fixed += to == i;
            }
            free(seen);
            if (n >= 1000) assert_true(fixed < 12);   /* one is expected */
        }
    }
    assert_true(rng_permute(5, INT32_MAX, INT32_MAX - 1) < INT32_MAX);
}

static void normal_values_are_normal(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    double sum = 0, square = 0, beside = 0, last = 0;
    for (uint32_t i = 0; i < N; i++) {
        double x = rng_normal(rng_key(1, 2, 3, i / 512), i % 512);
        sum += x;
        square += x * x;
        beside += x * last;
        last = x;
    }
    assert_true(fabs(sum / N) < 0.005 && fabs(square / N - 1) < 0.005 && fabs(beside / N) < 0.005);
    assert_true(rng_below(7, 1, 1) == 0);
    uint32_t count[5] = {0};
    for (uint32_t i = 0; i < 50000; i++) count[rng_below(9, i, 5)]++;
    for (int i = 0; i < 5; i++) assert_in_range(count[i], 9600, 10400);
}

static void keys_differ(void **state)
{
    (void)state;
    uint64_t key = rng_key(1, 2, 3, 4);
    assert_true(key != rng_key(2, 2, 3, 4) && key != rng_key(1, 3, 3, 4) && key != rng_key(1, 2, 4, 4) && key != rng_key(1, 2, 3,
        5));
    assert_true(key == rng_key(1, 2, 3, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_round_trip), cmocka_unit_test(landmarks), cmocka_unit_test(past_the_largest),
        cmocka_unit_test(rounds_once), cmocka_unit_test(scales), cmocka_unit_test(loads_by_dtype),
        cmocka_unit_test(permutations_are_bijections), cmocka_unit_test(normal_values_are_normal), cmocka_unit_test(keys_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

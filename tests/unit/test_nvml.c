/* What NVML says, on a made-up library: clocks, power, heat, reasons, other processes; and a device that is lost meanwhile. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"
#include "devices/nvml.h"
#include "fake_nvml.h"

static struct fake_nvml *fake;

static struct nvml *opened(void)
{
    *fake = (struct fake_nvml){.uuid = "GPU-1b2c", .sm_MHz = 1980, .memory_MHz = 3201, .power_mW = 149260, .temperature_C = 36,
        .processes = 1};
    struct nvml *nvml = nvml_open("GPU-1b2c");
    assert_non_null(nvml);
    return nvml;
}

static void as_found(void **state)
{
    struct nvml *nvml = opened();
    struct machine machine = {.driver = ""};
    struct weather now;
    (void)state;
    nvml_describe(nvml, &machine);
    assert_true(machine.sm_clock_MHz == 1980 && machine.memory_clock_MHz == 3201 && machine.power_W == 149 &&
                machine.temperature_C == 36);
    assert_string_equal(machine.driver, "580.1");
    nvml_look(nvml, &now);
    assert_true(now.memory_clock_MHz == 3201 && fabs(now.power_W - 149.26) < 1e-9 && now.temperature_C == 36);
    assert_true(now.held == 0 && now.others == 0 && isnan(now.load) && isnan(now.stolen_pct));
    assert_true(nvml_sm_clock_MHz(nvml) == 1980);
    nvml_close(nvml);
    assert_int_equal(fake->open, 0);
}

static void reasons(void **state)
{
    static const struct { unsigned long long reasons; int32_t held; } of[] = {
        {0x1, 0}, {0x2, 0}, {0x10, 0}, {0x100, 0},   /* idle, asked for, in step with others, a display: nobody's fault */
        {0x4, HELD_POWER_CAP}, {0x8, HELD_HARDWARE}, {0x20, HELD_THERMAL}, {0x40, HELD_THERMAL}, {0x80, HELD_BRAKE},
        {0x4 | 0x40 | 0x1, HELD_POWER_CAP | HELD_THERMAL}};
    struct nvml *nvml = opened();
    struct weather now;
    (void)state;
    for (int i = 0; i < COUNT(of); i++) {
        fake->reasons = of[i].reasons;
        nvml_look(nvml, &now);
        assert_int_equal(now.held, of[i].held);
    }
    nvml_close(nvml);
}

/* One of them is ours; none at all is a list that is hidden; more than there is room for are others all the same. */
static void other_processes(void **state)
{
    static const struct { unsigned processes; int32_t others; } of[] = {{0, -1}, {1, 0}, {2, 1}, {64, 63}, {65, 64}, {900, 899}};
    struct nvml *nvml = opened();
    struct weather now;
    (void)state;
    for (int i = 0; i < COUNT(of); i++) {
        fake->processes = of[i].processes;
        nvml_look(nvml, &now);
        assert_int_equal(now.others, of[i].others);
    }
    nvml_close(nvml);
}

static void own_memory(void **state)
{
    static const struct { unsigned processes, ours; unsigned long long memory_B; int64_t own_bytes; } of[] = {
        {1, 1, 7 << 20, 7 << 20}, {1, 0, 7 << 20, 7 << 20},   /* alone: ours, by whatever number */
        {3, 2, 7 << 20, (7 << 20) + 1}, {3, 0, 7 << 20, -1}, {0, 0, 0, -1}, {65, 1, 7 << 20, -1},
        {1, 1, ~0ull, -1}};                                   /* not told */
    struct nvml *nvml = opened();
    (void)state;
    for (int i = 0; i < COUNT(of); i++) {
        fake->processes = of[i].processes, fake->ours = of[i].ours, fake->memory_B = of[i].memory_B;
        assert_int_equal(nvml_own_bytes(nvml), of[i].own_bytes);
    }
    fake->processes = 1, fake->memory_B = 7, fake->lost = 15;
    assert_int_equal(nvml_own_bytes(nvml), -1);
    nvml_close(nvml);
    assert_int_equal(nvml_own_bytes(NULL), -1);
}

/* Lost permission, or the card fell off the bus: unknown, never the last figure or a zero. */
static void lost(void **state)
{
    struct nvml *nvml = opened();
    struct machine machine = {.power_W = 1, .temperature_C = 1, .sm_clock_MHz = 1};
    struct weather now;
    (void)state;
    fake->lost = 15;
    nvml_look(nvml, &now);
    assert_true(isnan(now.memory_clock_MHz) && isnan(now.power_W) && isnan(now.temperature_C) && now.held == -1 &&
                now.others == -1 && isnan(nvml_sm_clock_MHz(nvml)));
    nvml_describe(nvml, &machine);
    assert_true(machine.sm_clock_MHz == -1 && machine.power_W == -1 && machine.temperature_C == -1);
    nvml_close(nvml);
}

/* CUDA says GPU- where NVML says MIG- of an instance; another card's library is no help, and none is no end. */
static void whose_device(void **state)
{
    struct weather now;
    struct machine machine;
    (void)state;
    *fake = (struct fake_nvml){.uuid = "MIG-1b2c", .sm_MHz = 1500};
    struct nvml *nvml = nvml_open("GPU-1b2c");
    assert_non_null(nvml);
    assert_true(nvml_sm_clock_MHz(nvml) == 1500);
    nvml_close(nvml);
    fake->uuid = "GPU-other";
    assert_null(nvml_open("GPU-1b2c"));
    nvml_look(NULL, &now), nvml_describe(NULL, &machine), nvml_close(NULL);
    assert_true(isnan(now.power_W) && now.held == -1 && now.others == -1 && isnan(nvml_sm_clock_MHz(NULL)));
    assert_true(machine.sm_clock_MHz == -1 && !*machine.driver);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_found), cmocka_unit_test(reasons), cmocka_unit_test(other_processes),
        cmocka_unit_test(own_memory), cmocka_unit_test(lost), cmocka_unit_test(whose_device),
    };
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    fake = library ? dlsym(library, "fake_nvml") : NULL;
    if (!fake) return print_error("usage: test_nvml FAKE_NVML.so\n"), 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The host's clock is that of the CPUs that we may run on, whichever file tells it. */
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base.h"
#include "device.h"
#include "devices/host_weather.h"

static void assert_MHz(double is, double wanted)
{
    if (!(fabs(is - wanted) < 1e-6 || (isnan(is) && isnan(wanted)))) fail_msg("%g MHz, not %g", is, wanted);
}

static double cpuinfo(const char *words, const int *cpu, int n)
{
    FILE *file = fmemopen((void *)(size_t)words, strlen(words), "r");
    assert_non_null(file);
    double ret = host_cpuinfo_MHz(file, cpu, n);
    fclose(file);
    return ret;
}

#define CPU(number, MHz) "processor\t: " number "\nmodel name\t: x\ncpu MHz\t\t: " MHz "\ncache size\t: 1024 KB\n\n"

static void clocks_in_cpuinfo(void **state)
{
    (void)state;
    static const struct { const char *words; int cpu[2], n; double MHz; } of[] = {
        {CPU("0", "1000.5") CPU("1", "2000") CPU("2", "3000"), {1, 2}, 2, 2500},
        {CPU("0", "1000.5") CPU("1", "2000") CPU("2", "3000"), {0}, 1, 1000.5},
        {CPU("0", "1000") CPU("10", "2000"), {1, 10}, 2, 2000},
        {CPU("0", "1000"), {7}, 1, NAN},
        {CPU("0", "1000"), {0}, 0, NAN},
        {CPU("0", "nan") CPU("1", "2000"), {0, 1}, 2, 2000},
        {CPU("0", "inf"), {0}, 1, NAN},
        {CPU("0", "0.000"), {0}, 1, NAN},
        {CPU("0", "-5"), {0}, 1, NAN},
        {CPU("0", "") CPU("", "5"), {0}, 1, NAN},
        {CPU("0", "0x10"), {0}, 1, NAN},
        {"cpu MHz : 5\n", {0}, 1, NAN},                              /* of nobody */
        {"processor\t: 0\nBogoMIPS\t: 50.00\n", {0}, 1, NAN},        /* Arm tells none */
        {"processor : 0\ncpu MHz dynamic : 5200\n", {0}, 1, NAN},
        {"processor\t: 0\ncpu MHz\t\t: 2596.146", {0}, 1, 2596.146},   /* without a last newline */
        {"\n", {0}, 1, NAN},
    };
    for (int i = 0; i < COUNT(of); i++) assert_MHz(cpuinfo(of[i].words, of[i].cpu, of[i].n), of[i].MHz);
}

/* A line longer than what is read at once: the pieces behind the first are no lines. */
static void long_lines_are_no_others(void **state)
{
    (void)state;
    for (int blanks = 0; blanks < 600; blanks++) {
        char words[800];
        snprintf(words, sizeof words, "processor : 0\nflags : %*scpu MHz : 7\ncpu MHz : 9\n", blanks, "");
        assert_MHz(cpuinfo(words, (const int[]){0}, 1), 9);
    }
}

static void clocks_of_cpufreq(void **state)
{
    (void)state;
    static const char *const said[] = {"1000000\n", "3000000\n", "<unknown>\n", NULL, "2000000\n", "nan\n"};
    char root[] = "/tmp/kbench-clock-XXXXXX", path[200], remove[64];
    assert_non_null(mkdtemp(root));
    for (int i = 0; i < COUNT(said); i++) {
        assert_int_equal(mkdir(text(path, sizeof path, "%s/cpu%d", root, i), 0777), 0);
        if (!said[i]) continue;
        assert_int_equal(mkdir(text(path, sizeof path, "%s/cpu%d/cpufreq", root, i), 0777), 0);
        FILE *file = fopen(text(path, sizeof path, "%s/cpu%d/cpufreq/scaling_cur_freq", root, i), "we");
        assert_non_null(file);
        fputs(said[i], file);
        assert_int_equal(fclose(file), 0);
    }
    static const struct { int cpu[3], n; double MHz; } of[] = {{{0, 1}, 2, 2000}, {{1}, 1, 3000}, {{4, 1}, 2, 2500},
        {{2}, 1, NAN}, {{3}, 1, NAN}, {{5}, 1, NAN}, {{2, 4, 3}, 3, 2000}, {{0}, 0, NAN}};
    for (int i = 0; i < COUNT(of); i++) assert_MHz(host_cpufreq_MHz(root, of[i].cpu, of[i].n), of[i].MHz);
    assert_int_equal(system(text(remove, sizeof remove, "rm -r %s", root)), 0);
}

/* On each CPU of this machine that we may be on, the device tells what the files say of that one alone. */
static void it_goes_where_we_go(void **state)
{
    (void)state;
    cpu_set_t all, one;
    FILE *file = fopen("/proc/cpuinfo", "re");
    bool told = false;
    if (sched_getaffinity(0, sizeof all, &all)) skip();
    for (char line[256]; file && fgets(line, sizeof line, file);) told |= !strncmp(line, "cpu MHz\t", 8);
    if (file) fclose(file);
    struct dev *dev = dev_open_host();
    double clock = dev->ops->clock_MHz(dev);
    if (told) assert_true(clock > 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        struct host_clock none = {0};
        bool has = host_cpufreq_MHz("/sys/devices/system/cpu", &cpu, 1) > 0 || told;
        assert_true(has == (host_read_clock(&none) > 0));
    }
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    dev->ops->close(dev);
}

static void a_dear_reading_stands_for_a_while(void **state)
{
    (void)state;
    struct host_clock later = {.MHz = 7, .until_s = now_s() + 100}, past = {.MHz = 7, .until_s = now_s() - 1};
    assert_MHz(host_read_clock(&later), 7);
    assert_true(host_read_clock(&past) != 7);
    assert_true(past.until_s < now_s() + 1.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_in_cpuinfo), cmocka_unit_test(long_lines_are_no_others), cmocka_unit_test(clocks_of_cpufreq),
        cmocka_unit_test(it_goes_where_we_go), cmocka_unit_test(a_dear_reading_stands_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

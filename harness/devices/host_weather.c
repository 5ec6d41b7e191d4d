#include "host_weather.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "csv.h"

enum { MOST_THREADS = 32, MOST_CPUS = 16 };   /* are asked: all where there are fewer, and enough to tell where there are more */

/* The first number behind `key` at the begin of a line of a file, or NaN. */
static double number_of(const char *path, const char *key, int skip)
{
    FILE *file = fopen(path, "re");
    char line[256];
    double ret = NAN;
    size_t length = strlen(key);
    while (file && isnan(ret) && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length)) continue;
        const char *at = line + length;
        for (int i = 0; i < skip; i++) {
            at += strspn(at, " ");
            at += strcspn(at, " \n");
        }
        if (sscanf(at, "%lf", &ret) != 1) ret = NAN;
    }
    if (file) fclose(file);
    return ret;
}

/* Time that our threads were ready to run and did not, ns, and how many were asked; NaN where the kernel keeps no such count. */
static double waited_ns(int *ret_threads)
{
    DIR *folder = opendir("/proc/self/task");
    double sum = 0, ran = 0;
    *ret_threads = 0;
    for (struct dirent *entry; folder && *ret_threads < MOST_THREADS && (entry = readdir(folder));) {
        char path[300];
        double run, wait;
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        FILE *file = fopen(text(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name), "re");
        if (file && fscanf(file, "%lf %lf", &run, &wait) == 2) {
            sum += wait;
            ran += run;
            ++*ret_threads;
        }
        if (file) fclose(file);
    }
    if (folder) closedir(folder);
    return ran > 0 ? sum : NAN;
}

/* nr_throttled of the group at `path` below `mount` and of those around it, any of which may have the quota, are added to *ret. */
static void add_held_back(const char *root, const char *mount, const char *path, double *ret)
{
    char group[400], file[900];
    text(group, sizeof group, "%s", path);
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = 0;
        double held = number_of(text(file, sizeof file, "%s%s%s/cpu.stat", root, mount, group), "nr_throttled ", 0);
        if (!isnan(held)) *ret = held + (isnan(*ret) ? 0 : *ret);
    }
}

double host_held_back(const char *membership, const char *root)
{
    FILE *file = fopen(membership, "re");
    char line[512];
    double ret = NAN;
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL, mount[80], listed[84];
        if (!path) continue;
        *path++ = 0;
        names++;
        if (!strcmp(path, "/") || !strncmp(path, "/..", 3)) *path = 0;   /* the top of what we see */
        if (!*names) add_held_back(root, "", path, &ret);                /* version 2 */
        else if (strstr(text(listed, sizeof listed, ",%s,", names), ",cpu,"))
            add_held_back(root, text(mount, sizeof mount, "/%s", names), path, &ret);
    }
    if (file) fclose(file);
    return ret;
}

void host_look(struct host_look *last, struct weather *ret)
{
    int threads;
    double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN), tick_s = 1 / (double)sysconf(_SC_CLK_TCK);
    struct host_look now = {.at_s = now_s(), .waited_ns = waited_ns(&threads), .stolen_ticks = number_of("/proc/stat", "cpu ", 7),
        .held_back = host_held_back("/proc/self/cgroup", "/sys/fs/cgroup")};
    double wall_s = now.at_s - last->at_s;
    *ret = (struct weather){NAN, NAN, NAN, -1, -1, NAN, NAN, number_of("/proc/loadavg", "", 0)};
    if (last->at_s > 0 && wall_s > 0) {
        if (threads) ret->waited_pct = 100 * fmax(0, now.waited_ns - last->waited_ns) * 1e-9 / (wall_s * threads);
        ret->stolen_pct = 100 * (now.stolen_ticks - last->stolen_ticks) * tick_s / (wall_s * cpus);
        if (now.held_back >= last->held_back) ret->held = now.held_back > last->held_back ? HELD_QUOTA : 0;
    }
    *last = now;
}

double host_cpufreq_MHz(const char *root, const int *cpu, int n)
{
    double sum = 0, kHz;
    int found = 0;
    for (int i = 0; i < n; i++) {
        char path[500];
        FILE *file = fopen(text(path, sizeof path, "%s/cpu%d/cpufreq/scaling_cur_freq", root, cpu[i]), "re");
        if (!file && !found) break;   /* one without has no driver, and neither have the others */
        if (file && fscanf(file, "%lf", &kHz) == 1 && kHz > 0 && isfinite(kHz)) sum += kHz, found++;
        if (file) fclose(file);
    }
    return found ? sum / found / 1e3 : NAN;
}

/* What stands behind "key : " at the begin of a line, or NULL. */
static char *value_of(char *line, const char *key)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length)) return NULL;
    line += length + strspn(line + length, " \t");
    if (*line++ != ':') return NULL;
    line += strspn(line, " \t");
    line[strcspn(line, "\n")] = 0;
    return line;
}

static bool is_among(int64_t which, const int *cpu, int n)
{
    for (int i = 0; i < n; i++)
        if (cpu[i] == which) return true;
    return false;
}

double host_cpuinfo_MHz(FILE *cpuinfo, const int *cpu, int n)
{
    char line[256];   /* flags are longer, and come in pieces */
    double sum = 0, MHz;
    int found = 0;
    bool begins = true, ours = false;
    while (found < n && fgets(line, sizeof line, cpuinfo)) {
        bool ends = strchr(line, '\n');
        char *processor = begins ? value_of(line, "processor") : NULL, *clock = begins && ours ? value_of(line, "cpu MHz") : NULL;
        int64_t which;
        if (processor) ours = *processor && !cell_whole(processor, &which) && is_among(which, cpu, n);
        if (clock && !cell_real(clock, &MHz) && MHz > 0) sum += MHz, found++;
        begins = ends;
    }
    return found ? sum / found : NAN;
}

/* Where there are more than MOST_CPUS they are taken at even steps, so that each socket has its share. */
static int pick_cpus(int *ret)
{
    cpu_set_t set[8];   /* of 8,192 CPUs */
    if (sched_getaffinity(0, sizeof set, set)) return 0;
    int all = CPU_COUNT_S(sizeof set, set), step = (all + MOST_CPUS - 1) / MOST_CPUS, n = 0;
    for (int cpu = 0, seen = 0; seen < all; cpu++)
        if (CPU_ISSET_S((size_t)cpu, sizeof set, set) && seen++ % step == 0) ret[n++] = cpu;
    return n;
}

/* It is asked for before each sample. What takes longer than 0.1 ms (many CPUs; kernels that first send for the figure) is asked
 * for less often: a hundredth of the time at most, but once a second, since a reading may also have been interrupted. */
double host_read_clock(struct host_clock *last)
{
    double begin = now_s();
    int cpu[MOST_CPUS];
    if (begin < last->until_s) return last->MHz;
    int n = pick_cpus(cpu);
    last->MHz = host_cpufreq_MHz("/sys/devices/system/cpu", cpu, n);
    FILE *cpuinfo = isnan(last->MHz) ? fopen("/proc/cpuinfo", "re") : NULL;
    if (cpuinfo) {
        last->MHz = host_cpuinfo_MHz(cpuinfo, cpu, n);
        fclose(cpuinfo);
    }
    double took_s = now_s() - begin;
    last->until_s = took_s > 1e-4 ? begin + took_s + fmin(1, fmax(0.1, 100 * took_s)) : 0;
    return last->MHz;
}

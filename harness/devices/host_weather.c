#include "host_weather.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

enum { MOST_THREADS = 32 };   /* are asked: all where there are fewer, and enough to tell where there are more */

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

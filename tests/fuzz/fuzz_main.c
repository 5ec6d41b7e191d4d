#include "fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SEEDS = 1024, MAX_BYTES = 4096 };

static struct {
    uint8_t data[MAX_BYTES];
    size_t  size;
} seeds[MAX_SEEDS], now;
static int      n_seeds;
static uint64_t state;

static uint32_t dice(uint32_t sides)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % sides;
}

static void read_seed(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || n_seeds == MAX_SEEDS) fprintf(stderr, "%s: can't be read, or too many\n", path), exit(2);
    seeds[n_seeds].size = fread(seeds[n_seeds].data, 1, MAX_BYTES, f);
    n_seeds++;
    fclose(f);
}

static void read_seeds(const char *path)
{
    struct stat    st;
    struct dirent *entry;
    if (stat(path, &st)) fprintf(stderr, "%s: no such corpus\n", path), exit(2);
    if (!S_ISDIR(st.st_mode)) {
        read_seed(path);
        return;
    }
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        char file[1024];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (*entry->d_name != '.') read_seed(file);
    }
    if (folder) closedir(folder);
}

static void insert(size_t at, const void *data, size_t size)
{
    if (now.size + size > MAX_BYTES) return;
    memmove(now.data + at + size, now.data + at, now.size - at);
    memcpy(now.data + at, data, size);
    now.size += size;
}

static void erase(size_t at, size_t size)
{
    memmove(now.data + at, now.data + at + size, now.size - at - size);
    now.size -= size;
}

static void mutate(void)
{
    size_t at = dice((uint32_t)now.size + 1),
           n = now.size - at ? dice((uint32_t)(now.size - at < 32 ? now.size - at : 32)) + 1 : 0;
    uint8_t byte = (uint8_t)(dice(4) ? 32 + dice(95) : dice(256)), copy[32];
    int     words = 0;
    while (fuzz_words[words]) words++;
    switch (dice(8)) {
    case 0: if (now.size > at) now.data[at] = byte; break;
    case 1: insert(at, &byte, 1); break;
    case 2: erase(at, n); break;
    case 3: if (now.size > at) now.data[at] ^= (uint8_t)(1 << dice(8)); break;
    case 4: memcpy(copy, now.data + at, n), insert(dice((uint32_t)now.size + 1), copy, n); break;
    case 5:                                      /* long lines and long lists */
        memcpy(copy, now.data + at, n);
        for (uint32_t k = n ? dice(64) : 0; k; k--) insert(at, copy, n);
        break;
    default: {
        const char *word = fuzz_words[dice((uint32_t)words)];
        if (dice(2)) erase(at, n);
        insert(at, word, strlen(word));
    }
    }
}

/* Half of another input behind half of this one. */
static void splice(void)
{
    int    other = (int)dice((uint32_t)n_seeds);
    size_t from = dice((uint32_t)seeds[other].size + 1), to = dice((uint32_t)now.size + 1);
    now.size = to;
    insert(to, seeds[other].data + from, seeds[other].size - from);
}

/* What was at hand when it ended: the sanitizers' reports don't tell. */
static void show_input(int signal_)
{
    (void)signal_;
    if (write(2, "\ninput:\n", 8) < 0 || write(2, now.data, now.size) < 0) _exit(1);
}

static void too_long(int signal_)
{
    (void)signal_;
    if (write(2, "\nran for more than 10 s", 23) < 0) _exit(1);
    show_input(0);
    _exit(1);
}

void __asan_on_error(void);
void __asan_on_error(void) { show_input(0); }

static void run(const void *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);     /* its own block, so that a read past the end is found */
    memcpy(copy, data, size);
    alarm(10);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

int main(int argc, char **argv)
{
    double          seconds = 0;
    unsigned long   runs = 0;
    struct timespec begin, end;
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "-seconds=", 9)) seconds = atof(argv[i] + 9);
        else if (!strncmp(argv[i], "-seed=", 6)) state = strtoull(argv[i] + 6, NULL, 10);
        else read_seeds(argv[i]);
    }
    if (!n_seeds) fprintf(stderr, "no corpus\n"), exit(2);
    signal(SIGABRT, show_input), signal(SIGALRM, too_long);
    for (int i = 0; i < n_seeds; i++) {
        memcpy(now.data, seeds[i].data, now.size = seeds[i].size);
        run(now.data, now.size);
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &end);
        if ((double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec) >= seconds) break;
        int seed = (int)dice((uint32_t)n_seeds);
        memcpy(now.data, seeds[seed].data, now.size = seeds[seed].size);
        if (!dice(8)) splice();
        for (uint32_t n = 1 + dice(6); n; n--) mutate();
        run(now.data, now.size);
        runs++;
    } while (1);
    printf("%d seeds and %lu mutated inputs, nothing found\n", n_seeds, runs);
    return 0;
}

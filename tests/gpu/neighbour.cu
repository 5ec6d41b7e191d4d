/* Other work on a GPU, for tests of what sees it: copies, or a kernel on all SMs, for ON ms of every PERIOD ms.
 * usage: neighbour copy|kernel ON_MS PERIOD_MS SECONDS      says "ready" once it begins */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 256 << 20 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_until(double at)
{
    double rest = at - now_s();
    if (rest <= 0) return;
    struct timespec t = {(time_t)rest, (long)((rest - (double)(time_t)rest) * 1e9)};
    nanosleep(&t, NULL);
}

static void check(cudaError_t error, const char *what)
{
    if (!error) return;
    fprintf(stderr, "neighbour: %s: %s\n", what, cudaGetErrorString(error));
    exit(5);
}

static __global__ void burn(long long cycles)
{
    long long begin = clock64();
    while (clock64() - begin < cycles) {}
}

int main(int argc, char **argv)
{
    if (argc != 5) return fprintf(stderr, "usage: neighbour copy|kernel ON_MS PERIOD_MS SECONDS\n"), 2;
    bool copy = !strcmp(argv[1], "copy");
    double on_s = atof(argv[2]) * 1e-3, period_s = atof(argv[3]) * 1e-3;
    char *a, *b;
    check(cudaMalloc((void **)&a, BYTES), "memory");
    check(cudaMalloc((void **)&b, BYTES), "memory");
    check(cudaMemset(a, 1, BYTES), "memset");
    check(cudaDeviceSynchronize(), "start");
    puts("ready");
    fflush(stdout);
    double begin = now_s(), until = begin + atof(argv[4]);
    for (int i = 0; now_s() < until; i++) {
        double off = now_s() + on_s;
        while (now_s() < off) {
            if (copy) check(cudaMemcpyAsync(b, a, BYTES, cudaMemcpyDeviceToDevice, 0), "copy");
            else burn<<<264, 256>>>(200000);
            check(cudaStreamSynchronize(0), "work");
        }
        sleep_until(begin + (i + 1) * period_s);
    }
    return 0;
}

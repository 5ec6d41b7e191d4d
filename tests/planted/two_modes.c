/* Right, and of two times: each call waits 2 ms more in 110 of 150 ms, so that no dozen of rounds sees one time alone. */
#include "score.h"
#include <time.h>

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int launch(const struct call *c)
{
    double begin = now_ns();
    bool slow = fmod(begin, 150e6) < 110e6;
    while (slow && now_ns() < begin + 2e6) {}
    return score_all(c);
}

KERNEL = {FOR_OP(indexer), .note = "planted: two modes", .engine = HOST, .growth = {{"max_ctx", 0}}, .launch = launch};

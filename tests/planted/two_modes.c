/* Right, and of two times: each call waits half a millisecond more in every other 30 ms. */
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
    bool slow = (int64_t)(begin / 3e7) % 2;
    while (slow && now_ns() < begin + 5e5) {}
    return score_all(c);
}

KERNEL = {FOR_OP(indexer), .note = "planted: two modes", .engine = HOST, .growth = {{"max_ctx", 0}}, .launch = launch};

/* Right; it says how often it has run in the file by the name of DIES_LATE_SAYS and of its process, and ends that process on the
 * launch of number DIES_LATE_AT, or hangs there with DIES_LATE_HANGS. A launch takes DIES_LATE_MS, 6 where nobody says. */
#include "right.h"
#ifndef __CUDACC__
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#endif

STEP(damage)
{
    (void)v;
#ifndef __CUDACC__
    static int launches;
    const char *at = getenv("DIES_LATE_AT"), *says = getenv("DIES_LATE_SAYS"), *ms = getenv("DIES_LATE_MS");
    char path[300];
    usleep(1000 * (useconds_t)atoi(ms ? ms : "6"));   /* a sample is one launch */
    launches++;
    snprintf(path, sizeof path, "%s.%d", says ? says : "/dev/null", (int)getpid());
    FILE *out = says ? fopen(path, "w") : NULL;
    if (out) fprintf(out, "%d\n", launches), fclose(out);
    if (!at || launches != atoi(at)) return;
    while (getenv("DIES_LATE_HANGS")) sleep(1);
    abort();
#endif
}

LAUNCH_RIGHT_THEN(damage)

KERNEL = {FOR_OP(attn), .note = "planted: dies or hangs late", .engine = ENGINE, .launch = launch};

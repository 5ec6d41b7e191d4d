/* Right, but at two requests it crashes, and by then FILE.next has taken the place of its file, as by a build during a run. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>

#include "right.h"

static int launch(const struct call *c)
{
    Dl_info self;
    char next[4096];
    if (c->problem->dim[ATTN_BATCH] != 2 || !dladdr((void *)(uintptr_t)launch, &self)) return run_right(c, view_of(c, RIGHT));
    snprintf(next, sizeof next, "%s.next", self.dli_fname);
    rename(next, self.dli_fname);
    return raise(SIGSEGV);
}

KERNEL = {FOR_OP(attn), .note = "planted: replaced", .engine = HOST, .launch = launch};

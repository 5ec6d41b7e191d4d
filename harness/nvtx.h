/* NVTX ranges for nsys, ncu and for our own breakdown: what runs, under the name that --row takes, and what a kernel names inside
 * of it. Without a tool a push and a pop are a few loads. */
#ifndef KBENCH_NVTX_H
#define KBENCH_NVTX_H

void nvtx_push(const char *name);
void nvtx_pop(void);

/* The innermost range that a kernel's launch has pushed on this thread, not one of the harness; "" none, or a tool is attached. */
const char *nvtx_innermost(void);

/* Plug-ins' ranges are heard from now on, and in what this process becomes by exec of its own program, where no tool listens:
 * before their first push, and before there are threads. Only in a program that exports InitializeInjectionNvtx2, which nvtx.c
 * defines. */
void nvtx_listen(void);

#endif

/* topk/host: one thread a row, which it looks at as far as it is live. The selection stands in host_select.h. */
#include <omp.h>

#include "kernel.h"
#include "topk.h"
#include "topk/host_select.h"

static size_t topk_workspace(const struct problem *p, const struct device *device, const int32_t *tune)
{
    (void)tune;
    return (size_t)(device->sm_count * topk_width(p->dim[TOPK_MAX_N])) * sizeof(uint32_t);
}

static void *row_of(const struct call *c, int t, int64_t b) { return (char *)c->t[t].p + b * c->t[t].stride; }

static int topk_launch(const struct call *c)
{
    int64_t   width = topk_width(c->problem->dim[TOPK_MAX_N]);
    uint32_t *workspace = c->workspace;
#pragma omp parallel for schedule(dynamic) num_threads(c->device->sm_count)
    for (int64_t b = 0; b < c->problem->dim[TOPK_BATCH]; b++) {
        int32_t length = *(const int32_t *)row_of(c, TOPK_LENGTH, b);
        select_row(row_of(c, TOPK_SCORE, b), length > 0 ? length : 0, c->problem->dim[TOPK_K], row_of(c, TOPK_PAGE_TABLE, b),
                   workspace + omp_get_thread_num() * width, row_of(c, TOPK_SLOT, b));
    }
    return 0;
}

KERNEL = {
    FOR_OP(topk),
    .note = "one thread a row: three counts by digits of 11 bits find the k-th score, a fourth look takes what is above it",
    .engine = HOST,
    .growth = {{"k", 0}},
    .workspace = topk_workspace,
    .launch = topk_launch,
};

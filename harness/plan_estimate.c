#include "plan_estimate.h"

#include <math.h>
#include <string.h>

#include "registry.h"

static const double RING_BYTES = 256e6, FILL_BYTES_PER_S = 1e9, SLOWNESS = 10, CHECK_CALLS = 10, ROUNDS = 30, CAP_S = 1,
                    START_S = 0.1;

static bool is_input(const struct tensor *t)
{
    return t->role != OUT;
}

static double touched_bytes(const struct problem *p)
{
    double bytes = 0;
    for (int i = 0; i < op_tensors(p->op); i++) {
        const struct tensor *t = &p->op->tensor[i];
        int64_t rows = t->touched ? t->touched(p, NULL, NULL) : t->rows(p);
        if (is_input(t)) bytes += (double)rows * (double)t->row_bytes(p);
    }
    return bytes;
}

/* Of outputs as many copies as fill the ring's bytes. */
static double output_bytes(const struct problem *p, int sets, double ring)
{
    double one = 0;
    for (int i = 0; i < op_tensors(p->op); i++)
        if (!is_input(&p->op->tensor[i])) one += (double)p->op->tensor[i].rows(p) * (double)p->op->tensor[i].row_bytes(p);
    return one * fmin(sets, 1 + fmax(1, ceil(ring / fmax(one, 1))));
}

static double ring_bytes(const struct problem *p, int sets, double ring)
{
    double bytes = output_bytes(p, sets, ring);
    for (int i = 0; i < op_tensors(p->op); i++) {
        const struct tensor *t = &p->op->tensor[i];
        int64_t share = t->share ? t->share(p) : 1;
        double  copies = is_input(t) ? ceil((double)sets / (double)(share > 0 ? share : 1)) : 0;
        bytes += copies * (double)t->rows(p) * (double)t->row_bytes(p);
    }
    return bytes;
}

struct plan_estimate plan_estimate(const struct group *g, const struct machine *m, const struct cli *cli)
{
    struct problem p = {.op = op_find(g->op), .seed = g->seed};
    memcpy(p.dim, g->dim, sizeof p.dim);
    double ring = fmax(RING_BYTES, 2.0 * (double)m->facts.l2_bytes), touched = fmax(touched_bytes(&p), 1);
    double read = m->ceilings.read_GBps > 0 ? m->ceilings.read_GBps * 1e9 : m->engine == CUDA ? 2e12 : 10e9;
    struct plan_estimate e = {.sets = g->cache == HOT ? 1 : (int)fmin(ceil(ring / touched), 1 << 20)};
    e.bytes = ring_bytes(&p, e.sets, ring);
    double call_s = touched / read * SLOWNESS;
    double row_s = START_S + CHECK_CALLS * call_s + fmin(cli->cap_s > 0 ? cli->cap_s : CAP_S, ROUNDS * e.sets * call_s);
    e.seconds = touched * e.sets / FILL_BYTES_PER_S + g->n * row_s;
    return e;
}

#include "calibrate.h"

#include <math.h>

#include "base.h"

enum { NODES_CUDA = 128, NODES_HOST = 8, REPEATS = 5 };
static const double RIGHT_SHARE = 0.05, RIGHT_NS = 100;

const double spin_asked_ns[SPINS] = {1e3, 2e3, 5e3, 10e3, 50e3};

struct spins {
    struct dev *dev;
    double      ns;
    int         nodes;
};

static int enqueue(void *arg)
{
    const struct spins *spins = arg;
    for (int i = 0; i < spins->nodes; i++) TRY(spins->dev->ops->spin(spins->dev, spins->ns));
    return 0;
}

/* One of them, ns: the best of a few replays, since other work only ever adds. */
static int read_spin(struct dev *dev, double ns, double *ret)
{
    struct spins spins = {dev, ns, dev->machine.engine == CUDA ? NODES_CUDA : NODES_HOST};
    struct graph *graph;
    char why[160];
    int nodes, error = 0;
    TRY(dev->ops->ready_spin(dev));   /* how fast the clock goes now */
    TRY(dev->ops->capture(dev, enqueue, &spins, &graph, &nodes, why, sizeof why));
    *ret = INFINITY;
    for (int i = 0; i < REPEATS && !error; i++) {
        double all;
        error = dev->ops->time(dev, &graph, 1, &all);
        if (!error) *ret = fmin(*ret, all / spins.nodes);
    }
    dev->ops->drop(dev, graph);
    return error;
}

int calibrate(struct dev *dev, double *ret_ns)
{
    double floor = dev->machine.ceilings.floor_ns;
    if (dev->machine.engine == HOST) TRY(read_spin(dev, 0, &floor));   /* a spin opens no team of threads, an empty kernel does */
    for (int i = 0; i < SPINS; i++) {
        TRY(read_spin(dev, spin_asked_ns[i], &ret_ns[i]));
        ret_ns[i] -= floor;
    }
    return 0;
}

bool spin_right(double asked_ns, double read_ns)
{
    return fabs(read_ns - asked_ns) <= fmax(RIGHT_NS, RIGHT_SHARE * asked_ns);
}

int spins_wrong(const double *read_ns)
{
    int wrong = 0;
    for (int i = 0; i < SPINS; i++) wrong += !spin_right(spin_asked_ns[i], read_ns[i]);
    return wrong;
}

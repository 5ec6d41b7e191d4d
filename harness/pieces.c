#include "pieces.h"

#include <math.h>
#include <stdlib.h>

#include "base.h"

enum { MAX_NODES = 4096, FAST_CHUNK_NS = 500000 };

static int enqueue_span(void *arg)
{
    const struct span *span = arg;
    for (int pass = 0; pass < span->passes; pass++)
        for (int s = span->first; s < span->first + span->n; s++) {
            span->bound->t = span->timer->w->ring + s * MAX_TENSORS;
            TRY(bound_launch(span->bound));
        }
    return 0;
}

int piece_capture(struct timer *timer, struct span span, struct piece **ret)
{
    struct piece *piece = must_alloc(1, sizeof *piece);
    char why[160];
    int nodes;
    piece->span = span;
    int error = timer->dev->ops->capture(timer->dev, enqueue_span, &piece->span, &piece->graph, &nodes, why, sizeof why);
    if (error) free(piece);
    else *ret = piece;
    return error;
}

void piece_drop(struct timer *timer, struct piece *piece)
{
    if (piece) timer->dev->ops->drop(timer->dev, piece->graph);
    free(piece);
}

static int first_set(const struct timer *timer, int chunk)
{
    return (int)((int64_t)timer->w->sets * chunk / timer->chunks);
}

int chunk_sets(const struct timer *timer, int chunk)
{
    return first_set(timer, chunk + 1) - first_set(timer, chunk);
}

int piece_need(struct timer *timer, struct lane *lane, int chunk, struct piece **ret)
{
    struct piece **piece = &lane->piece[chunk];
    if (!*piece) {
        struct span span = {timer, lane->bound, first_set(timer, chunk), chunk_sets(timer, chunk), lane->passes};
        TRY(piece_capture(timer, span, piece));
    }
    *ret = *piece;
    return 0;
}

void pieces_cut(struct timer *timer)
{
    double fastest = INFINITY, sample_ns = timer->dev->sample_s * 1e9;
    int sets = timer->w->sets;
    bool host = timer->dev->machine.engine == HOST;
    for (int l = 0; l < timer->n_lanes; l++)
        if (lane_active(&timer->lane[l])) fastest = fmin(fastest, timer->lane[l].pilot_ns);
    double least = host ? 1 : ceil(FAST_CHUNK_NS / fastest);
    timer->chunk_sets = least < sets ? (int)least : sets;
    timer->chunks = sets / timer->chunk_sets;
    for (int l = 0; l < timer->n_lanes; l++) {
        struct lane *lane = &timer->lane[l];
        double ring_ns = lane->pilot_ns * sets, chunk_ns = ring_ns / timer->chunks;
        lane->piece = must_alloc((size_t)timer->chunks, sizeof *lane->piece);   /* dropped with the placement */
        lane->passes = 1;
        if (timer->chunks == 1) {
            double passes = ceil(sample_ns / ring_ns), most = fmax(1, MAX_NODES / sets);
            lane->passes = (int)fmax(1, fmin(passes, most));
        }
        double chunks = ceil(sample_ns / (chunk_ns * lane->passes));
        lane->chunks = (int)fmax(1, fmin(chunks, MAX_GRAPHS));
    }
}

void pieces_drop(struct timer *timer)
{
    for (int l = 0; l < timer->n_lanes; l++) {
        struct lane *lane = &timer->lane[l];
        for (int c = 0; lane->piece && c < timer->chunks; c++) piece_drop(timer, lane->piece[c]);
        free(lane->piece);
        lane->piece = NULL;
    }
}

/* The made requests of precision.h. Every value is a function of (seed, model, request, what, entry). */
#include "precision.h"

#include <math.h>

#include "host.h"
#include "rng.h"

enum { HEADS = PRECISION_HEADS, D = PRECISION_D, KV = PRECISION_KV, SEGMENT = 64 };

const char *const precision_model_name[MODELS] = {"noise", "text"};

enum stream { QUERY, WEIGHT, KEY, SHARED, COMMON, SEGMENT_KEY, RELEVANT, ATTENTION, SINK, VALUE, VALUE_SHARED, WINDOW };

/* Variance of a key that its segment shares; length of the direction that all keys share; lean of a relevant entry of mean
 * relevance, and of queries, along the direction that they share. Lengths beside noise of length D^0.5. */
static const struct {
    float segment, common, relevant, index_lean, index_query_lean, kv_lean, attention_query_lean;
} models[MODELS] = {
    [MODEL_NOISE] = {0},
    [MODEL_TEXT] = {.segment = 0.5f, .common = 5, .relevant = 1.0f / 64, .index_lean = 6, .index_query_lean = 6, .kv_lean = 6,
                    .attention_query_lean = 4},
};

static uint64_t key_of(const struct precision_problem *p, int64_t b, enum stream stream, int64_t row)
{
    return rng_key(p->seed, (uint32_t)b, (uint32_t)(stream * MODELS + p->model), (uint64_t)row);
}

HOST_CLONES static void normals(uint64_t key, float scale, int n, float *ret)
{
    for (int i = 0; i < n; i++) ret[i] = scale * rng_normal(key, (uint32_t)i);
}

HOST_CLONES static void add_normals(uint64_t key, float scale, int n, float *ret)
{
    for (int i = 0; i < n; i++) ret[i] += scale * rng_normal(key, (uint32_t)i);
}

/* A vector of this length in a random direction, near enough: its own length varies by a few per cent. */
static void add_direction(uint64_t key, float length, int n, float *ret)
{
    if (length != 0) add_normals(key, length / sqrtf((float)n), n, ret);
}

/* Of an entry: exponentially distributed with mean 1 among the relevant, 0 else. */
static float relevance(const struct precision_problem *p, int64_t b, int64_t entry)
{
    uint64_t key = key_of(p, b, RELEVANT, entry);
    double   coin = rng_bits(key, 0) * 0x1p-32, amount = (rng_bits(key, 1) + 0.5) * 0x1p-32;
    return coin < models[p->model].relevant ? (float)-log(amount) : 0;
}

void precision_queries(const struct precision_problem *p, int64_t b, struct precision_index *ret)
{
    for (int h = 0; h < HEADS; h++) {
        float q[D];
        normals(key_of(p, b, QUERY, h), 1, D, q);
        add_direction(key_of(p, b, SHARED, 0), models[p->model].index_query_lean, D, q);
        for (int d = 0; d < D; d++) ret->q[d][h] = q[d];
    }
    normals(key_of(p, b, WEIGHT, 0), 1, HEADS, ret->w);
    for (int h = 0; h < HEADS; h++) ret->w[h] = (ret->w[h] + 0.5f) * 0.011048543f;   /* 128^-0.5 * 64^-0.5 */
}

void precision_key(const struct precision_problem *p, int64_t b, int64_t entry, float ret[PRECISION_D])
{
    float segment = models[p->model].segment, square = 0;
    normals(key_of(p, b, KEY, entry), sqrtf(1 - segment), D, ret);
    if (segment > 0) add_normals(key_of(p, b, SEGMENT_KEY, entry / SEGMENT), sqrtf(segment), D, ret);
    add_direction(key_of(p, 0, COMMON, 0), models[p->model].common, D, ret);
    add_direction(key_of(p, b, SHARED, 0), models[p->model].index_lean * relevance(p, b, entry), D, ret);
    for (int d = 0; d < D; d++) square += ret[d] * ret[d];
    float norm = sqrtf(D / square);
    for (int d = 0; d < D; d++) ret[d] *= norm;
}

void precision_attention_queries(const struct precision_problem *p, int64_t b, float *ret_q, float *ret_sink)
{
    for (int h = 0; h < HEADS; h++) {
        normals(key_of(p, b, ATTENTION, h), 2, KV, ret_q + h * KV);
        add_direction(key_of(p, b, VALUE_SHARED, 0), models[p->model].attention_query_lean, KV, ret_q + h * KV);
    }
    normals(key_of(p, b, SINK, 0), 1, HEADS, ret_sink);
}

void precision_kv(const struct precision_problem *p, int64_t b, int64_t entry, float ret[PRECISION_KV])
{
    normals(entry < 0 ? key_of(p, b, WINDOW, -entry) : key_of(p, b, VALUE, entry), 1, KV, ret);
    if (entry >= 0) add_direction(key_of(p, b, VALUE_SHARED, 0), models[p->model].kv_lean * relevance(p, b, entry), KV, ret);
}
